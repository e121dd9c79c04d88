"""A query under the real planner, whatever comes: faults, restarts of query and planner, documents that are no good.

Spark and the shim are made up (`support.governed_by_script`): calls are late, lost and doubled, streams are told of
late and twice. Records arrive, with event times a little out of order; documents are written, cut short, put back
and taken away. What must hold:

- L2: the sink has each record once, up to where the last committed batch ends;
- L3: where alignment allows no more than the watermark's delay, no record comes too late for it;
- L4: no batch goes past a rate, a limit of alignment, a pause, or a history that is not read yet;
- L5: the query acts by the document in force, and by none that cannot be read;
- L12: left alone, each source with records is read, or held for a reason that the runbook names.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from random import Random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from headgate_contract import BatchControl, ControlDocument, QueryControl, RateControl, SourceControl
from headgate_contract.held import holds_back
from headgate_contract.receiving import Inbox, write
from headgate_spark.planner.model import QueryFigures
from support.aligned_spark import member
from support.examples import examples
from support.governed_by_script import FAULTS, QUERY, GovernedQuery, Trigger
from support.planning_laws import RateLaw, none_is_past_the_limit

RUNBOOK = Path(__file__).parents[2] / "docs" / "runbook.md"
NAMES = ("s0", "s1", "s2", "s3")
OUT_OF_ORDER_MS = 500
MOST_DRIFT_SECONDS = 30.0
DELAY_MS = 1000 * MOST_DRIFT_SECONDS + OUT_OF_ORDER_MS
"""Of the watermark, in a query that is aligned: what is read in one batch is at most so far apart."""
NEVER = 1e9
"""Seconds after which a member without records is let go: then others may go on, and what comes of it is late."""
TRIGGER_SECONDS = 0.1
"""A batch begins with one, so that a bucket may hold what comes until then."""
LEFT_ALONE_SECONDS = 90.0
"""Longer than four sources take turns at the longest interval."""

DOCUMENTS = st.integers(0, 2**32)
"""What a document says is made of a number: by itself hypothesis tries few, and much of the same in each."""


def control_of(number: int, *, is_aligned: bool) -> QueryControl:
    """Return a document's word on the query."""
    chance = Random(number)
    if is_aligned:
        drift = chance.choice([0.0, 1.0, MOST_DRIFT_SECONDS])
        rates = {name: chance.choice([None, None, 20.0]) for name in NAMES}
        sources = {name: member(drift, idle_after=NEVER, rate=rate) for name, rate in rates.items()}
    else:
        sources = {name: free(chance) for name in NAMES}
        if chance.random() < 0.5:
            sources["s1"] = replace(sources["s1"], after="s0")
    return QueryControl(
        interval_seconds=chance.choice([0.5, 2.0, 10.0]),
        interval_during_backlog_seconds=chance.choice([0.0, 5.0, 10.0]),
        min_pause_seconds=chance.choice([0.0, 0.0, 2.0]),
        backlog=chance.random() < 0.5,
        batch=BatchControl(
            initial_records=chance.choice([10, 1000]),
            max_growth=chance.choice([1.5, 8.0]),
            max_records=chance.choice([1000, 10**7]),
        ),
        sources=sources,
    )


def free(chance: Random) -> SourceControl:
    """Return what is said of a source that is in no group."""

    def limit() -> RateControl | None:
        return chance.choice([None, _limit(chance)])

    return SourceControl(paused=chance.random() < 0.25, rate_limit=limit(), rate_limit_during_backlog=limit())


def _limit(chance: Random) -> RateControl:
    return RateControl(
        records_per_second=chance.choice([None, 5.0, 200.0]),
        records_per_checkpoint=chance.choice([None, 1, 100]),
        max_burst_seconds=chance.choice([0.0, 10.0]),
    )


@cache
def remedies() -> frozenset[str]:
    """Return the reasons that the runbook has a row for."""
    rows = [line.split("|")[1] for line in RUNBOOK.read_text().splitlines() if line.startswith("| `")]
    return frozenset(reason for row in rows for reason in re.findall(r"`(\w+)`", row))


@dataclass
class WatchedQuery(GovernedQuery):
    """One whose triggers are watched, one by one."""

    watch: Callable[[Trigger], None] = lambda _: None

    def trigger(self) -> Trigger:
        trigger = super().trigger()
        self.watch(trigger)
        return trigger


