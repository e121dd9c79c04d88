"""A driver that votes by lag itself is believed: its votes are reported, and neither added to nor undone."""

from __future__ import annotations

import pytest

from headgate.decision.memory import Memory
from headgate.decision.observation import Observation, SourceObservation
from headgate.decision.policy import QueryPolicy, SourcePolicy
from headgate.decision.verdict import Verdict, decide
from headgate.decision.voters import Reason
from headgate_contract import ReentryControl
from headgate_contract.lag_votes import LagVoter

LAG, PENDING = LagVoter.WATERMARK_LAG, LagVoter.PENDING_RECORDS
POLICY = QueryPolicy(
    name="delays",
    sources=(
        SourcePolicy(
            name="flights", watermark_lag_seconds=300.0, pending_records=1000, query_configured=True
        ),
    ),
    reentry=ReentryControl(dwell_seconds=60.0),
)


def seen(
    *votes: LagVoter, lag: float | None = 10.0, pending: float | None = 5.0, **more: object
) -> SourceObservation:
    return SourceObservation(
        watermark_lag_seconds=lag,
        pending_records=pending,
        phase=False,
        driver_votes=frozenset(votes),
        **more,  # type: ignore[arg-type]
    )


UNHEARD = SourceObservation()


def after(
    *moments: SourceObservation, votes: bool | None = True, attempt: int = 1, memory: Memory | None = None
) -> tuple[Verdict, Memory]:
    """Decide once a second; what is not heard tells nothing of the driver either."""
    memory = memory or Memory()
    for t, source in enumerate(moments):
        observation = Observation(
            t=float(t),
            query="delays",
            attempt=attempt,
            sources={"flights": source},
            driver_votes=None if source is UNHEARD else votes,
        )
        verdict, memory = decide(observation, POLICY, memory)
    return verdict, memory


def test_its_yes_is_a_backlog_whatever_was_scraped_meanwhile() -> None:
    verdict, _ = after(seen(LAG, lag=10.0))
    assert (verdict.backlog, verdict.reason) == (True, Reason.WATERMARK_LAG)


def test_its_no_is_none_whatever_was_scraped_meanwhile() -> None:
    verdict, _ = after(seen(lag=9000.0, pending=10.0**9))
    assert not verdict.backlog
    assert verdict.voters["flights"][Reason.WATERMARK_LAG] is False


def test_it_is_not_told_its_own_votes() -> None:
    verdict, _ = after(seen(LAG, PENDING, lag=9000.0))
    assert verdict.backlog
    assert not verdict.published_backlog
    assert verdict.published_reason is None


def test_it_is_told_of_the_expression_and_why() -> None:
    verdict, _ = after(seen(LAG, lag=9000.0, query_value=1.0))
    assert verdict.reason is Reason.WATERMARK_LAG
    assert (verdict.published_backlog, verdict.published_reason) == (True, Reason.QUERY)


def test_a_yes_stands_while_nothing_is_heard_and_is_shown_as_unknown() -> None:
    verdict, _ = after(seen(LAG, lag=9000.0), UNHEARD)
    assert (verdict.backlog, verdict.reason) == (True, Reason.UNKNOWN)
    assert not verdict.published_backlog, "it knows itself"


def test_a_yes_that_it_holds_for_want_of_a_lag_is_unknown() -> None:
    verdict, _ = after(seen(LAG, lag=None))
    assert (verdict.backlog, verdict.reason) == (True, Reason.UNKNOWN)


def test_a_no_where_the_lag_is_not_known_ends_what_it_had_said_before() -> None:
    verdict, _ = after(seen(LAG, lag=9000.0), seen(lag=None))
    assert not verdict.backlog


def test_re_entry_is_its_own_business() -> None:
    verdict, _ = after(seen(lag=10.0), seen(LAG, lag=301.0))
    assert verdict.backlog, "no second dwell is added to that of the driver"


@pytest.mark.parametrize("votes", [None, False])
def test_a_driver_that_does_not_vote_is_judged_by_what_was_scraped(votes: bool | None) -> None:
    verdict, _ = after(seen(lag=9000.0), votes=votes)
    assert (verdict.backlog, verdict.published_backlog) == (True, True)
    verdict, _ = after(seen(LAG, lag=10.0), votes=votes)
    assert not verdict.backlog


def test_a_driver_of_before_does_not_vote_for_the_next_one() -> None:
    _, memory = after(seen(LAG, lag=9000.0))
    verdict, _ = after(seen(lag=9000.0), votes=None, attempt=2, memory=memory)
    assert (verdict.backlog, verdict.published_backlog) == (True, True)


def test_after_a_restart_for_a_verdict_what_was_held_is_told_until_the_driver_votes() -> None:
    _, memory = after(seen(LAG, lag=9000.0))
    starting = Observation(t=9.0, query="delays", attempt=2, sources={})
    verdict, memory = decide(starting, POLICY, memory, restarted_for_verdict=True)
    assert (verdict.published_backlog, verdict.published_reason) == (True, None)
    again = Observation(
        t=10.0, query="delays", attempt=2, sources={"flights": seen(LAG, lag=9000.0)}, driver_votes=True
    )
    verdict, _ = decide(again, POLICY, memory)
    assert (verdict.backlog, verdict.published_backlog) == (True, False)


def test_a_memory_tells_which_sources_had_said_no() -> None:
    assert after(seen(lag=10.0))[1].live_sources == {"flights"}
    assert after(seen(LAG, lag=9000.0))[1].live_sources == frozenset()
    assert Memory().live_sources == frozenset()
