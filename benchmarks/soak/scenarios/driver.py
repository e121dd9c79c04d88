"""One driver, and two thousand runs of queries of one to eight sources that are stopped, fail, and are started again.

Two hundred times meanwhile the control document changes the verdict on all of them. Between two parts of the runs it
is counted what the JVM and the planner's process hold, with no query running, after a full collection of Python and
of the JVM.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from benchmarks.door.scenarios.streams import OWN_OF_SPARK, look, run
from benchmarks.door.starting import by_door, processes
from benchmarks.kafka.scenario import properties
from benchmarks.local.drivers import Place, publish
from benchmarks.local.results import DRIVER, Figure, Goal, Measured, Report
from benchmarks.soak.scenario import Bench, Look, Scenario, figures, slopes
from headgate_contract import AlignmentControl, ControlDocument, QueryControl, SourceControl

JOB = Path("benchmarks/door/jobs/restarts.py").resolve()
RESTARTS, VERDICTS, BATCHES = 2_000, 200, 100_000
ENDINGS = 4
"""How a run ends, by turns (`restarts.py`)."""
BATCHES_OF_A_RUN = BATCHES // RESTARTS * ENDINGS // (ENDINGS - 1)
"""One ending of these comes by itself after one batch, so the other runs have more."""
NAMES, AT_ONCE = 16, 4
LOOKS, LEFT_OUT = 20, 5
"""The first looks are left out: caches fill."""
KINDS = {
    "threads": "threads",
    "descriptors": "descriptors",
    "sockets": "sockets",
    "objects": "objects",
    "series": "series",
    "files": "files",
}
REPORTED = {"heap_bytes": "bytes", "planner_rss_bytes": "bytes"}
"""Spark keeps something of each query itself (`growth_of_plain` in door.json), and what memory a process has is not
given back: these are told, and what must not grow is the number of objects of Headgate's classes."""


def measure(bench: Bench) -> Mapping[str, Measured]:
    """Run all of them."""
    looks = max(4, min(LOOKS, bench.scaled(RESTARTS) // NAMES))
    restarts, batches, verdicts, found = soaked(bench, bench.place("driver"), looks=looks)
    left_out = LEFT_OUT * looks // LOOKS
    kinds = [*KINDS, *REPORTED]
    counts = {"restarts": restarts[-1], "batches": batches, "verdicts": verdicts}
    grown = slopes("soak", kinds, restarts[left_out:], found[left_out:])
    bench.judges("driver", KINDS, grown)
    return {
        f"soak_{name}": Measured([count], {"scale": bench.scale}) for name, count in counts.items()
    } | grown


def soaked(
    bench: Bench,
    place: Place,
    *,
    looks: int,
    batches: int = BATCHES_OF_A_RUN,
    names: int = NAMES,
    more: Mapping[str, str] | None = None,
) -> tuple[list[int], int, int, list[Look]]:
    """Run a part of everything; returns the restarts at each look, batches and verdicts in all, and the looks.

    Queries of so many `names` run so many `batches` each; `more` are other properties of Spark.
    """
    of_a_look = bench.scaled(RESTARTS, looks) // looks
    verdicts_of_a_look = max(1, bench.scaled(VERDICTS) // looks)
    topic = bench.topic("soak", [10])
    arguments = [f"--bootstrap={bench.broker.bootstrap}", f"--topic={topic}", f"--place={place.directory}"]
    arguments += [f"--names={names}", f"--batches={batches}", f"--at-once={AT_ONCE}"]
    conf = properties(place.directory / "events") | OWN_OF_SPARK | (more or {})
    restarts, ran, verdicts, turn, found = [0], 0, 0, 0, []
    with by_door(place, str(JOB), arguments, conf, document(0, topic)) as child:
        for _ in range(looks):
            for part in parts(of_a_look, verdicts_of_a_look):
                turn, verdicts = turn + 1, verdicts + 1
                publish(place, document(verdicts, topic))
                asked = place.directory / f"{turn}.queries"
                run(child, asked, part)
                ran += int(asked.with_suffix(".done").read_text())
            restarts.append(restarts[-1] + of_a_look)
            found.append(seen(place, look(place, processes(child, governed=True))))
            bench.tell(f"{restarts[-1]} restarts, {ran} batches: {found[-1]}")
    return restarts[1:], ran, verdicts, found


def parts(whole: int, count: int) -> list[int]:
    """Return a number as a sum of so many that are about equal, none of them 0."""
    count = min(whole, count)
    return [whole * (n + 1) // count - whole * n // count for n in range(count)]


def document(verdicts: int, topic: str) -> ControlDocument:
    """Return the document after so many changes of the verdict.

    The topic is aligned, with nobody who could hold it, so that each query that reads it asks for event times too, on
    a thread and by a client of its own.
    """
    alone = AlignmentControl(group="all", max_drift_seconds=3600, idle_after_seconds=0)
    control = QueryControl(
        interval_seconds=0,
        interval_during_backlog_seconds=1,
        backlog=verdicts % 2 == 1,
        sources={topic: SourceControl(alignment=alone)},
    )
    queries = {f"query-{number}": control for number in range(NAMES)}
    return ControlDocument(generation=verdicts + 1, queries=queries)


def seen(place: Place, held: Look) -> Look:
    """Return what is held by kind, both processes together, with the files beside the checkpoints."""
    both = {
        kind: held[f"jvm_{kind}"] + held[f"planner_{kind}"] for kind in ("threads", "descriptors", "sockets")
    }
    beside = (place.directory / "checkpoints").glob("*.headgate/**/*")
    return {
        **both,
        "objects": held["headgate_objects"],
        "series": held["series"],
        "files": sum(1 for path in beside if path.is_file()),
        **{kind: held[kind] for kind in REPORTED},
    }


SCENARIO = Scenario(
    "driver",
    (
        Figure("soak_restarts", "restarts", Goal(">=", RESTARTS)),
        Figure("soak_verdicts", "changes", Goal(">=", VERDICTS)),
        Figure("soak_batches", "batches", Goal(">=", BATCHES)),
        *figures("soak", KINDS),
        *figures("soak", REPORTED, Report()),
    ),
    measure,
    DRIVER,
)
