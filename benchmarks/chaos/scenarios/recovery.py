"""A driver is killed in mid-batch: how long until the next one has committed, governed and as plain Spark.

Each starts from a copy of one checkpoint, which a governed driver has left that was killed: with its lock, its fence
and what it has kept beside it. They take turns, so that what the machine does meanwhile meets both.
"""

from __future__ import annotations

import shutil
import statistics
import time
from collections.abc import Mapping
from pathlib import Path

from benchmarks.chaos.scenario import Bench, Scenario
from benchmarks.door.starting import by_door
from benchmarks.local.drivers import START_SECONDS, Place, plain
from benchmarks.local.results import DRIVER, Figure, Goal, Measured
from headgate_contract import BatchControl, ControlDocument, QueryControl, RateControl, SourceControl
from headgate_spark.engine.checkpoint import side_directory

SCRIPT = str(Path(__file__).parents[1] / "jobs/recovers.py")
ROUNDS = 7
BATCHES = 8
"""That the first driver commits before it is killed."""
TRIGGER = "500 milliseconds"
PROPERTIES = {"spark.sql.shuffle.partitions": "2", "spark.ui.enabled": "false", "spark.driver.memory": "1g"}
LIMIT = SourceControl(rate_limit=RateControl(records_per_second=1_000_000))
DOCUMENT = ControlDocument(
    generation=1,
    queries={"recovers": QueryControl(interval_seconds=0.5, batch=BatchControl(), sources={"source": LIMIT})},
)
FIGURES = (Figure("recovery_vs_plain", "x", Goal("<=", 1.2)),)


def measure(bench: Bench) -> Mapping[str, Measured]:
    """Leave a checkpoint, and go on from it by turns."""
    left = Place(bench.root / "recovery" / "left").cleared()
    seconds = recovered(left, governed=True, batches=BATCHES)
    bench.tell(f"{BATCHES} batches in {seconds:.1f} s, killed")
    took: dict[bool, list[float]] = {True: [], False: []}
    for number in range(max(1, round(bench.share * ROUNDS))):
        for governed in (True, False):
            place = Place(bench.root / "recovery" / f"{number}-{governed}").cleared()
            for folder in (left.checkpoint, Path(side_directory(str(left.checkpoint)))):
                shutil.copytree(folder, place.directory / folder.name)
            took[governed].append(recovered(place, governed=governed))
            bench.tell(f"{'governed' if governed else 'plain'}: {took[governed][-1]:.2f} s")
            shutil.rmtree(place.checkpoint)
    ratios = [ours / theirs for ours, theirs in zip(took[True], took[False], strict=True)]
    details = {
        "governed_seconds": round(statistics.median(took[True]), 2),
        "plain_seconds": round(statistics.median(took[False]), 2),
        "rounds": len(ratios),
    }
    return {"recovery_vs_plain": Measured(ratios, details)}


def recovered(place: Place, *, governed: bool, batches: int = 1) -> float:
    """Start a driver, kill it after so many commits, and return how long these took from its start."""
    arguments = [f"--checkpoint={place.checkpoint}", f"--trigger={TRIGGER}"]
    before, began = last_commit(place.checkpoint), time.monotonic()
    driver = (
        by_door(place, SCRIPT, arguments, PROPERTIES, DOCUMENT)
        if governed
        else plain(place, SCRIPT, arguments, PROPERTIES)
    )
    with driver:
        driver.wait_for(
            "a commit",
            lambda: True if last_commit(place.checkpoint) >= before + batches else None,
            START_SECONDS,
            every=0.02,
        )
        seconds = time.monotonic() - began
        driver.kill()
    return seconds


def last_commit(checkpoint: Path) -> int:
    """Return the number of the last batch that was committed; -1: none was."""
    commits = checkpoint / "commits"
    names = [entry.name for entry in commits.iterdir()] if commits.is_dir() else []
    return max((int(name) for name in names if name.isdecimal()), default=-1)


SCENARIO = Scenario("recovery", FIGURES, measure, DRIVER)
