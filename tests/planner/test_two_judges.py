"""Driver and operator never flap against each other, whatever is late, lost, doubled or started again between them.

A driver votes by lag itself, and an operator of the decision core scrapes it, decides, and writes documents. What
is assumed: a scrape tells of one moment, documents reach the driver in any delay but never an earlier after a later
one (generations see to that), and either may be started again at any time. Then

- the driver's verdict is, at each moment, that of a driver which was never told anything but the first document, and
- the operator's is what the driver's was when it was scraped last, or what it was before while nothing was heard.

With an expression of its own (`backlog.query`), which says what it likes and is not always heard, the operator tells
the driver the expression's last answer and nothing else, and a query is in backlog where one of both says so.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.api.application import SparkApplication
from headgate.decision.memory import Memory
from headgate.decision.observation import Observation, SourceObservation
from headgate.decision.policy import QueryPolicy
from headgate.decision.verdict import decide
from headgate.reconcile.document import next_document
from headgate.reconcile.policy import query_policies
from headgate_contract import ControlDocument
from headgate_contract.codec import decode, encode
from headgate_contract.lag_votes import IDLE_SECONDS
from headgate_spark.planner.model import QueryFigures, SourceFigures
from support.examples import examples
from support.looping import application, query, source
from support.scripted_spark import ScriptedSpark, Stream

RATE = 2000.0
DECLARED = {
    "pending": source(backlog={"pendingRecords": 1000}),
    "lag": source(backlog={"watermarkLag": "1m"}),
    "both": source(backlog={"pendingRecords": 5000, "watermarkLag": "2m"}),
}
EXPRESSION = {"pendingRecords": 1000, "query": "sum(late)"}
REENTRY = st.sampled_from(
    [{}, {"dwell": "0s"}, {"dwell": "5s", "pendingRecordsAbove": 5000}, {"policy": "Never"}]
)


def declared(of_source: Mapping[str, Any], reentry: dict[str, str]) -> SparkApplication:
    return application(
        queries=[
            query(
                checkpoint={"interval": "5s", "intervalDuringBacklog": "20s"},
                backlog={"reentry": reentry},
                sources=[of_source],
            )
        ]
    )


class Driver:
    """One driver, whose records bear the time at which they came in."""

    def __init__(self, document: ControlDocument) -> None:
        self.stream = Stream("flights", {"0": 0})
        self.spark = self._begin(document, 1000.0)

    def _begin(self, document: ControlDocument, now: float) -> ScriptedSpark:
        self.generation = document.generation
        spark = ScriptedSpark(
            self.stream,
            control=document.queries["delays"],
            records_per_second=RATE,
            now=now,
            resumed={"flights": dict(self.stream.start)},
        )
        spark.planner.tell_time(0.0)
        return spark

    def restart(self, document: ControlDocument) -> None:
        self.spark = self._begin(document, self.spark.now + 1.0)

    def hears(self, document: ControlDocument) -> None:
        if document.generation > self.generation:
            self.generation = document.generation
            self.spark.control(document.queries["delays"])

    def runs(self, seconds: float) -> list[tuple[float, bool]]:
        """Let time pass; returns the verdict after each trigger."""
        verdicts = []
        deadline = self.spark.now + seconds
        while self.spark.now < deadline:
            self.spark.round()
            self.spark.planner.read_to(self.spark.now - self.stream.pending / 50)
            verdicts.append((self.spark.now, self.spark.figures.backlog))
        return verdicts


@dataclass
class Operator:
    """The decision core with what it remembers, on disk."""

    application: SparkApplication
    document: ControlDocument
    kept: str = field(default_factory=lambda: json.dumps(encode(Memory())))
    backlog: bool = False

    @property
    def policy(self) -> QueryPolicy:
        return query_policies(self.application)["delays"]

    def decides(
        self, seen: QueryFigures | None, now: float, attempt: int, expression: float | None = None
    ) -> ControlDocument:
        """Decide on a scrape (`None`: nothing was heard) and on the expression; returns the newest document."""
        memory = decode(Memory, json.loads(self.kept))
        unread = {"flights": SourceObservation(query_value=expression)}
        sources = unread if seen is None else {one.name: observed(one, expression) for one in seen.sources}
        votes = None if seen is None else seen.votes
        observation = Observation(t=now, query="delays", attempt=attempt, sources=sources, driver_votes=votes)
        verdict, memory = decide(observation, self.policy, memory)
        self.kept, self.backlog = json.dumps(encode(memory)), verdict.backlog
        self.document = next_document(
            self.application,
            {"delays": verdict},
            published=self.document,
            last_generation=self.document.generation,
        )
        return self.document


def observed(source: SourceFigures, expression: float | None) -> SourceObservation:
    idle = source.idle_seconds
    return SourceObservation(
        watermark_lag_seconds=7.0,  # of another moment
        pending_records=source.pending_records,
        phase=source.phase,
        idle=None if idle is None else idle >= IDLE_SECONDS,
        driver_votes=frozenset(source.backlog_votes),
        query_value=expression,
    )


STEP = (
    st.tuples(st.just("arrive"), st.sampled_from([1, 900, 1100, 6000, 40_000, 200_000])),
    st.tuples(st.just("run"), st.sampled_from([0.3, 2.0, 7.0, 30.0])),
    st.tuples(st.just("scrape"), st.just(0)),
    st.tuples(st.just("lose"), st.just(0)),
    st.tuples(st.just("deliver"), st.integers(0, 5)),
    st.tuples(st.just("restart driver"), st.just(0)),
)
STEPS = st.lists(st.one_of(*STEP), max_size=25)
WITH_EXPRESSION = st.lists(
    st.one_of(*STEP, st.tuples(st.just("say"), st.sampled_from([None, 0.0, 1.0]))), max_size=25
)


@settings(max_examples=examples(150), deadline=None)
@given(of_source=st.sampled_from(sorted(DECLARED)), reentry=REENTRY, steps=STEPS)
def test_the_two_never_flap_against_each_other(
    of_source: str, reentry: dict[str, str], steps: list[tuple[str, float]]
) -> None:
    app = declared(
        DECLARED[of_source],
        {k: v for k, v in reentry.items() if of_source != "lag" or k != "pendingRecordsAbove"},
    )
    first = next_document(app, {}, published=None, last_generation=0)
    operator, written, attempt = Operator(app, first), [first], 1
    told, alone = Driver(first), Driver(first)
    heard: bool | None = None
    for step, amount in steps:
        if step == "arrive":
            for driver in (told, alone):
                driver.stream.arrive(int(amount))
        elif step == "run":
            assert told.runs(amount) == alone.runs(amount)
        elif step == "scrape" and told.spark.figures.sources[0].pending_records is not None:
            figures = told.spark.figures
            written.append(operator.decides(figures, told.spark.now, attempt))
            heard = figures.backlog
            assert operator.backlog == heard
            assert not written[-1].queries["delays"].backlog, "the driver is not told its own votes"
        elif step == "lose":
            written.append(operator.decides(None, told.spark.now, attempt))
            assert operator.backlog == bool(heard)
        elif step == "deliver":
            told.hears(written[min(int(amount), len(written) - 1)])
        elif step == "restart driver":
            attempt, heard = attempt + 1, None
            told.restart(written[-1])
            alone.restart(first)
            written = written[-1:]


@settings(max_examples=examples(150), deadline=None)
@given(steps=WITH_EXPRESSION)
def test_an_expression_is_told_to_the_driver_and_never_its_own_votes(
    steps: list[tuple[str, float | None]],
) -> None:
    app = declared(source(backlog=EXPRESSION), {"dwell": "0s"})
    first = next_document(app, {}, published=None, last_generation=0)
    operator, driver, written, attempt = Operator(app, first), Driver(first), [first], 1
    said: float | None = None
    last_said, told = False, False
    for step, amount in steps:
        if step == "say":
            said = amount
        elif step == "arrive":
            driver.stream.arrive(int(amount or 0))
        elif step == "run":
            for _, backlog in driver.runs(amount or 0):
                assert backlog >= told, "what the driver was told holds at each trigger"
            assert driver.spark.figures.backlog == (
                told or bool(driver.spark.figures.sources[0].backlog_votes)
            )
        elif step in ("scrape", "lose"):
            figures = driver.spark.figures if step == "scrape" else None
            written.append(operator.decides(figures, driver.spark.now, attempt, said))
            last_said = last_said if said is None else bool(said)
            assert written[-1].queries["delays"].backlog == last_said
        elif step == "deliver":
            document = written[min(int(amount or 0), len(written) - 1)]
            if document.generation > driver.generation:
                told = document.queries["delays"].backlog
            driver.hears(document)
        elif step == "restart driver":
            attempt, last_said = attempt + 1, False
            told = written[-1].queries["delays"].backlog
            driver.restart(written[-1])
            written = written[-1:]
