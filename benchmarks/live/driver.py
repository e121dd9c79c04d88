"""The drivers that are compared: governed, and plain Spark in real-time mode alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.kafka.scenario import Bench, kept_broker, properties
from benchmarks.live.scenario import Bench as LiveBench
from benchmarks.local.child import Child
from benchmarks.local.drivers import Place, by_document, metrics, plain, publish
from headgate_contract import (
    BacklogControl,
    ControlDocument,
    LiveControl,
    QueryControl,
    ReentryControl,
    SourceControl,
)

ECHO = str(Path("benchmarks/live/jobs/echo.py").resolve())
QUERY = "echo"
BATCH_SECONDS = 10.0
DWELL_SECONDS = 5.0
PARTITIONS = 1
KEYS = 100
START_SECONDS = 180.0
LIVE = QueryControl(
    interval_seconds=0.5,
    interval_during_backlog_seconds=10,
)


@contextmanager
def on_a_broker(given: LiveBench) -> Iterator[Bench]:
    """Run a broker, and return what a scenario on Kafka is given."""
    with kept_broker(given.build / "broker") as broker:
        yield Bench(given.build, given.build, given.rounds, given.tell, broker=broker)


@dataclass
class Topics:
    """Where a job reads, and where it writes."""

    into: str
    out: str


@contextmanager
def topics(
    bench: Bench, name: str, into: str | None = None, partitions: int = PARTITIONS
) -> Iterator[Topics]:
    """Make the topics of a job, which are gone afterwards; `into` is one that is there and stays.

    The broker dates what it writes to the other one, so that nobody has to be awake to tell when a result is there.
    """
    with bench.passing_topics(f"{name}-out", 1, 1, message_timestamp_type="LogAppendTime") as (out,):
        if into is not None:
            yield Topics(into, out)
            return
        with bench.passing_topics(f"{name}-in", 1, partitions) as (made,):
            yield Topics(made, out)


@dataclass
class Governed:
    """A driver under a control document."""

    child: Child
    place: Place
    generation: int = 1

    def control(self, *, backlog: bool) -> None:
        """Have the query be in backlog, or not."""
        self.generation += 1
        publish(self.place, document(self.generation, backlog=backlog))

    def await_real_time(self, wanted: bool = True) -> None:
        """Wait until its batches run in real-time mode, or do not."""
        self.child.wait_for(f"real-time mode is {wanted}", lambda: self._is(wanted=wanted), START_SECONDS)

    def _is(self, *, wanted: bool) -> bool | None:
        try:
            told = {sample.name: sample.value for sample in metrics(self.place)}
        except OSError:
            return None
        return True if told.get("headgate_query_real_time") == float(wanted) else None


def document(
    generation: int,
    *,
    backlog: bool,
    sources: Mapping[str, SourceControl] | None = None,
    batch: float = BATCH_SECONDS,
    dwell: float = DWELL_SECONDS,
) -> ControlDocument:
    """Return what the driver is told; a batch of real-time mode lasts `batch` seconds."""
    live = LiveControl(real_time=True, batch_seconds=batch)
    reentry = ReentryControl(dwell_seconds=dwell)
    told = replace(LIVE, backlog=backlog, live=live, reentry=reentry, sources=sources or {})
    return ControlDocument(generation=generation, queries={QUERY: told})


def arguments(bench: Bench, place: Place, used: Topics, *, count: bool) -> list[str]:
    """Return what the job is started with."""
    given = [f"--bootstrap={bench.broker.bootstrap}", f"--topic={used.into}", f"--out={used.out}"]
    return [*given, f"--checkpoint={place.checkpoint}", *([f"--count={KEYS}"] if count else [])]


def conf(place: Place) -> dict[str, str]:
    """Return the Spark properties of both."""
    chosen = properties(place.directory / "events")
    # RocksDB and format 2 of its state are what real-time mode sets by itself.
    return {name: value for name, value in chosen.items() if "stateStore" not in name} | {
        "spark.sql.shuffle.partitions": "1",
        "spark.log.level": "WARN",
    }


@contextmanager
def governed(
    bench: Bench,
    place: Place,
    used: Topics,
    *,
    count: bool,
    pending: int | None = None,
    batch: float = BATCH_SECONDS,
    dwell: float = DWELL_SECONDS,
    more: Mapping[str, str] | None = None,
) -> Iterator[Governed]:
    """Start a governed driver; above so many pending records it says by itself that it is in backlog.

    `more` are Spark properties of this driver alone.
    """
    given = arguments(bench, place, used, count=count)
    backlog = None if pending is None else BacklogControl(pending_records=pending)
    told = document(
        1, backlog=False, sources={used.into: SourceControl(backlog=backlog)}, batch=batch, dwell=dwell
    )
    with by_document(place, ECHO, given, {**conf(place), **(more or {})}, told) as child:
        yield Governed(child, place)


@contextmanager
def micro_batches(bench: Bench, place: Place, used: Topics, *, count: bool) -> Iterator[Child]:
    """Start plain Spark as it is by default: batch after batch of all there is."""
    with plain(place, ECHO, arguments(bench, place, used, count=count), conf(place)) as child:
        yield child


def live_by(
    kind: str,
    place: Place,
    given: Sequence[str],
    conf: Mapping[str, str],
    tuned: Sequence[str],
    told: ControlDocument,
) -> Child:
    """Start the job live in micro-batches: `"plain"` with the options that tune it for them, or under a document."""
    if kind == "plain":
        return plain(place, ECHO, [*given, *tuned], conf)
    return by_document(place, ECHO, given, conf, told)


@contextmanager
def real_time(
    bench: Bench, place: Place, used: Topics, *, count: bool, batch: float = BATCH_SECONDS
) -> Iterator[Child]:
    """Start plain Spark in real-time mode."""
    given: Sequence[str] = arguments(bench, place, used, count=count)
    with plain(place, ECHO, [*given, f"--real-time={batch:g} seconds"], conf(place)) as child:
        yield child
