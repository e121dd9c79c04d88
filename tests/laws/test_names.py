"""L8: how sources are called, and what holds of them, follows from what Spark has opened and what was said.

Streams are told of late, twice and in any order, documents come between, and planners are started again; it has
to be like a governor that is told the same of the same streams once, in the order in which Spark has opened them.
"""

from __future__ import annotations

import json
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from headgate_contract import ControlDocument, QueryControl, RateControl, SourceControl
from headgate_spark.engine.governor import Governor
from support.asked import admit
from support.engine import begins, services_with
from support.examples import examples

QUERY = "copy"
TOPICS = ("orders", "returns")
NAMES = ("orders", "orders-2", "returns", "lines", "nowhere")
OPTIONS: tuple[dict[str, str], ...] = (
    {},
    {},
    {"headgate.paused": "true"},
    {"headgate.rateLimit.recordsPerSecond": "100"},
    {"headgate.rateLimit.recordsPerSecond": "200", "headgate.rateLimit.recordsPerCheckpoint": "10"},
)
PROPERTIES: tuple[dict[str, str], ...] = (
    {},
    {f"spark.headgate.queries.{QUERY}.minPause": "1s"},
    {f"spark.headgate.queries.{QUERY}.sources.orders-2.paused": "true"},
)
sources = st.builds(
    SourceControl,
    paused=st.booleans(),
    rate_limit=st.none()
    | st.builds(RateControl, records_per_second=st.sampled_from([5.0, 50.0]), max_burst_seconds=st.just(1.0)),
)
documents = st.none() | st.builds(
    QueryControl,
    interval_seconds=st.sampled_from([None, 1.0, 5.0]),
    sources=st.dictionaries(st.sampled_from(NAMES), sources, max_size=3),
)


class Names(RuleBasedStateMachine):
    """One query at a time, of up to four streams."""

    @initialize()
    def begin(self) -> None:
        self.runs = self.generation = 0
        self.document: ControlDocument | None = None
        self.governor = self.a_governor()
        self.query_starts([("orders", None, 0)], 0)
        self.stream_is_told(0)

    def a_governor(self) -> Governor:
        return Governor(services_with(clock=lambda: 1000.0))

    @rule(
        streams=st.lists(
            st.tuples(
                st.sampled_from(TOPICS),
                st.sampled_from([None, None, "lines"]),
                st.integers(0, len(OPTIONS) - 1),
            ),
            min_size=1,
            max_size=4,
        ),
        properties=st.integers(0, len(PROPERTIES) - 1),
    )
    def query_starts(self, streams: list[tuple[str, str | None, int]], properties: int) -> None:
        """The run before has ended."""
        for handle in self.told if self.runs else ():
            self.governor.closed(handle, None)
        self.runs += 1
        self.properties = PROPERTIES[properties]
        self.streams = {
            100 * self.runs + index: self.described(100 * self.runs + index, index, *stream)
            for index, stream in enumerate(streams)
        }
        self.told: set[int] = set()
        self.tells_of_the_query(self.governor)

    def described(self, handle: int, index: int, topic: str, name: str | None, options: int) -> str:
        described: dict[str, Any] = {
            "handle": handle,
            "query": {"id": "1", "runId": f"r{self.runs}", "name": QUERY},
            "checkpoint": "s3a://b/ck",
            "format": "kafka",
            "api": "v2",
            "name": name,
            "options": {"subscribe": topic, **OPTIONS[options]},
            "index": str(index),
        }
        return json.dumps(described)

    def tells_of_the_query(self, governor: Governor, **more: Any) -> None:
        begins(governor, run=f"r{self.runs}", name=QUERY, properties=self.properties, **more)

    @rule(which=st.integers(0, 3))
    def stream_is_told(self, which: int) -> None:
        """For the first time, or again."""
        handle = sorted(self.streams)[which % len(self.streams)]
        assert self.governor.opened(handle, self.streams[handle]) == "ok"
        self.told.add(handle)

    @rule()
    def query_is_told_again(self) -> None:
        self.tells_of_the_query(self.governor)

    @rule(which=st.integers(0, 3))
    def is_planned(self, which: int) -> None:
        """Some source is asked; what is told of after that has to be known as well."""
        if self.told:
            handle = sorted(self.told)[which % len(self.told)]
            topic = json.loads(self.streams[handle])["options"]["subscribe"]
            admit(self.governor, handle, json.dumps({topic: {"0": 5}}))

    @rule(control=documents, doubled=st.booleans())
    def document_comes(self, control: QueryControl | None, doubled: bool) -> None:
        self.generation += 1
        queries = {} if control is None else {QUERY: control}
        self.document = ControlDocument(generation=self.generation, queries=queries)
        for _ in range(1 + doubled):
            self.governor.take_document(self.document)

    @rule(order=st.permutations(range(4)))
    def planner_restarts(self, order: list[int]) -> None:
        """Another one is told of the run and its streams, in any order, and reads the document before or after."""
        self.governor = self.a_governor()
        if self.document is not None and order[0] < 2:
            self.governor.take_document(self.document)
        self.tells_of_the_query(self.governor, resumed=True)
        before, self.told = self.told, set()
        handles = sorted(self.streams)
        for which in order:
            if which < len(handles) and handles[which] in before:
                self.stream_is_told(which)
        if self.document is not None and order[0] >= 2:
            self.governor.take_document(self.document)

    @invariant()
    def it_is_as_one_that_was_told_once_and_in_order(self) -> None:
        other = self.a_governor()
        if self.document is not None:
            other.take_document(self.document)
        self.tells_of_the_query(other)
        for handle in sorted(self.told):
            other.opened(handle, self.streams[handle])
        assert known(self.governor) == known(other)


def known(governor: Governor) -> list[Any]:
    """Return of each run the names of its sources, in order, what holds of it, and whose word that is."""
    return [
        (
            [(handle, opened.name) for handle, opened in run.sources.by_handle.items()],
            run.settings.control,
            list(run.settings.origins),
        )
        for run in governor.runs
    ]


TestNames = Names.TestCase
TestNames.settings = settings(max_examples=examples(60), stateful_step_count=30, deadline=None)
