"""The steps of a planning: their order, and that they leave the query as it was."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate_contract import BatchControl, QueryControl, RateControl, SourceControl
from headgate_spark.planner.booking import Booking, Question
from headgate_spark.planner.model import ReadLimit, Trigger, TriggerKind
from headgate_spark.planner.pipelines import AT_ONCE, LIVE, TO_THE_END, UNLISTED, pipeline_of
from headgate_spark.planner.rounds import Round
from headgate_spark.planner.settings import PlannerSettings
from headgate_spark.planner.steps import Draft
from support.examples import examples
from support.scripted_spark import ScriptedSpark, Stream, Uncounted

PAGE = Path(__file__).parents[2] / "docs" / "planner.md"


def test_the_page_tells_the_steps_in_the_order_in_which_they_are_taken():
    (told,) = re.findall(
        r"^gate -> (.*) -> ends in the unit of the read limit$", PAGE.read_text(), re.MULTILINE
    )
    taken = iter([step.__name__ for step in LIVE.steps])
    assert all(name in taken for name in told.split(" -> "))


@pytest.mark.parametrize(
    ("kind", "listed", "pipeline"),
    [
        (TriggerKind.PROCESSING_TIME, True, LIVE),
        (TriggerKind.PROCESSING_TIME, False, UNLISTED),
        (TriggerKind.AVAILABLE_NOW, True, TO_THE_END),
        (TriggerKind.AVAILABLE_NOW, False, AT_ONCE),
        (TriggerKind.ONCE, True, AT_ONCE),
        (TriggerKind.ONCE, False, AT_ONCE),
    ],
)
def test_what_a_query_is_like_says_how_it_is_planned(kind, listed, pipeline):
    assert pipeline_of(PlannerSettings(Trigger(kind), QueryControl() if listed else None)) is pipeline


limits = st.none() | st.builds(RateControl, records_per_second=st.sampled_from([5.0, 1e4]))
controls = st.none() | st.builds(
    QueryControl,
    interval_seconds=st.sampled_from([None, 0.3, 5.0]),
    interval_during_backlog_seconds=st.sampled_from([None, 0.0, 20.0]),
    backlog=st.booleans(),
    batch=st.builds(BatchControl, max_records=st.sampled_from([100, 10**6])),
    sources=st.fixed_dictionaries(
        {
            "live": st.builds(
                SourceControl, after=st.sampled_from([None, "history"]), rate_limit_during_backlog=limits
            ),
            "history": st.builds(SourceControl, paused=st.booleans(), rate_limit=limits),
        }
    ),
)


@settings(max_examples=examples(60))
@given(
    before=controls,
    then=controls,
    rounds=st.integers(1, 12),
    kind=st.sampled_from([TriggerKind.PROCESSING_TIME, TriggerKind.AVAILABLE_NOW]),
    read_limit=st.sampled_from([ReadLimit.OFFSETS, ReadLimit.FILES]),
)
def test_a_planning_that_is_not_kept_changes_nothing(before, then, rounds, kind, read_limit):
    spark, twin = (a_run(before, then, rounds, kind, read_limit) for _ in range(2))
    query = spark.planner._query
    known = state_of(query)
    for source in query.sources.values():
        draft = Draft.of(Question(query, Round(None), Booking(query), source, spark.now))
        for step in pipeline_of(query.settings).steps:
            draft = step(draft)
    assert state_of(query) == known
    for _ in range(3):
        if spark.ended is None:
            assert (spark.round(), spark.figures) == (twin.round(), twin.figures)


def state_of(query) -> list[dict[str, object]]:
    """All that decides what is planned; what was counted of it is no more than it tells."""
    parts = (query, query.gate, *query.sources.values())
    return [{name: value for name, value in vars(part).items() if name != "_counted"} for part in parts]


def a_run(before, then, rounds, kind, read_limit) -> ScriptedSpark:
    history = (
        Stream("history", {"0": 3000})
        if read_limit is ReadLimit.OFFSETS
        else Uncounted("history", read_limit, [90] * 9)
    )
    live = Stream("live", {"0": 500, "1": 9})
    spark = ScriptedSpark(live, history, control=before, trigger=Trigger(kind), leases=False)
    for _ in range(rounds):
        if spark.ended is None:
            spark.round()
    spark.control(then)
    return spark
