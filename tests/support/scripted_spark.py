"""A stand-in for Spark and its engine that asks a planner as they do, on a clock of its own.

Sources are asked once at every trigger (100 ms, or as soon as a batch is over), in an order that is kept for a run:
as they were opened up to four, and from five on any. A batch takes what a linear cost says, and its report arrives
before the next question. What the planner leases is held without asking it.
`on_ticks` has triggers where Spark has them: at the full tenths of a second, whenever the batch before was over.
Every answer is checked against what no answer may do: go back, go past the latest position, or leave out a partition.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from headgate_contract import QueryControl
from headgate_contract.held import HeldBy
from headgate_spark.planner.alignment_query import QueryAlignment
from headgate_spark.planner.lease import Lease
from headgate_spark.planner.memory import MemoryBound
from headgate_spark.planner.model import (
    Answer,
    BatchReport,
    Fail,
    GoLive,
    Hold,
    HybridMemory,
    Position,
    QueryFigures,
    ReadLimit,
    Source,
    Survey,
    TakeAll,
    TakeBytes,
    TakeLimit,
    TakeNothing,
    TakeUpTo,
    Trigger,
    TriggerKind,
    Wait,
)
from headgate_spark.planner.pace import Pace
from headgate_spark.planner.query import QueryPlanner
from headgate_spark.planner.shares import room
from headgate_spark.planner.snapshots import SnapshotEnds
from headgate_spark.planner.state import QueryState
from headgate_spark.planner.unread import UnreadTimes

BASE = 0.1
SPARK_KEEPS_ORDER_OF = 4
"""Entries of a Scala `Map`; a larger one is a hash map."""
LONGEST_RUN = 1e5
"""Seconds, of a run in which a source is told to wait."""
NOT_WORTH_A_WAIT = 0.01
"""As in the shim: what is left of a lease when the planner is asked all the same."""
START = 1000.0
"""Not 0: a monotonic clock starts anywhere."""


@dataclass
class Stream:
    """A source with counted offsets."""

    name: str
    latest: dict[str, int]
    start: dict[str, int] = field(default_factory=dict)
    read_limit: ReadLimit = ReadLimit.OFFSETS
    reachable: bool = True
    """False: its latest position cannot be told."""
    opened: bool = False
    """Spark has asked it once; before, nothing can be told."""
    density: float = 1.0
    """Part of the offsets that have a record."""

    def __post_init__(self) -> None:
        self.start = dict.fromkeys(self.latest, 0) | self.start

    @property
    def position(self) -> Position | None:
        return dict(self.start)

    @property
    def tells(self) -> bool:
        return self.opened and self.reachable

    @property
    def pending(self) -> int:
        return sum(max(0, end - self.start.get(partition, 0)) for partition, end in self.latest.items())

    def arrive(self, records: int) -> None:
        partitions = sorted(self.latest)
        for i, partition in enumerate(partitions):
            self.latest[partition] += records // len(partitions) + (i < records % len(partitions))

    def read_on(self, records: float) -> int:
        """Read so many records at most, as real-time mode does: each partition its part."""
        room, read = records / len(self.latest), 0
        for partition, latest in self.latest.items():
            count = int(min(max(0, latest - self.start.get(partition, 0)), room))
            self.start[partition] = self.start.get(partition, 0) + count
            read += count
        return read

    def read(self, answer: Answer) -> int:
        before = dict(self.start)
        if isinstance(answer, TakeAll):
            self.start = {s: max(self.start.get(s, 0), n) for s, n in self.latest.items()}
        else:
            assert isinstance(answer, TakeUpTo), answer
            assert answer.ends.keys() == self.start.keys()
            for partition, end in answer.ends.items():
                assert end >= before[partition], (
                    f"{self.name}/{partition} goes back: {before[partition]} to {end}"
                )
                assert end <= max(before[partition], self.latest.get(partition, 0)), (
                    f"{self.name}/{partition}: {end} is not there"
                )
            new = {s: n for s, n in self.latest.items() if s not in before}
            self.start = dict(answer.ends) | new
        return int((sum(self.start.values()) - sum(before.values())) * self.density)


@dataclass
class Uncounted:
    """A source whose offsets say nothing: it has `files`, each with so many records."""

    name: str
    read_limit: ReadLimit
    files: list[int] = field(default_factory=list)
    position: None = None
    size: Callable[[int], int] | None = None
    """Bytes of a file with so many records; `None`: nobody can tell."""
    read_bytes: int | None = None
    """Of the files of the last batch."""

    @property
    def pending(self) -> int:
        return sum(self.files)

    def arrive(self, records: int) -> None:
        self.files.append(records)

    def read(self, answer: Answer) -> int:
        if isinstance(answer, TakeAll):
            return self._read_files(len(self.files))
        assert isinstance(answer, TakeLimit | TakeBytes), answer
        assert answer.count >= 1
        if isinstance(answer, TakeBytes):
            assert self.size is not None, "nothing is known of their size"
            upto = accumulate(map(self.size, self.files))
            return self._read_files(max(1, sum(size <= answer.count for size in upto)))
        if self.read_limit is ReadLimit.FILES:
            return self._read_files(answer.count)
        left = max(0, self.pending - answer.count)
        count = self.pending - left
        self.files = [left] if left else []
        return count

    def _read_files(self, count: int) -> int:
        taken, self.files = self.files[:count], self.files[count:]
        self.read_bytes = None if self.size is None else sum(map(self.size, taken))
        return sum(taken)


@dataclass(frozen=True)
class Batch:
    """A batch as it was run."""

    planned_at: float
    records: Mapping[str, int]
    seconds: float

    @property
    def total(self) -> int:
        return sum(self.records.values())

    @property
    def ended_at(self) -> float:
        return self.planned_at + self.seconds


@dataclass
class Leased:
    """A lease, when it began, and what was watched then."""

    lease: Lease
    since: float
    latest: Mapping[str, Position | None]
    starts: Mapping[str, Position | None]
    looked: float = field(init=False)

    def __post_init__(self) -> None:
        self.looked = self.since

    def stands(self, now: float, look: Callable[[Collection[str]], Mapping[str, Position | None]]) -> bool:
        if not self.since <= now < self.since + self.lease.seconds - NOT_WORTH_A_WAIT - 1e-9:
            return False
        if now < self.looked + self.lease.look_seconds - BASE / 2:
            return True
        self.looked = now
        latest = look(self.lease.watched)
        return not any(self._has_news(name, latest.get(name)) for name in self.lease.watched)

    def _has_news(self, name: str, latest: Position | None) -> bool:
        most, start = self.lease.watched[name], self.starts[name]
        if latest == self.latest.get(name):
            return False
        return most is None or latest is None or start is None or sum(room(start, latest).values()) > most


class ScriptedSpark:
    """One run of a query. Time passes only in `round`, `run_for` and `run_until`."""

    def __init__(
        self,
        *sources: Stream | Uncounted,
        control: QueryControl | None = None,
        trigger: Trigger | None = None,
        memory: HybridMemory | None = None,
        fixed_seconds: float = 0.1,
        records_per_second: float = 50_000.0,
        now: float = START,
        leases: bool = True,
        on_ticks: bool = False,
        resumed: Mapping[str, Position] | None = None,
        last_batch: int | None = None,
        bound: MemoryBound | None = None,
        pace: Pace | None = None,
        alignment: QueryAlignment | None = None,
        unread: UnreadTimes | None = None,
        snapshots: SnapshotEnds | None = None,
        order: Sequence[str] | None = None,
    ) -> None:
        for source in sources:
            if isinstance(source, Stream) and source.name in (resumed or {}):
                source.opened = True  # the shim is told where it goes on
        self.unplanned = {source.name for source in sources} - (resumed or {}).keys()
        """Sources without an offset in the checkpoint: one that answers its start makes a batch."""
        self.leases = leases
        self.on_ticks = on_ticks
        self.sources = {source.name: source for source in sources}
        self.order = list(self.sources if order is None else order)
        """In which Spark asks. Drawn from five sources on, but the same for a run that is repeated."""
        if order is None and len(self.order) > SPARK_KEEPS_ORDER_OF:
            random.Random(len(self.order)).shuffle(self.order)
        self.trigger = trigger or Trigger()
        self.now = self.began = now
        self.fixed_seconds = fixed_seconds
        self.records_per_second = records_per_second
        self.saved: list[HybridMemory] = []
        self.save: Callable[[HybridMemory], None] = self.saved.append
        self.batches: list[Batch] = []
        self.live_batches: list[Batch] = []
        """Those of real-time mode."""
        self.live_records_per_second = math.inf
        """That real-time mode reads of each source."""
        self.surveys: list[tuple[float, tuple[str, ...]]] = []
        self.answers: dict[str, Answer] = {}
        self.asked = 0
        """How often the planner was asked."""
        self._leased: Leased | None = None
        self.ended: str | None = None
        """Why the run is over: `idle`, or the message it failed with."""
        self.arrivals: Callable[[float], None] = lambda _: None
        """Called with the seconds that have passed, before each round."""
        self.while_running: Callable[[float, float], None] = lambda _begin, _end: None
        """Called with when a batch begins and ends, before it has ended."""
        self._last_arrival = now
        self.planner = QueryPlanner(
            QueryState(
                "delays",
                self.trigger,
                [Source(s.name, s.read_limit) for s in sources],
                now=now,
                hybrid=memory,
                resumed=resumed,
                unplanned=None if resumed is None else self.unplanned,
                batch=last_batch,
                memory=bound,
                pace=pace,
                alignment=alignment,
                unread=unread,
                snapshots=snapshots,
            )
        )
        self.control(control)

    def control(self, control: QueryControl | None) -> None:
        self.controlled = control
        self.planner.control(control, self.now)
        self._leased = None

    # Time

    def round(self) -> dict[str, Answer]:
        """Ask every source once, run the batch if there is one, and move on to the next trigger."""
        self.arrivals(self.now - self._last_arrival)
        self._last_arrival = self.now
        asked = self.asked
        self._tell_trigger()
        self.answers = {name: self._leased_answer(name) or self.ask(name) for name in self.order}
        planned_at, before = self.now, {name: source.position for name, source in self.sources.items()}
        if any(isinstance(answer, GoLive) for answer in self.answers.values()):
            self._run_live(planned_at)
            return self.answers
        read = {
            name: self.sources[name].read(answer)
            for name, answer in self.answers.items()
            if isinstance(answer, TakeAll | TakeUpTo | TakeLimit | TakeBytes)
        }
        if sum(read.values()) > 0 or any(self.sources[name].position != at for name, at in before.items()):
            self._run_batch(planned_at, read)
        elif TakeNothing() in (self.answers[name] for name in self.unplanned):
            self._run_empty_batch()
        else:
            self._no_batch(was_asked=self.asked > asked)
        return self.answers

    def _tell_trigger(self) -> None:
        """Tell what of the last trigger has come to Spark: here, all of it."""
        self.planner.trigger_begins(
            [name for name, answer in self.answers.items() if not isinstance(answer, Hold | Fail)], self.now
        )

    def ask(self, name: str) -> Answer:
        """Ask one source, waiting as it is told to."""
        self.asked += 1
        source = self.sources[name]
        if isinstance(source, Stream):
            source.opened = True
        while True:
            answer = self.planner.admit(name, source.position, self.now)
            if isinstance(answer, Survey):
                self.surveys.append((self.now, answer.sources))
                answer = self.planner.plan(name, self._latest(answer.sources), self.now)
            assert not isinstance(answer, Survey)
            if (memory := self.planner.to_remember) is not None:
                self.save(memory)
                self.planner.remembered(memory)
            if isinstance(answer, Fail):
                self.ended = answer.message
            if not isinstance(answer, Wait):
                return answer
            assert 0 < answer.seconds <= 1.0
            self.now += answer.seconds
            assert self.now < self.began + LONGEST_RUN, f"{name} is waited for without end"

    def run_for(self, seconds: float) -> None:
        """Run rounds until so many seconds have passed."""
        self._run(lambda: False, seconds)

    def run_until(self, done: Callable[[], bool], within: float = 3600.0) -> None:
        """Run rounds until `done()`, or until the run has ended; fails where `within` seconds pass before."""
        self._run(done, within)
        assert done() or self.ended is not None, f"not within {within} s"

    def _run(self, done: Callable[[], bool], seconds: float) -> None:
        deadline = self.now + seconds
        while self.now < deadline - 1e-9 and not done() and self.ended is None:
            self.round()

    def _run_empty_batch(self) -> None:
        self._note_planned()
        self.now += self.fixed_seconds
        self._tell_trigger()
        self.planner.batch_ended(BatchReport(dict.fromkeys(self.sources, 0), self.fixed_seconds, self.now))

    def _run_batch(self, planned_at: float, read: Mapping[str, int]) -> None:
        self._note_planned()
        seconds = self.fixed_seconds + sum(read.values()) / self.records_per_second
        self.while_running(self.now, self.now + seconds)
        self.now += seconds
        self.batches.append(Batch(planned_at, read, seconds))
        known = {name: getattr(self.sources[name], "read_bytes", None) for name in read}
        file_bytes = {name: size for name, size in known.items() if size is not None}
        self._tell_trigger()
        self.planner.batch_ended(BatchReport(read, seconds, self.now, len(self.batches) - 1, file_bytes))
        if self.on_ticks:
            self.now = max(self.now, self._next_trigger(planned_at))

    def _run_live(self, planned_at: float) -> None:
        """Read all sources, for as long as each of them was told."""
        (answer,) = set(self.answers.values())
        assert isinstance(answer, GoLive), "all sources of a trigger or none"
        self._note_planned()
        self.now += answer.seconds
        self.arrivals(answer.seconds)
        self._last_arrival = self.now
        streams = [source for source in self.sources.values() if isinstance(source, Stream)]
        read = {each.name: each.read_on(self.live_records_per_second * answer.seconds) for each in streams}
        self.live_batches.append(Batch(planned_at, read, answer.seconds))
        self._tell_trigger()
        number = len(self.batches) + len(self.live_batches) - 1
        self.planner.batch_ended(BatchReport(read, answer.seconds, self.now, number))

    def _note_planned(self) -> None:
        self.unplanned -= {name for name, answer in self.answers.items() if not isinstance(answer, Hold)}

    def _leased_answer(self, name: str) -> Answer | None:
        """The answer that needs no asking: the last one, while a lease stands."""
        if self._leased is not None and not self._leased.stands(self.now, self._latest):
            self._leased = None
        return None if self._leased is None else self.answers[name]

    def _take_lease(self) -> None:
        lease = self.planner.lease(self.now) if self.leases else None
        if lease is not None:
            starts = {name: self.sources[name].position for name in lease.watched}
            self._leased = Leased(lease, self.now, self._latest(lease.watched), starts)

    def _no_batch(self, *, was_asked: bool) -> None:
        if was_asked:
            self._take_lease()
        if self.trigger.kind is not TriggerKind.PROCESSING_TIME and self.ended is None:
            self.ended = "idle"
        self.now = self._next_trigger(self.now)

    def _next_trigger(self, last: float) -> float:
        return (math.floor(last / BASE + NOT_WORTH_A_WAIT) + 1) * BASE if self.on_ticks else last + BASE

    def _latest(self, names: Collection[str]) -> dict[str, Position | None]:
        streams = {name: self.sources[name] for name in names}
        return {n: dict(s.latest) for n, s in streams.items() if isinstance(s, Stream) and s.tells}

    # What is seen

    @property
    def figures(self) -> QueryFigures:
        return self.planner.figures(self.now)

    def source(self, name: str):
        return next(s for s in self.figures.sources if s.name == name)

    def held_by(self, name: str) -> HeldBy | None:
        answer = self.answers[name]
        return answer.reason if isinstance(answer, Hold) else None

    @property
    def planned_at(self) -> list[float]:
        """When batches were planned, in seconds since the beginning of the run."""
        return [round(batch.planned_at - self.began, 6) for batch in self.batches]

    @property
    def sizes(self) -> list[int]:
        return [batch.total for batch in self.batches]
