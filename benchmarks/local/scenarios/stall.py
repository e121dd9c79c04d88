"""A minute's stall of a live query: how long is the first batch after it?

Every process of the driver stands still for a minute (as under a paused container or a host that swaps), while
input goes on. A plain query then takes everything at once, and its records wait for all of it. Headgate is to
take what fits the commit interval, as it was measured before the stall.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.event_log import Batch, EventLog
from benchmarks.local.child import Child
from benchmarks.local.drivers import START_SECONDS, Place, Resource, by_document, plain
from benchmarks.local.recording import STEADY, prepare
from benchmarks.local.results import Figure, Goal, Measured
from benchmarks.local.scenario import Bench, Scenario
from headgate_contract import ControlDocument, QueryControl

INTERVAL = 1.0
"""Commit interval in normal time; shorter than `batch.targetDuration`, so it is also how long a batch should
take."""
LIVE_SECONDS = 20.0
"""Before the stall."""
STALL_SECONDS = 60.0
DEADLINE = 120.0


@dataclass(frozen=True)
class Outcome:
    """What one run came to."""

    first: Batch
    """The first batch with records that began after the stall."""
    usual_seconds: float
    """How long batches took just before it."""
    stalled_seconds: float


def measure(bench: Bench) -> Mapping[str, Measured]:
    """Stall a governed query and a plain one."""
    resource = Resource.read()
    prepare(STEADY, bench.data)
    governed, uncapped = bench.place("stall-governed"), bench.place("stall-plain-uncapped")
    outcomes = {
        "governed": run(governed, start_governed(governed, resource, bench)),
        "plain_uncapped": run(uncapped, start_plain(uncapped, resource, bench)),
    }
    for name, outcome in outcomes.items():
        bench.tell(f"{name}: first batch {outcome.first.seconds:.2f} s, {outcome.first.records} records")
    ratio = outcomes["governed"].first.seconds / INTERVAL
    return {"first_batch_after_stall": Measured([ratio], details(outcomes))}


def start_governed(place: Place, resource: Resource, bench: Bench) -> Child:
    """Start the job under a document that says nothing but the interval."""
    document = ControlDocument(generation=1, queries={"totals": QueryControl(interval_seconds=INTERVAL)})
    properties = resource.properties(place)
    return by_document(place, "totals.py", arguments(place, resource, bench), properties, document)


def start_plain(place: Place, resource: Resource, bench: Bench) -> Child:
    """Start the job with the same interval as its trigger."""
    trigger = f"--trigger={INTERVAL:g} seconds"
    return plain(
        place, "totals.py", [*arguments(place, resource, bench), trigger], resource.properties(place)
    )


def arguments(place: Place, resource: Resource, bench: Bench) -> list[str]:
    """Return the arguments of the job."""
    paths = [f"--data={bench.data / STEADY.name}", f"--checkpoint={place.checkpoint}", f"--live={place.live}"]
    return [*paths, f"--cut={resource.cut}"]


def run(place: Place, child: Child) -> Outcome:
    """Let a query be live, stall it, and return what came first after that."""
    log = place.events
    with child:
        child.wait_for("the end of the backlog", lambda: after(log, STEADY.backlog_rows), START_SECONDS)
        place.live.touch()
        live_until = time.time() + LIVE_SECONDS
        before = child.wait_for("a live batch", lambda: ended_after(log, live_until), DEADLINE, every=0.01)
        usual = [batch.seconds for batch in log.batches[-5:]]
        stopped_at = time.time()
        stopped = child.stand_still()
        try:
            time.sleep(STALL_SECONDS)
        finally:
            resumed_at = time.time()
            child.go_on(stopped)
        first = child.wait_for(
            "the first batch", lambda: begun_after(log, before.number, resumed_at), DEADLINE, every=0.01
        )
        return Outcome(first, sum(usual) / len(usual), resumed_at - stopped_at)


def after(log: EventLog, row: int) -> Batch | None:
    """Return the first batch that has read up to a row."""
    return next((batch for batch in log.follow() if batch.end_rows[0] >= row), None)


def ended_after(log: EventLog, moment: float) -> Batch | None:
    """Return the first batch with records that was committed after a moment."""
    return next((batch for batch in log.follow() if batch.committed > moment and batch.records), None)


def begun_after(log: EventLog, number: int, moment: float) -> Batch | None:
    """Return the first batch with records after batch `number` that began after a moment.

    A batch that had begun before the stall has its minute in it: it is not the first one after it.
    """
    later: Sequence[Batch] = [batch for batch in log.follow() if batch.number > number and batch.records]
    return next((batch for batch in later if batch.started >= moment), None)


def details(outcomes: Mapping[str, Outcome]) -> dict[str, object]:
    """Return what the ratio was computed from."""
    members: dict[str, object] = {
        "target_seconds": INTERVAL,
        "arriving_per_second": STEADY.live_rows_per_second,
    }
    for name, outcome in outcomes.items():
        members[name] = {
            "over_target": outcome.first.seconds / INTERVAL,
            "first_batch_seconds": outcome.first.seconds,
            "first_batch_records": outcome.first.records,
            "batch_seconds_before": outcome.usual_seconds,
            "stalled_seconds": outcome.stalled_seconds,
        }
    return members


SCENARIO = Scenario("stall", (Figure("first_batch_after_stall", "ratio", Goal("<=", 2)),), measure, repeats=3)
