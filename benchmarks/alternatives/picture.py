"""The picture of one backlog beside what one would otherwise choose: time, age of results once live, unit of failure
and processor time.

`make generate` draws it from `benchmarks/results/alternatives.json`, and `make lint` compares. It has the rounds of
the aggregation, over the latest days as in the tables (`benchmarks.standing`), and from the screening the ways that
take no part in these; and of those that were measured live, the age of a count. Other ways to set what is ours
(`by_rows`, `uncounted`) are left out. What was not measured is a dash.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from math import inf
from pathlib import Path
from typing import Any, Final

from benchmarks.alternatives.opponents import CAPS, FLINK_BATCH, PLAIN_REAL_TIME, REAL_TIME
from benchmarks.backlog.rounds import BATCH, GOVERNED, UNCAPPED
from benchmarks.demo.chart import WIDTH, Scale, short
from benchmarks.local.statistics import median
from benchmarks.result_file import Attempt
from benchmarks.standing import latest_days

PICTURE: Final = Path("docs/images/alternatives.svg")
SCREENING, ROUNDS = "aggregation_screening", "aggregation_vs_best_flink"
OF_REAL_TIME, LIVE = "aggregation_real_time_screening", "live_p99_seconds"
LEFT, RIGHT, HEAD, ROW = 300, 395, 44, 24
P99, REPEATED, USED = WIDTH - 262, WIDTH - 120, WIDTH - 10
"""Where the columns behind the bars end. A wide font has room everywhere."""
COLUMNS: Final = (
    (P99, "live:", "age, p99"),
    (REPEATED, "most records that", "a failure repeats"),
    (USED, "CPU seconds", "per million"),
)
UNKNOWN: Final = "\N{EN DASH}"
BACKENDS: Final = {"hashmap": "in memory", "rocksdb": "RocksDB", "forst": "ForSt, asynchronous"}
NAMES: Final = {
    GOVERNED: "Headgate, intervalDuringBacklog: 0s",
    REAL_TIME: "Headgate, live.mode: RealTime",
    UNCAPPED: "Spark's default: no cap",
    PLAIN_REAL_TIME: "Spark's real-time mode",
    BATCH: "batch job of Spark",
    FLINK_BATCH: "batch job of Flink",
    **{way: f"Spark, {records:,} records a batch" for way, records in CAPS.items()},
}
COLOURS: Final = {"headgate": "#0f766e", "spark": "#6d5bd0", "flink": "#c2570c"}
STYLE: Final = """
svg { font-family: system-ui, sans-serif; } .paper { fill: #fff; } text { fill: #17202a; font-size: 12.5px; }
.unit { fill: #5b6774; } .limit { opacity: .35; } .once { fill-opacity: .1; } text.headgate { font-weight: 600; }
""" + "".join(
    f".{kind} {{ fill: {colour}; }} rect.{kind} {{ stroke: {colour}; }}\n" for kind, colour in COLOURS.items()
)


def called(way: str) -> str:
    """Return what a reader is told that a way is."""
    if way in NAMES:
        return NAMES[way]
    _, backend, checkpoint, *combined = way.split("_")
    mini = ", mini-batches" if combined else ""
    return f"Flink, {BACKENDS[backend]}, {checkpoint}{mini}"


@dataclass(frozen=True)
class Costs:
    """What a way comes to; None: it was not measured."""

    seconds: float | None = None
    repeated: float | None = None
    """The most records that a failure repeats, or, where `is_mean`, those between two commits on average."""
    is_mean: bool = False
    used: float | None = None
    """Processor seconds of a million records."""
    live: float | None = None
    """The age of a record once live that 99 of 100 do not reach, in seconds."""
    once: bool = False
    """Whether it ran in the screening alone."""


def ways(made: Mapping[str, Sequence[Attempt]]) -> dict[str, Costs]:
    """Return what each way comes to, the fastest first, and those without a time last.

    Each number is the median over the latest days on which it was measured, and of a day the median of its rounds.
    """
    found: dict[str, Costs] = {}
    for figure in (SCREENING, OF_REAL_TIME, ROUNDS):
        days = (
            [day["details"] for day in latest_days(made[figure]) if has_costs(day)] if figure in made else []
        )
        for way in dict.fromkeys(way for day in days for way in day["seconds"]):
            of_way = costs_of(way, [day for day in days if way in day["seconds"]])
            found[way] = replace(of_way, live=live_of(way, made), once=figure != ROUNDS)
    for way in (REAL_TIME, PLAIN_REAL_TIME):
        found.setdefault(way, Costs(live=live_of(way, made)))
    taken = {way: costs for way, costs in found.items() if is_shown(way) and costs != Costs()}
    return dict(sorted(taken.items(), key=lambda one: inf if one[1].seconds is None else one[1].seconds))


def costs_of(way: str, days: Sequence[Mapping[str, Any]]) -> Costs:
    """Return what a way comes to over some days, on each of which it has a time."""
    seconds = median([median(day["seconds"][way]) for day in days])
    used = median([median(day["cpu_seconds"][way]) / day["records"] * 1e6 for day in days])
    largest = [median(day["largest"][way]) for day in days if way in day.get("largest", {})]
    if largest:
        return Costs(seconds, median(largest), used=used)
    commits = [median(day["batches"][way]) for day in days]
    mean = median([day["records"] / of_day for day, of_day in zip(days, commits, strict=True)])
    return Costs(seconds, mean, is_mean=max(commits) > 1, used=used)


def live_of(way: str, made: Mapping[str, Sequence[Attempt]]) -> float | None:
    """Return how old a record is once live; None where that was not measured."""
    days = latest_days(made[LIVE]) if LIVE in made else []
    found = [day["details"]["p99_seconds"][way] for day in days if way in day["details"]["p99_seconds"]]
    return median(found) if found else None


def has_costs(attempt: Attempt) -> bool:
    """Tell whether an attempt says what each way took of the processor."""
    return "cpu_seconds" in attempt.get("details", {})


def is_measured(made: Mapping[str, Sequence[Attempt]]) -> bool:
    """Tell whether there is something to draw: of a figure whose last attempt failed there is not."""
    return all(figure in made and has_costs(made[figure][-1]) for figure in (SCREENING, ROUNDS))


def is_shown(way: str) -> bool:
    """Tell whether a way is one that somebody would choose."""
    return way in NAMES or way.startswith("flink_")


def caption(made: Mapping[str, Sequence[Attempt]]) -> Iterator[str]:
    """Yield the picture as a document has it, and what it shows."""
    taken, records = ways(made), short(made[ROUNDS][-1]["details"]["records"])
    yield ""
    yield (
        "![One backlog by Headgate, Spark and Flink: seconds, age of a result once live, records that a failure "
        f"repeats, processor time]({PICTURE})"
    )
    yield ""
    yield (
        f"*Bars: count and sum per key, {records} records of a million keys, from Kafka into files, with an empty "
        "state; Headgate is told that it is in a backlog. They are medians over the latest days, as in the table, of "
        "rounds in which all engines are warm; what is outlined ran once, in a screening, after a twentieth of the "
        "records. Pale bars are batch jobs, which cannot go on live. 5s and 60s are Flink's checkpoint intervals."
    )
    if OF_REAL_TIME in made and PLAIN_REAL_TIME in taken:
        yield "Real-time mode, and what is governed with it, write to a topic instead."
    if any(costs.live is not None for costs in taken.values()):
        details = latest_days(made[LIVE])[-1]["details"]
        yield (
            f"Live: a count per key from Kafka to Kafka, {details['records_per_second']:,} records a second, from "
            "when a record was due until the count that has it was written; Headgate in micro-batches of 100ms, or "
            "in real-time mode."
        )
    yield (
        "A failure repeats a batch, or what Flink has read from the beginning of one checkpoint to the end of the "
        "next (by time); where it says mean, all records over all commits. "
        f"{UNKNOWN}: not measured.*"
    )


def draw(made: Mapping[str, Sequence[Attempt]]) -> str:
    """Return the picture of what the attempts at the figures come to, by their ids."""
    taken = ways(made)
    x = Scale(0, max(costs.seconds or 0 for costs in taken.values()), LEFT, WIDTH - RIGHT)
    height = HEAD + ROW * len(taken) + 8
    head = f'<text class="unit" x="{LEFT}" y="34">{escape(title(made))}</text>' + "".join(
        f'<text class="unit" x="{end}" y="{y}" text-anchor="end">{said}</text>'
        for end, *lines in COLUMNS
        for y, said in zip((18, 34), lines, strict=True)
    )
    body = "".join(
        row(way, HEAD + ROW * number, x, costs) for number, (way, costs) in enumerate(taken.items())
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'role="img" aria-label="One backlog, by Headgate, Spark and Flink"><style>{STYLE}</style>'
        f'<rect class="paper" width="{WIDTH}" height="{height}"/>{head}{body}</svg>\n'
    )


def title(made: Mapping[str, Sequence[Attempt]]) -> str:
    """Say what the bars are."""
    return f"seconds for {short(made[ROUNDS][-1]['details']['records'])} records"


def row(way: str, top: float, x: Scale, costs: Costs) -> str:
    """Return the name, the bar and the numbers of a way."""
    is_ours = way in (GOVERNED, REAL_TIME)
    kind = "headgate" if is_ours else "flink" if way.startswith("flink") else "spark"
    columns = "".join(
        f'<text x="{place}" y="{top + 14}" text-anchor="end">{number}</text>'
        for place, number in ((P99, age(costs.live)), (REPEATED, unit_of(costs)), (USED, used(costs)))
    )
    name = (
        f'<text class="{kind if is_ours else ""}" x="{LEFT - 10}" y="{top + 14}" text-anchor="end">'
        f"{escape(called(way))}</text>"
    )
    if costs.seconds is None:
        return f'{name}<text x="{LEFT + 8}" y="{top + 14}">{UNKNOWN}</text>{columns}'
    end = x.at(costs.seconds)
    limit = " limit" if way in (BATCH, FLINK_BATCH) else " once" if costs.once else ""
    return (
        f'{name}<rect class="{kind}{limit}" x="{LEFT}" y="{top}" width="{round(max(end - LEFT, 1), 1)}" '
        f'height="{ROW - 6}" rx="3"/><text x="{end + 8}" y="{top + 14}">{costs.seconds:.1f} s</text>{columns}'
    )


def age(seconds: float | None) -> str:
    """Write an age to two digits, as far as milliseconds tell."""
    if seconds is None:
        return UNKNOWN
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"


def unit_of(costs: Costs) -> str:
    """Write what a failure repeats."""
    if costs.repeated is None:
        return UNKNOWN
    return f"{'mean ' if costs.is_mean else ''}{short(float(f'{costs.repeated:.2g}'))}"


def used(costs: Costs) -> str:
    """Write the processor time."""
    return UNKNOWN if costs.used is None else f"{costs.used:.1f}"