class Queries(RuleBasedStateMachine):
    """One query, from one start to the next."""

    @initialize(
        count=st.integers(1, len(NAMES)),
        chance=st.integers(0, 2**32),
        faulty=st.sampled_from([0.0, 0.05, 0.3]),
        faults=st.sampled_from([FAULTS, ("doubled",)]),
        is_aligned=st.booleans(),
        document=DOCUMENTS,
    )
    def begin(
        self,
        count: int,
        chance: int,
        faulty: float,
        faults: tuple[str, ...],
        is_aligned: bool,
        document: int,
    ) -> None:
        self.chance, self.is_aligned = Random(chance), is_aligned
        self.loses_none, self.was_free = faults == ("doubled",), False
        names = list(NAMES[:count])
        self.logs: dict[str, list[int]] = {name: [] for name in names}
        self.latest: dict[str, int] = {}
        for name in names:
            self.arrive(name, 400, 20)
        first = control_of(document, is_aligned=is_aligned)
        self.asked = WatchedQuery(
            names,
            self.latest,
            first,
            self.chance,
            faulty,
            faults=faults,
            times=self.logs,
            late=not self.loses_none,
            watch=self.judge,
        )
        self.faulty = faulty
        self.written = [write(ControlDocument(generation=1, queries={QUERY: first}))]
        self.found: str | None = self.written[0]
        self.inbox = Inbox().receive(self.found)
        self.rates: dict[str, RateLaw] = defaultdict(RateLaw)
        self.position = dict.fromkeys(names, 0)
        self.history_ends: int | None = None
        self.seen_ms: int | None = None
        self.summed = 0
        self.summed_to = dict.fromkeys(names, 0)
        self.note_history()

    # The world -----------------------------------------------------------------------------------------

    @rule(name=st.sampled_from(NAMES), records=st.sampled_from([1, 20, 500]), step=st.integers(1, 200))
    def arrive(self, name: str, records: int, step: int) -> None:
        """Records come, so many milliseconds apart, each of them up to half a second too early or not."""
        if name in self.logs:
            log = self.logs[name]
            begin = max(log, default=OUT_OF_ORDER_MS)
            log += [begin + n * step - self.chance.randint(0, OUT_OF_ORDER_MS) for n in range(records)]
            self.latest[name] = len(log)

    @rule(document=DOCUMENTS)
    def declare(self, document: int) -> None:
        """The operator writes a document; the driver has not looked yet."""
        queries = {QUERY: control_of(document, is_aligned=self.is_aligned)}
        self.written.append(write(ControlDocument(generation=len(self.written) + 1, queries=queries)))
        self.found = self.written[-1]

    @rule(share=st.floats(0, 0.99))
    def document_is_cut(self, share: float) -> None:
        self.found = self.written[-1][: int(share * len(self.written[-1]))]

    @rule(back=st.integers(1, 5))
    def document_is_put_back(self, back: int) -> None:
        self.found = self.written[-min(back, len(self.written))]

    @rule()
    def document_is_gone(self) -> None:
        self.found = None

    @rule()
    def driver_looks(self) -> None:
        """As `ControlFile.poll` does."""
        before, governor = self.inbox, self.asked.governor
        self.inbox = before.receive(self.found)
        if before.document is not None:
            assert self.inbox.document is not None
            assert self.inbox.document.generation >= before.document.generation, "an older one is taken"
        if self.inbox.document is not None and self.inbox.document != before.document:
            governor.take_document(self.inbox.document)
        if self.inbox.refusal is not None and self.inbox is not before:
            governor.documents.refuse(self.inbox.refusal, self.inbox.unread is not None)
        governor.deliver()
        self.note_history()

    def note_history(self) -> None:
        """Where a source comes after a history, that ends no earlier than it did when this was first said."""
        sources = {} if self.in_force is None else self.in_force.sources
        if self.history_ends is None and any(source.after for source in sources.values()):
            self.history_ends = self.latest["s0"]

    @rule(faulty=st.sampled_from([0.0, 0.05, 0.3]))
    def weather(self, faulty: float) -> None:
        self.asked.faulty = self.faulty = faulty

    # The query -----------------------------------------------------------------------------------------

    @rule(seconds=st.sampled_from([0.5, 2.0, 10.0]))
    def run(self, seconds: float) -> None:
        self.asked.run_for(seconds)

    @rule()
    def query_restarts(self) -> None:
        self.asked.restart()
        self.rates.clear()

    @rule(count=st.integers(0, len(NAMES)))
    def query_restarts_in_mid_round(self, count: int) -> None:
        self.asked.restart_in_mid_round(count)
        self.rates.clear()

    @rule()
    def query_restarts_in_mid_batch(self) -> None:
        self.asked.restart_in_mid_batch()
        self.rates.clear()

    @rule(share=st.sampled_from([1.0, 1.0, 0.5]))
    def planner_restarts(self, share: float) -> None:
        """It knows nothing of the document but what it finds, perhaps while that is being written."""
        if self.found is not None:
            self.found = self.found[: int(share * len(self.found))]
        self.asked.planner_restarts()
        self.inbox = Inbox()
        self.driver_looks()
        self.rates.clear()

    @precondition(lambda self: max(self.position.values()) < 5000)
    @rule()
    def left_alone(self) -> None:
        """L12: nothing fails and nothing comes for a while."""
        self.asked.faulty = 0.0
        begun = len(self.asked.triggers)
        self.asked.run_for(LEFT_ALONE_SECONDS)
        self.asked.faulty = self.faulty
        read = {name for trigger in self.asked.triggers[begun:] for name in trigger.read}
        (run,) = self.asked.governor.runs
        figures = run.figures()
        assert figures is not None
        for source in figures.sources:
            if source.name in read or self.position[source.name] == self.latest[source.name]:
                continue
            reasons = {reason for reason, seconds in source.held_lately_seconds.items() if seconds > 0}
            back = {reason.value for reason in reasons if holds_back(reason)}
            assert back, f"{source.name} was not read for {LEFT_ALONE_SECONDS:.0f} s, by {reasons}"
            assert back <= remedies(), f"the runbook says nothing of {back - remedies()}"

    # Laws ----------------------------------------------------------------------------------------------

    @property
    def in_force(self) -> QueryControl | None:
        document = self.inbox.document
        return None if document is None else document.queries[QUERY]

    def judge(self, trigger: Trigger) -> None:
        """L3 and L4."""
        control = self.in_force
        ends = {name: n + trigger.read.get(name, 0) for name, n in self.position.items()}
        if control is None:
            assert self.inbox.unread is None or not trigger.read, f"limits are not known: {trigger.read}"
            self.was_free |= bool(trigger.read)
        else:
            self.limits_hold(control, trigger, ends)
        self.none_is_late(trigger)
        self.position = ends

    def limits_hold(self, control: QueryControl, trigger: Trigger, ends: Mapping[str, int]) -> None:
        for name, records in trigger.read.items():
            source = control.sources.get(name, SourceControl())
            assert not source.paused, f"{name} is paused, and {records} records of it were read"
            if source.after is not None:
                assert self.history_ends is not None
                assert ends[source.after] >= self.history_ends, f"{name} is read before its history"
        if self.is_aligned:
            drift = next(
                each.alignment.max_drift_seconds for each in control.sources.values() if each.alignment
            )
            none_is_past_the_limit([trigger], self.logs, 1000 * drift, self.position)
        for figures in (run.figures() for run in self.asked.governor.runs):
            if figures is not None:
                for name in self.position:
                    self.rate_holds(control, trigger, name, figures)

    def rate_holds(self, control: QueryControl, trigger: Trigger, name: str, figures: QueryFigures) -> None:
        source, records = control.sources.get(name, SourceControl()), trigger.read.get(name, 0)
        limit = source.rate_limit_during_backlog if figures.backlog else source.rate_limit
        if limit is None:
            self.rates[name].check(None, 0.0, records, trigger.at)
            return
        cycle, rate = figures.interval_seconds + control.min_pause_seconds, limit.records_per_second
        seconds = min(max(cycle + TRIGGER_SECONDS, 1.0), limit.max_burst_seconds)
        burst = max(1.0, rate * seconds) if rate else 0.0
        self.rates[name].check(rate, burst, records, trigger.at)
        assert limit.records_per_checkpoint is None or records <= limit.records_per_checkpoint

    def none_is_late(self, trigger: Trigger) -> None:
        """A batch drops what is older than what the batches before it have seen, by more than the delay."""
        read = [
            at
            for name, records in trigger.read.items()
            for at in self.logs[name][self.position[name] : self.position[name] + records]
        ]
        if not read:
            return
        holds = self.is_aligned and self.loses_none and not self.was_free and self.seen_ms is not None
        assert not holds or min(read) >= self.seen_ms - DELAY_MS, (
            f"a record is {self.seen_ms - min(read)} ms behind the latest of the batches before"
        )
        self.seen_ms = max(*read, self.seen_ms or 0)

    @invariant()
    def each_record_is_in_the_output_once(self) -> None:
        for batch in range(self.summed, self.asked.batches):
            for name, (start, end) in self.asked.output[batch].items():
                assert start == self.summed_to[name], f"batch {batch} has {name} from {start} on"
                self.summed_to[name] = end
        self.summed = self.asked.batches
        assert self.summed_to == self.asked.position

    @invariant()
    def it_acts_by_the_document_in_force(self) -> None:
        for run in self.asked.governor.runs:
            assert run.settings.control == self.in_force

    def teardown(self) -> None:
        if hasattr(self, "position"):
            self.left_alone()


TestQueries = Queries.TestCase
TestQueries.settings = settings(max_examples=examples(20), stateful_step_count=30, deadline=None)
