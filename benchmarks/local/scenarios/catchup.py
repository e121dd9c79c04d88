"""Catching up on an hour, then live: governed, plain at low latency, and plain uncapped.

Ten million records of a million keys are there when the query starts. Low latency is what a job does that is
tuned for live data: small batches. Uncapped is Spark's default: one batch of everything. Headgate is to be near
the second while there is a backlog and near the first once there is none, with one and the same job.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.event_log import Batch
from benchmarks.local.child import Child
from benchmarks.local.drivers import RESOURCE, START_SECONDS, Place, Resource, by_resource, plain
from benchmarks.local.recording import HOUR, KEYS, prepare
from benchmarks.local.results import Figure, Goal, Measured
from benchmarks.local.scenario import Bench, Scenario
from benchmarks.local.statistics import divided, percentile, rotated

LOW_LATENCY = ("--rows-per-batch=50000", "--trigger=500 milliseconds")
CATCH_UP_SECONDS = 400.0
"""The longest that a run is waited for."""
LIVE_SECONDS = 120.0
"""Shorter than the recording is live, so that arrival never ends while it is measured."""
SETTLING_SECONDS = 60.0
"""Staleness counts from here on, in every run. Catching up at low latency takes 200 small batches, which leave a JVM
that has compiled whatever such a batch runs; after ten large ones the first small ones are still being compiled, and
batches become shorter for a minute. What was before is in the details."""


@dataclass(frozen=True)
class Variant:
    """One way to run the job."""

    name: str
    start: Callable[[Resource, Path], tuple[Place, Child]]
    """Start it under a directory; returns where it runs, and the process."""
    goes_live: bool = False


@dataclass(frozen=True)
class Outcome:
    """What one run came to."""

    catch_up_seconds: float
    """From the start of the first batch to the commit that reached what was there."""
    commits: int
    """Batches of the catch-up, those that only moved the watermark on included."""
    largest_batch: int
    staleness: Sequence[float] = ()
    """Of each live batch, once settled: its commit minus the arrival of its oldest record."""
    settling: Sequence[float] = ()
    """The same of the live batches before."""


def run_plain(name: str, extra: Sequence[str] = ()) -> Callable[[Resource, Path], tuple[Place, Child]]:
    """Return how the script is started as anybody would start it."""

    def start(resource: Resource, root: Path) -> tuple[Place, Child]:
        place = Place(root / name).cleared()
        arguments = [*resource.arguments(place), *extra]
        return place, plain(place, "totals.py", arguments, resource.properties(place))

    return start


def run_committed(resource: Resource, root: Path) -> tuple[Place, Child]:  # noqa: ARG001 (its place is fixed)
    """Start the committed resource as it is."""
    place = resource.place.cleared()
    return place, by_resource(place, RESOURCE)


def run_in_one_batch(resource: Resource, root: Path) -> tuple[Place, Child]:
    """Start the resource with `intervalDuringBacklog: 0s`."""
    place = Place(root / "governed-0s").cleared()
    return place, by_resource(place, resource.write(place, interval_during_backlog="0s"))


PLAIN_LOW = Variant("plain_low_latency", run_plain("plain-low-latency", LOW_LATENCY), goes_live=True)
PLAIN_UNCAPPED = Variant("plain_uncapped", run_plain("plain-uncapped"))
GOVERNED = Variant("governed_2m", run_committed, goes_live=True)
GOVERNED_0S = Variant("governed_0s", run_in_one_batch)
VARIANTS = (GOVERNED, PLAIN_UNCAPPED, GOVERNED_0S, PLAIN_LOW)


def measure(bench: Bench) -> Mapping[str, Measured]:
    """Run every variant once per round; each ratio is between runs of one round."""
    resource = Resource.read()
    prepare(HOUR, resource.data)
    outcomes: dict[str, list[Outcome]] = {variant.name: [] for variant in VARIANTS}
    for turn in range(bench.rounds):
        for variant in rotated(VARIANTS, turn):
            outcome = run(variant, resource, bench.root)
            outcomes[variant.name].append(outcome)
            bench.tell(f"round {turn + 1}, {variant.name}: {told(outcome)}")
    return figures(outcomes)


def run(variant: Variant, resource: Resource, root: Path) -> Outcome:
    """Make one run."""
    place, child = variant.start(resource, root)
    with child:
        log = place.events
        child.wait_for(
            "the end of the backlog", lambda: caught_up(log.follow()), START_SECONDS + CATCH_UP_SECONDS
        )
        if not variant.goes_live:
            return outcome(log.batches)
        place.live.touch()
        live_since = place.live.stat().st_mtime
        end = live_since + LIVE_SECONDS
        child.wait_for(
            "the live batches",
            lambda: next((b for b in log.follow() if b.committed > end), None),
            LIVE_SECONDS + CATCH_UP_SECONDS,
        )
        return outcome(log.batches, live_since)


def caught_up(batches: Sequence[Batch]) -> Batch | None:
    """Return the batch whose commit reached what was there at the start; None: not yet."""
    return next((batch for batch in batches if batch.end_rows[0] >= HOUR.backlog_rows), None)


def outcome(batches: Sequence[Batch], live_since: float | None = None) -> Outcome:
    """Compute what a run came to. Raises ValueError where the state is not what the records make it."""
    last = caught_up(batches)
    if last is None or last.state_rows != KEYS:
        raise ValueError(f"the state has {last and last.state_rows} rows after the backlog, not {KEYS}")
    during = [batch for batch in batches if batch.number <= last.number]
    stale = [] if live_since is None else staleness(batches, live_since)
    return Outcome(
        catch_up_seconds=last.committed - batches[0].started,
        commits=len(during),
        largest_batch=max(batch.records for batch in during),
        staleness=tuple(seconds for arrived, seconds in stale if arrived >= SETTLING_SECONDS),
        settling=tuple(seconds for arrived, seconds in stale if arrived < SETTLING_SECONDS),
    )


def staleness(batches: Sequence[Batch], live_since: float) -> list[tuple[float, float]]:
    """Return of each live batch with records when its oldest one arrived, and how stale that was at the commit.

    Both in seconds, the former from the beginning of the live part.
    """
    live = [batch for batch in batches if batch.first_rows[0] >= HOUR.backlog_rows and batch.records]
    arrived = [HOUR.arrived_after(batch.first_rows[0]) for batch in live]
    return [(after, batch.committed - live_since - after) for batch, after in zip(live, arrived, strict=True)]


def told(outcome: Outcome) -> str:
    """Return an outcome in words."""
    live = f", staleness p95 {percentile(outcome.staleness, 95):.2f} s" if outcome.staleness else ""
    return f"caught up in {outcome.catch_up_seconds:.1f} s, {outcome.commits} commits{live}"


def figures(outcomes: Mapping[str, Sequence[Outcome]]) -> dict[str, Measured]:
    """Compute the ratios of each round."""
    seconds = {name: [run.catch_up_seconds for run in runs] for name, runs in outcomes.items()}
    p95 = {name: [percentile(run.staleness, 95) for run in outcomes[name]] for name in (LOW, LIVE)}
    settling = {name: [percentile(run.settling, 95) for run in outcomes[name]] for name in (LOW, LIVE)}
    return {
        "catchup_vs_low_latency": ratios(seconds, LOW, LIVE, outcomes),
        "catchup_vs_uncapped": ratios(seconds, LIVE, UNCAPPED, outcomes),
        "catchup_0s_vs_low_latency": ratios(seconds, LOW, GOVERNED_0S.name, outcomes),
        "catchup_0s_vs_uncapped": ratios(seconds, GOVERNED_0S.name, UNCAPPED, outcomes),
        "staleness_vs_low_latency": Measured(
            divided(p95[LIVE], p95[LOW]),
            {
                "staleness_p95_seconds": p95,
                "measured_seconds": LIVE_SECONDS - SETTLING_SECONDS,
                "settling_seconds": SETTLING_SECONDS,
                "settling_p95_seconds": settling,
            },
        ),
    }


LOW, UNCAPPED, LIVE = PLAIN_LOW.name, PLAIN_UNCAPPED.name, GOVERNED.name


def ratios(
    seconds: Mapping[str, Sequence[float]], above: str, below: str, outcomes: Mapping[str, Sequence[Outcome]]
) -> Measured:
    """Return the ratio of two variants in each round, with what it was computed from."""
    names = (above, below)
    details = {
        "catch_up_seconds": {name: seconds[name] for name in names},
        "commits": {name: [run.commits for run in outcomes[name]] for name in names},
        "largest_batch_records": {name: [run.largest_batch for run in outcomes[name]] for name in names},
    }
    return Measured(divided(seconds[above], seconds[below]), details)


SCENARIO = Scenario(
    "catchup",
    (
        Figure("catchup_vs_low_latency", "ratio", Goal(">=", 5)),
        Figure("catchup_vs_uncapped", "ratio", Goal("<=", 2)),
        Figure("catchup_0s_vs_low_latency", "ratio", Goal(">=", 7)),
        Figure("catchup_0s_vs_uncapped", "ratio", Goal("<=", 1.25)),
        Figure("staleness_vs_low_latency", "ratio", Goal("<=", 1.10)),
    ),
    measure,
)
