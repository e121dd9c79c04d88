"""A query that is started again on a backlog: governed with `intervalDuringBacklog: 2m`, and by Spark's default.

It has been through a backlog before, governed, and what that taught of its pace lies beside the checkpoint. Each run
is one of a new driver, in a JVM that has compiled nothing, on a copy of that checkpoint. Spark's own event log says
how long it took, from the first trigger to the commit of the last record.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager

from benchmarks.alternatives.past import Past
from benchmarks.alternatives.scenarios.large import Part, ran
from benchmarks.backlog.engine import Request
from benchmarks.backlog.rounds import GOVERNED, UNCAPPED, interval
from benchmarks.backlog.scenario import Bench, Scenario
from benchmarks.backlog.session import Session, documented_session, plain_session
from benchmarks.kafka.scenario import kept_broker
from benchmarks.local.recording import Recording
from benchmarks.local.results import COLUMNS, Figure, Goal, Measured
from benchmarks.local.statistics import divided, rotated
from headgate_contract import ControlDocument, QueryControl
from support.kafka_connector import connector_conf

QUERY = "aggregation"
PAST = Past(
    QUERY,
    Recording("catchup-history", 5_000_000, 3600, 1, 0, keys=1_000_000),
    Recording("catchup-backlog", 10_000_000, 3600, 1, 0, keys=1_000_000),
)
SECONDS = 120.0
"""`intervalDuringBacklog`: the default of the README, and longer than the backlog takes."""
ROUNDS = 6
"""At the most: a driver is started for each run. Fewer than six pairs give no interval."""
CONTROL = QueryControl(interval_seconds=0.5, interval_during_backlog_seconds=SECONDS, backlog=True)
FIGURE = Figure("catchup_vs_default", "ratio", Goal("<=", 1.25), COLUMNS)


def governed(bench: Bench, name: str) -> AbstractContextManager[Session]:
    """Start a governed driver."""
    document = ControlDocument(generation=1, queries={QUERY: CONTROL})
    return documented_session(bench, name, document, connector_conf())


def read_governed(bench: Bench, request: Request) -> None:
    """Have a governed driver run the query."""
    with governed(bench, "catchup-state") as session:
        session.run(request)


def restarted(bench: Bench, name: str, asked: Request, records: int) -> Part:
    """Start a driver on a copy of the checkpoint; returns what it did."""
    place = f"catchup-{name}"
    started = governed(bench, place) if name == GOVERNED else plain_session(bench, place, connector_conf())
    with started as session:
        return ran(session, asked, records, asked.from_checkpoint)


def measure(bench: Bench) -> Mapping[str, Measured]:
    """Start both in turns, each on the same state; returns the ratio of each pair."""
    runs: dict[str, list[Part]] = {GOVERNED: [], UNCAPPED: []}
    with kept_broker(bench.root / "broker") as broker:
        name, state = PAST.with_state(bench, broker, lambda request: read_governed(bench, request))
        asked = Request(QUERY, [name], bootstrap=broker.bootstrap, from_checkpoint=state)
        records = sum(broker.latest(name).values())
        for turn in range(min(bench.rounds, ROUNDS)):
            for variant in rotated(tuple(runs), turn):
                part = restarted(bench, variant, asked, records)
                runs[variant].append(part)
                bench.tell(f"round {turn + 1}, {variant}: {part.seconds:.1f} s, {sizes(part)}")
    return {FIGURE.id: compared(runs)}


def sizes(part: Part) -> list[int]:
    """Return the records of its batches."""
    return [batch.records for batch in part.batches]


def compared(runs: Mapping[str, list[Part]]) -> Measured:
    """Return the ratio of each pair. Raises ValueError where a run has other keys than another."""
    keys = {part.batches[-1].state_rows for parts in runs.values() for part in parts}
    if len(keys) > 1:
        raise ValueError(f"runs end with {sorted(keys)} keys in their states; compare what they have read")
    seconds = {name: [part.seconds for part in parts] for name, parts in runs.items()}
    ratios = divided(seconds[GOVERNED], seconds[UNCAPPED])
    batches = {name: [sizes(part) for part in parts] for name, parts in runs.items()}
    took = {
        name: [[batch.seconds for batch in part.batches] for part in parts] for name, parts in runs.items()
    }
    details = {"seconds": seconds, "batches": batches, "batch_seconds": took}
    return Measured(ratios, {**interval(ratios), **details})


SCENARIO = Scenario(FIGURE.id, (FIGURE,), measure)
