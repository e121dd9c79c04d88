"""Spark and the shim, made up, before the real governor: questions come in any order, twice, late or never.

What is taken for given of Spark is what it does: each source is asked once per trigger, in an order that is drawn for
each run, and a batch is made of the answers that came in time. What the shim does where a call fails is drawn too:
the question is asked twice, its answer is lost, or it arrives when others have been asked meanwhile. Streams are told
of in any order and twice, some of them when they are first asked. A run may end in the middle of a round, or of a
batch, which then runs again. The planner may end as well, and another one takes up the run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from headgate_contract import ControlDocument, EventTimeControl, QueryControl
from headgate_spark.engine.governor import Governor
from headgate_spark.engine.resumption import Ends, Resumption
from headgate_spark.engine.services import Services
from headgate_spark.planner.event_times import Partition
from headgate_spark.planner.model import Trigger as SparkTrigger
from support.engine import Locks, MadeUpCheckpoint, Unmeasured, begins, described
from support.event_logs import FakeEventTimes, Log

BASE = 0.1
FIXED_SECONDS, RECORDS_PER_SECOND = 0.2, 50_000.0
FAULTS = ("doubled", "lost", "late")
QUERY = "copy"


class MadeUpTimes(FakeEventTimes):
    """Event times of the sources of a run."""

    def decode_by(self, decoders: Mapping[str, object]) -> None:
        pass

    def open(self, source: str, options: Mapping[str, str]) -> None:
        pass

    def prepare(self, source: str, max_future_seconds: float, event_time: EventTimeControl | None) -> None:
        pass

    def forget(self, source: str) -> None:
        pass

    def close(self) -> None:
        pass


@dataclass(frozen=True)
class Question:
    """One that is under way, and arrives when it is its turn."""

    handle: int
    trigger: str
    start: str


@dataclass(frozen=True)
class Trigger:
    """What came of one trigger."""

    at: float
    read: Mapping[str, int]
    """Records by source; none that was not read."""
    pending: Mapping[str, int]
    """Before it."""
    faults: int
    asked: int
    lost: Mapping[str, int]
    """Ends that the planner gave and that never came to Spark, by source."""
    unheard: int
    """Sources of which the planner heard nothing in time: the others were planned with them, or without."""


@dataclass
class GovernedQuery:
    """One query under a governor of its own, on a clock of its own."""

    sources: list[str]
    latest: dict[str, int]
    control: QueryControl
    random: Random
    faulty: float = 0.0
    """How many of the questions meet a fault."""
    faults: Sequence[str] = FAULTS
    """Which ones."""
    now: float = 1000.0
    times: Mapping[str, Log] = field(default_factory=dict)
    """Event times of records, of sources that are aligned."""
    late: bool = True
    """Whether a stream may be told of after others have been planned. Counts begin anew then."""
    job: SparkTrigger = field(default_factory=SparkTrigger)
    """What the job asks for."""
    epoch: float = 0.0
    """Seconds since 1970 at 0 of the clock."""
    position: dict[str, int] = field(init=False)
    triggers: list[Trigger] = field(default_factory=list)
    batches: int = 0
    output: dict[int, dict[str, tuple[int, int]]] = field(default_factory=dict)
    """By batch, what the sink has of each source: records from the first number up to the second."""
    _runs: int = 0
    _number: int = 0
    _questions: int = 0
    _passed: dict[int, int] = field(default_factory=dict)
    _late: list[Question] = field(default_factory=list)
    _leased_until: float = 0.0
    _untold: set[str] = field(default_factory=set)
    """Streams of which the governor is told when they are first asked."""
    _report_untold: str | None = None
    """How the last batch went, until the planner is known to have heard it."""
    _dies_in_batch: bool = False

    def __post_init__(self) -> None:
        self.position = dict.fromkeys(self.sources, 0)
        self.handles: dict[str, int] = {}
        self._faults = self._asked = self._unheard = 0
        self._lost: dict[str, int] = {}
        self.checkpoint = MadeUpCheckpoint()
        self.governor = self._a_governor()
        self.governor.take_document(ControlDocument(generation=1, queries={QUERY: self.control}))
        self.restart()

    def _a_governor(self) -> Governor:
        logs = {Partition(name, f"{name}/0"): log for name, log in self.times.items()}
        return Governor(
            Services(
                acquire_lock=Locks().acquire,
                open_checkpoint=lambda _: self.checkpoint,  # type: ignore[arg-type,return-value]
                observer=Unmeasured(),
                recall=self._recall,
                event_times=lambda: MadeUpTimes(logs),
                clock=lambda: self.now,
                wall_clock=lambda: self.epoch + self.now,
            )
        )

    def _recall(self) -> None:
        self._leased_until = 0.0

    # What Spark does ---------------------------------------------------------------------------

    def restart(self) -> None:
        """Begin another run: its streams are new, and so is the order in which it asks them."""
        for handle in self._any_order(self.handles.values()):
            self.governor.closed(handle, None)
        self._runs += 1
        self.handles = {name: self._runs * 100 + i for i, name in enumerate(self.sources, 1)}
        self.order = self.random.sample(self.sources, len(self.sources))
        self._number, self._passed, self._late = 0, {}, []
        self._leased_until, self._report_untold = 0.0, None
        self._begin()
        self._untold = {name for name in self.sources if self.late and self.random.random() < self.faulty}
        told = [name for name in self.sources if name not in self._untold]
        for name in self._any_order([*told, *(name for name in told if self.random.random() < self.faulty)]):
            self._open(name)

    def _begin(self, **more: object) -> None:
        begins(self.governor, run=self._run, name=QUERY, interval_seconds=self.job.interval_seconds, **more)
        kept = bool(self.checkpoint.left.ends)
        self._goes_on = {
            name: f"resume:{self._offset(name, self.position[name])}" if kept else "ok"
            for name in self.sources
        }

    def planner_restarts(self) -> None:
        """Have another planner, which is told of the run and its streams, and knows nothing else of them."""
        self.governor = self._a_governor()
        self._late, self._leased_until = [], 0.0
        self._begin(resumed=True)
        for name in self._any_order(name for name in self.sources if name not in self._untold):
            self._open(name)

    def restart_in_mid_round(self, asked: int) -> None:
        """End the run when so many sources have been asked, none of whose answers has come to anything."""
        self._number += 1
        for name in self.order[:asked]:
            self._end(name)
        self.restart()

    def restart_in_mid_batch(self) -> None:
        """End the run in its next batch, which the next run begins with, without asking anybody.

        It goes on where there is none within a minute.
        """
        self._dies_in_batch, until = True, self.now + 60
        while self._dies_in_batch and self.now < until:
            self.trigger()
        self._dies_in_batch = False

    def _any_order(self, of: Iterable[Any]) -> list[Any]:
        every = list(of)
        return self.random.sample(every, len(every))

    def _open(self, name: str) -> None:
        described_as = described(
            self.handles[name],
            topic=name,
            query=QUERY,
            run=self._run,
            index=self.sources.index(name),
        )
        answer = self.governor.opened(self.handles[name], described_as)
        assert answer == self._goes_on[name], f"{name} goes on elsewhere: {answer}"

    def run_for(self, seconds: float) -> None:
        """Run triggers until that time has passed."""
        until = self.now + seconds
        while self.now < until:
            self.trigger()

    def trigger(self) -> Trigger:
        """Ask every source once, and run what comes of it."""
        self._number += self.random.choice(
            [1, 1, 2]
        )  # the shim counts triggers of which nobody is told as well
        self._faults = self._asked = self._unheard = 0
        self._lost = {}
        at, ends = self.now, {}
        pending = {name: self.latest[name] - self.position[name] for name in self.sources}
        for name in self.order:
            if self.now >= self._leased_until and (end := self._end(name)) is not None:
                ends[name] = end
        read = {name: end - self.position[name] for name, end in ends.items() if end > self.position[name]}
        assert all(end >= self.position[name] for name, end in ends.items())
        assert all(end <= self.latest[name] for name, end in ends.items())
        if read:
            self.output[self.batches] = {
                name: (end - read[name], end) for name, end in ends.items() if name in read
            }
        self.position |= ends
        if read and self._dies_in_batch:
            self._die_in(read)
        elif read:
            self._report(read)
        else:
            self.now += BASE
        self.triggers.append(Trigger(at, read, pending, self._faults, self._asked, self._lost, self._unheard))
        return self.triggers[-1]

    def _die_in(self, read: Mapping[str, int]) -> None:
        """Leave a batch that is planned and not committed; the next run does it before it asks anybody."""
        self._dies_in_batch = False
        self._note(repeats=True)
        self.restart()
        self._report(read)

    def _note(self, *, repeats: bool) -> None:
        offsets = tuple(self._offset(name, self.position[name]) for name in self.sources)
        self.checkpoint.left = Resumption(self.batches, repeats, Ends(offsets))

    def _report(self, read: Mapping[str, int]) -> None:
        seconds = FIXED_SECONDS + sum(read.values()) / RECORDS_PER_SECOND
        self.now += seconds
        took = {"triggerExecution": seconds * 1000, "addBatch": seconds * 1000}
        rows = [{"numInputRows": read.get(name, 0)} for name in self.sources]
        self._note(repeats=False)
        self._report_untold = json.dumps({"batchId": self.batches, "durationMs": took, "sources": rows})
        self.batches += 1

    # What the shim does ------------------------------------------------------------------------

    def _end(self, name: str) -> int | None:
        """The end of the next batch, as the planner has it; `None`: held."""
        self._faults += len(self._untold)  # while one is not known, the others are planned without it
        self._unheard += len(self._untold)
        if name in self._untold or self.random.random() < self.faulty / 10:
            self._untold.discard(name)
            self._open(name)
        question = Question(self.handles[name], self._told(), self._offset(name, self.position[name]))
        fault = self.random.choice(self.faults) if self.random.random() < self.faulty else None
        self._faults += fault is not None
        self._asked += 1
        if fault == "late":
            self._late.append(question)
            self._unheard += 1
            return None
        answer = self._ask(question)
        while answer.startswith("wait:"):
            if self.governor.table.is_stopping:
                return None  # the stop interrupts it
            self.now += int(answer.removeprefix("wait:")) / 1000
            answer = self._ask(question)
        if fault == "doubled":
            again = self._ask(question)
            assert again == answer, f"asked twice, {name} was told {answer} and then {again}"
        for other in [late for late in self._late if self.random.random() < 0.5]:
            self._late.remove(other)
            self._ask(other)
        if fault == "lost":
            if answer.startswith("offset:"):
                self._lost[name] = self._offset_in(name, answer)
            return None
        return self._carried_out(name, answer)

    def _carried_out(self, name: str, answer: str) -> int | None:
        verb, _, rest = answer.partition(":")
        if verb == "lease":
            self._leased_until = self.now + int(rest.split(":")[0]) / 1000
        if verb in ("hold", "lease"):
            return None
        self._passed[self.handles[name]] = self._number
        if verb == "all":
            return self.latest[name]
        assert verb == "offset", answer
        return self._offset_in(name, answer)

    @staticmethod
    def _offset_in(name: str, answer: str) -> int:
        return int(json.loads(answer.removeprefix("offset:"))[name]["0"])

    def _ask(self, question: Question) -> str:
        self._tell()
        answer = self.governor.admit(question.handle, question.trigger, question.start)
        if not answer.startswith("survey:"):
            return answer
        names = {handle: name for name, handle in self.handles.items()}
        asked = [int(handle) for handle in answer.removeprefix("survey:").split(",")]
        latest = {handle: self._offset(names[handle], self.latest[names[handle]]) for handle in asked}
        return self.governor.plan(question.handle, question.trigger, latest)

    def _tell(self) -> None:
        """Say how the last batch went: once, or again where the shim does not know that it was heard."""
        if self._report_untold is not None:
            self.governor.progressed(self._run, self._report_untold)
            self._report_untold = self._report_untold if self.random.random() < self.faulty else None

    @property
    def _run(self) -> str:
        return f"r{self._runs}"

    def _told(self) -> str:
        self._questions += 1
        return f"{self._number}.{self._questions}:" + ",".join(
            f"{handle}={number}" for handle, number in self._passed.items()
        )

    @staticmethod
    def _offset(name: str, position: int) -> str:
        return json.dumps({name: {"0": position}})

    # What is seen ------------------------------------------------------------------------------

    @property
    def planned(self) -> dict[str, int]:
        """What the planner of this run counts as planned, by source."""
        figures = next((run.figures() for run in self.governor.runs), None)
        return {} if figures is None else {s.name: s.planned_records_total for s in figures.sources}
