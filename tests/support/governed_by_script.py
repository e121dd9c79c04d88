"""Spark and the shim, made up, before the real governor: questions come in any order, twice, late or never.

What is taken for given of Spark is what it does: each source is asked once per trigger, in an order that is drawn for
each run, and a batch is made of the answers that came in time. What the shim does where a call fails is drawn too:
the question is asked twice, its answer is lost, or it arrives when others have been asked meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

from headgate_contract import ControlDocument, QueryControl
from headgate_spark.engine.governor import Governor
from support.engine import Locks, MadeUpCheckpoint, MadeUpQuery, Unmeasured, described, started

BASE = 0.1
FIXED_SECONDS, RECORDS_PER_SECOND = 0.2, 50_000.0
FAULTS = ("doubled", "lost", "late")
QUERY = "copy"


class ReportingQuery(MadeUpQuery):
    """A query with the report of its last batch."""

    report: str | None = None

    def last_progress(self) -> str | None:
        return self.report


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


@dataclass
class GovernedQuery:
    """One query under a governor of its own, on a clock of its own."""

    sources: list[str]
    latest: dict[str, int]
    control: QueryControl
    random: Random
    faulty: float = 0.0
    """How many of the questions meet a fault."""
    now: float = 1000.0
    position: dict[str, int] = field(init=False)
    triggers: list[Trigger] = field(default_factory=list)
    batches: int = 0
    _runs: int = 0
    _number: int = 0
    _questions: int = 0
    _passed: dict[int, int] = field(default_factory=dict)
    _late: list[Question] = field(default_factory=list)
    _leased_until: float = 0.0

    def __post_init__(self) -> None:
        self.position = dict.fromkeys(self.sources, 0)
        self.governor = Governor(
            acquire_lock=Locks().acquire,
            open_checkpoint=lambda _: MadeUpCheckpoint(),  # type: ignore[arg-type,return-value]
            observer=Unmeasured(),
            clock=lambda: self.now,
        )
        self.governor.take_document(ControlDocument(generation=1, queries={QUERY: self.control}))
        self.restart()

    # What Spark does ---------------------------------------------------------------------------

    def restart(self) -> None:
        """Begin another run: its streams are new, and so is the order in which it asks them."""
        for handle in getattr(self, "handles", {}).values():
            self.governor.closed(handle)
        self._runs += 1
        self.handles = {name: self._runs * 100 + i for i, name in enumerate(self.sources, 1)}
        self.order = self.random.sample(self.sources, len(self.sources))
        self.query, self._number, self._passed, self._late, self._leased_until = (
            ReportingQuery(),
            0,
            {},
            [],
            0.0,
        )
        for name, handle in self.handles.items():
            self.governor.opened(handle, described(handle, topic=name, query=QUERY, run=f"r{self._runs}"))
        started(self.governor, self.query, run=f"r{self._runs}", name=QUERY)

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
        self._faults = self._asked = 0
        at, ends = self.now, {}
        pending = {name: self.latest[name] - self.position[name] for name in self.sources}
        for name in self.order:
            if self.now >= self._leased_until and (end := self._end(name)) is not None:
                ends[name] = end
        read = {name: end - self.position[name] for name, end in ends.items() if end > self.position[name]}
        assert all(end >= self.position[name] for name, end in ends.items())
        assert all(end <= self.latest[name] for name, end in ends.items())
        self.position |= ends
        if read:
            self._report(read)
        else:
            self.now += BASE
        self.triggers.append(Trigger(at, read, pending, self._faults, self._asked))
        return self.triggers[-1]

    def _report(self, read: Mapping[str, int]) -> None:
        seconds = FIXED_SECONDS + sum(read.values()) / RECORDS_PER_SECOND
        self.now += seconds
        took = {"triggerExecution": seconds * 1000, "addBatch": seconds * 1000}
        rows = [{"numInputRows": read.get(name, 0)} for name in self.sources]
        self.query.report = json.dumps({"batchId": self.batches, "durationMs": took, "sources": rows})
        self.batches += 1

    # What the shim does ------------------------------------------------------------------------

    def _end(self, name: str) -> int | None:
        """The end of the next batch, as the planner has it; `None`: held."""
        question = Question(self.handles[name], self._told(), self._offset(name, self.position[name]))
        fault = self.random.choice(FAULTS) if self.random.random() < self.faulty else None
        self._faults += fault is not None
        self._asked += 1
        if fault == "late":
            self._late.append(question)
            return None
        answer = self._ask(question)
        while answer.startswith("wait:"):
            self.now += int(answer.removeprefix("wait:")) / 1000
            answer = self._ask(question)
        if fault == "doubled":
            again = self._ask(question)
            assert again == answer, f"asked twice, {name} was told {answer} and then {again}"
        for other in [late for late in self._late if self.random.random() < 0.5]:
            self._late.remove(other)
            self._ask(other)
        if fault == "lost":
            return None
        return self._carried_out(name, answer)

    def _carried_out(self, name: str, answer: str) -> int | None:
        verb, _, rest = answer.partition(":")
        if verb == "lease":
            self._leased_until = self.now + int(rest.split(":")[0]) / 1000
        if verb in ("hold", "lease"):
            return None
        assert verb == "offset", answer
        self._passed[self.handles[name]] = self._number
        return int(json.loads(rest)[name]["0"])

    def _ask(self, question: Question) -> str:
        answer = self.governor.admit(question.handle, question.trigger, question.start)
        if not answer.startswith("survey:"):
            return answer
        names = {handle: name for name, handle in self.handles.items()}
        asked = [int(handle) for handle in answer.removeprefix("survey:").split(",")]
        latest = {str(handle): self._offset(names[handle], self.latest[names[handle]]) for handle in asked}
        return self.governor.plan(question.handle, question.trigger, question.start, json.dumps(latest))

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
        (run,) = self.governor.runs
        snapshot = run.snapshot()
        return {} if snapshot is None else {s.name: s.planned_records_total for s in snapshot.sources}
