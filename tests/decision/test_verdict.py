"""Verdicts over time: a few observations in a row, and what holds after the last."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from headgate.decision.memory import Memory
from headgate.decision.observation import Observation, SourceObservation
from headgate.decision.policy import OnOutage, QueryPolicy, SourcePolicy
from headgate.decision.verdict import Verdict, decide
from headgate.decision.voters import Reason
from headgate_contract import ReentryControl

Seen = SourceObservation
UNKNOWN = Seen()
I, B = 5.0, 120.0  # noqa: E741 - the names of the two intervals in the specification


def policy(
    *sources: SourcePolicy, reentry: ReentryControl | None = None, on_outage: OnOutage = OnOutage.HOLD
) -> QueryPolicy:
    return QueryPolicy(
        name="delays",
        sources=sources or (SourcePolicy(name="flights", watermark_lag_seconds=300.0),),
        interval_seconds=I,
        interval_during_backlog_seconds=B,
        reentry=reentry or ReentryControl(),
        on_outage=on_outage,
    )


def lag(seconds: float) -> Seen:
    return Seen(watermark_lag_seconds=seconds)


def pending(records: float) -> Seen:
    return Seen(pending_records=records)


def run(
    rules: QueryPolicy,
    *moments: tuple[float, Seen | dict[str, Seen]],
    attempt: int = 1,
    memory: Memory | None = None,
) -> tuple[Verdict, Memory]:
    """Decide on one moment after the other; return the last verdict, and the memory after it."""
    memory = memory or Memory()
    for t, seen in moments:
        sources = seen if isinstance(seen, dict) else {rules.sources[0].name: seen}
        observation = Observation(t=t, query=rules.name, attempt=attempt, sources=sources)
        verdict, memory = decide(observation, rules, memory)
    return verdict, memory


class Row(NamedTuple):
    name: str
    moments: tuple[tuple[float, Seen], ...]
    backlog: bool
    reason: Reason | None = None
    reentry: ReentryControl = ReentryControl()


LIVE = (0.0, lag(0.0))


def every_ten_seconds(start: float, end: float, seen: Seen) -> tuple[tuple[float, Seen], ...]:
    return tuple((float(t), seen) for t in range(int(start), int(end) + 1, 10))


HOUR = lag(3600.0)
LATE = Reason.WATERMARK_LAG

ROWS = (
    Row("first answer at the threshold", ((0, lag(300.0)),), False),
    Row("first answer above the threshold", ((0, lag(300.001)),), True, LATE),
    Row("before anything is known", ((0, UNKNOWN),), False),
    Row("first known answer after an unknown one", ((0, UNKNOWN), (10, lag(301.0))), True, LATE),
    Row("phase yes, lag 0", ((0, Seen(phase=True, watermark_lag_seconds=0.0)),), True, Reason.PHASE),
    Row("phase no, lag 6m", ((0, Seen(phase=False, watermark_lag_seconds=360.0)),), True, LATE),
    Row("yes, then at the threshold", ((0, lag(301.0)), (10, lag(300.0))), False),
    Row("yes, then between threshold and re-entry", ((0, lag(900.0)), (10, lag(301.0))), True, LATE),
    Row("yes, then unknown", ((0, HOUR), (10, UNKNOWN)), True, Reason.UNKNOWN),
    Row("yes, then unknown for a day", ((0, HOUR), (10, UNKNOWN), (86400, UNKNOWN)), True, Reason.UNKNOWN),
    Row(
        "yes, then unknown, then idle",
        ((0, HOUR), (10, UNKNOWN), (20, Seen(idle=True, watermark_lag_seconds=3600.0))),
        False,
    ),
    Row(
        "yes, then paused",
        ((0, HOUR), (10, Seen(watermark_lag_seconds=3600, paused=True))),
        True,
        Reason.UNKNOWN,
    ),
    Row(
        "phase yes, then phase unknown",
        ((0, Seen(phase=True, watermark_lag_seconds=0.0)), (10, lag(0.0))),
        True,
        Reason.UNKNOWN,
    ),
    Row("phase yes, then no", ((0, Seen(phase=True)), (10, Seen(phase=False))), False),
    Row("phase returns at once", ((0, Seen(phase=False)), (10, Seen(phase=True))), True, Reason.PHASE),
    # re-entry
    Row("was no, above the threshold only", (LIVE, *every_ten_seconds(10, 600, lag(599.0))), False),
    Row("was no, at twice the threshold", (LIVE, *every_ten_seconds(10, 600, lag(600.0))), False),
    Row("was no, 1h for 59s", (LIVE, *every_ten_seconds(10, 60, HOUR), (69, HOUR)), False),
    Row("was no, 1h for 60s", (LIVE, *every_ten_seconds(10, 60, HOUR), (70, HOUR)), True, LATE),
    Row("was no, 1h, seen only twice", (LIVE, (10, HOUR), (70, HOUR)), True, LATE),
    Row("decimal times do not fall short", (LIVE, (10.1, HOUR), (40.3, HOUR), (70.1, HOUR)), True, LATE),
    Row(
        "above for 40s, below once, above for 40s",
        (LIVE, *every_ten_seconds(10, 50, HOUR), (55, lag(60.0)), *every_ten_seconds(60, 100, HOUR)),
        False,
    ),
    Row(
        "above for 40s, between the thresholds once, above for 40s",
        (LIVE, *every_ten_seconds(10, 50, HOUR), (55, lag(500.0)), *every_ten_seconds(60, 100, HOUR)),
        False,
    ),
    Row(
        "above for 40s, idle once, above for 40s",
        (
            LIVE,
            *every_ten_seconds(10, 50, HOUR),
            (55, Seen(watermark_lag_seconds=3600, idle=True)),
            *every_ten_seconds(60, 100, HOUR),
        ),
        False,
    ),
    Row(
        "above for 40s, nothing pending once, above for 40s",
        (
            LIVE,
            *every_ten_seconds(10, 50, HOUR),
            (55, Seen(watermark_lag_seconds=3600, pending_records=0)),
            *every_ten_seconds(60, 100, HOUR),
        ),
        False,
    ),
    Row(
        "40s above, 20s unknown, 19s above",
        (LIVE, (10, HOUR), (40, HOUR), (50, UNKNOWN), (70, HOUR), (89, HOUR)),
        False,
    ),
    Row(
        "40s above, 20s unknown, 20s above",
        (LIVE, (10, HOUR), (40, HOUR), (50, UNKNOWN), (70, HOUR), (90, HOUR)),
        True,
        LATE,
    ),
    Row(
        "40s above, 20s unknown twice, 19s above",
        (LIVE, (10, HOUR), (40, HOUR), (50, UNKNOWN), (60, UNKNOWN), (70, HOUR), (89, HOUR)),
        False,
    ),
    Row(
        "paused in between freezes the clock",
        (LIVE, (10, HOUR), (50, Seen(watermark_lag_seconds=3600, paused=True)), (70, HOUR), (90, HOUR)),
        True,
        LATE,
    ),
    Row("a gap of staleAfter counts", (LIVE, (10, HOUR), (70, HOUR)), True, LATE),
    Row("a longer gap restarts the clock", (LIVE, (10, HOUR), (71, HOUR)), False),
    Row("after a longer gap the dwell runs again", (LIVE, (10, HOUR), (71, HOUR), (131, HOUR)), True, LATE),
    Row(
        "a gap of unknowns restarts it too", (LIVE, (10, HOUR), (40, UNKNOWN), (71, HOUR), (130, HOUR)), False
    ),
    Row("time running backwards restarts it", (LIVE, (10, HOUR), (60, HOUR), (20, HOUR), (70, HOUR)), False),
    Row("dwell 0s", (LIVE, (10, HOUR)), True, LATE, ReentryControl(dwell_seconds=0.0)),
    Row(
        "re-entry threshold of its own, at it",
        (LIVE, (10, lag(400.0)), (70, lag(400.0))),
        False,
        None,
        ReentryControl(above_seconds=400),
    ),
    Row(
        "a re-entry threshold below the threshold counts as the threshold",
        (LIVE, (10, lag(300.0)), (70, lag(300.0))),
        False,
        None,
        ReentryControl(above_seconds=100),
    ),
    Row(
        "re-entry threshold of its own, above it",
        (LIVE, (10, lag(401.0)), (70, lag(401.0))),
        True,
        LATE,
        ReentryControl(above_seconds=400),
    ),
    Row(
        "policy Never, 1h for an hour",
        (LIVE, *every_ten_seconds(10, 3610, HOUR)),
        False,
        None,
        ReentryControl(allowed=False),
    ),
    Row("policy Never, first answer", ((0, HOUR), (10, lag(301))), True, LATE, ReentryControl(allowed=False)),
    Row(
        "policy Never, phase comes back",
        (LIVE, (10, Seen(phase=True))),
        True,
        Reason.PHASE,
        ReentryControl(allowed=False),
    ),
    Row(
        "after re-entry it leaves by the threshold",
        (LIVE, (10, HOUR), (70, HOUR), (80, lag(301.0))),
        True,
        LATE,
    ),
    Row("after re-entry, at the threshold", (LIVE, (10, HOUR), (70, HOUR), (80, lag(300.0))), False),
    Row(
        "the second re-entry needs its dwell again",
        (LIVE, (10, HOUR), (70, HOUR), (80, LIVE[1]), (90, HOUR)),
        False,
    ),
    Row("idle first, then lag: needs re-entry", ((0, Seen(idle=True)), (10, HOUR)), False),
    Row("idle first, then lag for a minute", ((0, Seen(idle=True)), (10, HOUR), (70, HOUR)), True, LATE),
)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_verdict_of_one_source(row: Row) -> None:
    verdict, _ = run(policy(reentry=row.reentry), *row.moments)

    assert (verdict.backlog, verdict.reason) == (row.backlog, row.reason)
    assert verdict.interval_seconds == (B if row.backlog else I)


PENDING_ROWS = (
    Row("was no, at twice the threshold", ((0, pending(0)), (10, pending(2000)), (70, pending(2000))), False),
    Row(
        "was no, above twice the threshold",
        ((0, pending(0)), (10, pending(2001)), (70, pending(2001))),
        True,
        Reason.PENDING_RECORDS,
    ),
    Row(
        "re-entry threshold of its own",
        ((0, pending(0)), (10, pending(1501)), (70, pending(1501))),
        True,
        Reason.PENDING_RECORDS,
        ReentryControl(pending_records_above=1500),
    ),
    Row(
        "the lag's re-entry threshold is not that of pending",
        ((0, pending(0)), (10, pending(1501)), (70, pending(1501))),
        False,
        None,
        ReentryControl(above_seconds=1.0),
    ),
)


@pytest.mark.parametrize("row", PENDING_ROWS, ids=lambda row: row.name)
def test_verdict_by_pending_records(row: Row) -> None:
    source = SourcePolicy(name="flights", pending_records=1000)

    verdict, _ = run(policy(source, reentry=row.reentry), *row.moments)

    assert (verdict.backlog, verdict.reason) == (row.backlog, row.reason)


def test_query_needs_no_reentry() -> None:
    rules = policy(SourcePolicy(name="flights", query_configured=True))

    verdict, _ = run(rules, (0, Seen(query_value=0.0)), (1, Seen(query_value=2.0)))

    assert (verdict.backlog, verdict.reason) == (True, Reason.QUERY)


A = SourcePolicy(name="a", watermark_lag_seconds=300.0, pending_records=1000)
Z = SourcePolicy(name="z", watermark_lag_seconds=60.0, query_configured=True)
YES_NO = {"a": lag(301.0), "z": lag(0.0)}
NO_NO = {"a": lag(0.0), "z": lag(0.0)}


def test_two_sources_yes_and_no_then_no_and_no() -> None:
    assert run(policy(A, Z), (0, YES_NO))[0].backlog
    assert not run(policy(A, Z), (0, YES_NO), (10, NO_NO))[0].backlog


def test_a_backlog_of_two_sources_ends_with_the_last() -> None:
    both = {"a": lag(301.0), "z": lag(61.0)}

    verdict, _ = run(policy(A, Z), (0, both), (10, {"a": lag(0.0), "z": UNKNOWN}))

    assert (verdict.backlog, verdict.reason) == (True, Reason.UNKNOWN)
    assert {name: source.backlog for name, source in verdict.sources.items()} == {"a": False, "z": True}


def test_the_reason_goes_by_voter_first_and_by_source_second() -> None:
    seen = {"a": pending(1001), "z": Seen(watermark_lag_seconds=61.0, query_value=1.0)}
    verdict, _ = run(policy(A, Z), (0, seen))
    assert verdict.reason is Reason.WATERMARK_LAG
    assert verdict.sources["a"].reason is Reason.PENDING_RECORDS

    verdict, _ = run(policy(A, Z), (0, {"a": lag(301.0), "z": Seen(phase=True)}))
    assert verdict.reason is Reason.PHASE


def test_a_known_yes_gives_the_reason_before_a_held_one() -> None:
    verdict, _ = run(policy(A, Z), (0, YES_NO), (10, {"z": Seen(query_value=1.0)}))

    assert verdict.reason is Reason.QUERY


def test_votes_are_reported_as_cast_and_not_as_held() -> None:
    verdict, _ = run(policy(A), (0, YES_NO), (10, UNKNOWN))

    assert set(verdict.voters["a"].values()) == {None}


class TestAttempts:
    def test_a_new_attempt_starts_afresh(self) -> None:
        _, memory = run(policy(), LIVE)
        verdict, _ = run(policy(), (10, lag(301.0)), attempt=2, memory=memory)
        assert verdict.reason is LATE

    def test_a_new_attempt_holds_nothing(self) -> None:
        _, memory = run(policy(), (0, HOUR))
        verdict, _ = run(policy(), (10, UNKNOWN), attempt=2, memory=memory)
        assert not verdict.backlog

    def test_a_dwell_does_not_outlive_its_attempt(self) -> None:
        _, memory = run(policy(), LIVE, (10, HOUR))
        verdict, _ = run(policy(), (60, lag(0.0)), (70, HOUR), attempt=2, memory=memory)
        assert not verdict.backlog

    def test_a_restart_for_a_verdict_keeps_votes_and_latches(self) -> None:
        _, memory = run(policy(), (0, HOUR))
        seen = Observation(t=10, query="delays", attempt=2)

        verdict, memory = decide(seen, policy(), memory, restarted_for_verdict=True)

        assert (verdict.backlog, verdict.reason, memory.attempt) == (True, Reason.UNKNOWN, 2)
        verdict, _ = run(policy(), (20, UNKNOWN), attempt=2, memory=memory)
        assert verdict.backlog


class TestChangesOfTheResource:
    def test_a_voter_that_is_taken_out_holds_nothing(self) -> None:
        _, memory = run(policy(A), (0, lag(301.0)))
        verdict, memory = run(
            policy(SourcePolicy(name="a", pending_records=1000)), (10, UNKNOWN), memory=memory
        )
        assert not verdict.backlog
        assert "WatermarkLag" not in memory.latches.get("a", {})

    def test_a_source_that_is_taken_out_holds_nothing(self) -> None:
        _, memory = run(policy(A, Z), (0, YES_NO))
        verdict, _ = run(policy(Z), (10, UNKNOWN), memory=memory)
        assert not verdict.backlog

    def test_a_lower_threshold_does_not_waive_reentry(self) -> None:
        _, memory = run(policy(), (0, lag(200.0)))
        verdict, _ = run(
            policy(SourcePolicy(name="flights", watermark_lag_seconds=100.0)), (10, lag(201.0)), memory=memory
        )
        assert not verdict.backlog


class TestIntervalInForce:
    TABLE = (
        # I, B, in backlog, interval
        (5.0, 120.0, False, 5.0),
        (5.0, 120.0, True, 120.0),
        (5.0, 0.0, True, 0.0),
        (5.0, 0.0, False, 5.0),
        (5.0, None, True, 5.0),
        (None, 120.0, False, None),
        (None, 120.0, True, 120.0),
        (None, None, True, None),
    )

    @pytest.mark.parametrize(("normal", "during", "backlog", "expected"), TABLE)
    def test_interval_follows_the_verdict(
        self, normal: float | None, during: float | None, backlog: bool, expected: float | None
    ) -> None:
        rules = QueryPolicy(
            name="q",
            sources=(SourcePolicy(name="s"),),
            interval_seconds=normal,
            interval_during_backlog_seconds=during,
        )
        verdict, _ = run(rules, (0, Seen(phase=backlog)))
        assert verdict.interval_seconds == expected


class TestOutage:
    LAGGING_IN_PHASE = Seen(watermark_lag_seconds=3600.0, phase=True)

    def test_hold_keeps_verdict_and_settings(self) -> None:
        verdict, _ = run(policy(), (0, HOUR), (10, UNKNOWN))
        assert (verdict.outage, verdict.backlog, verdict.interval_seconds) == (True, True, B)
        assert verdict.published_backlog

    def test_normal_sets_what_holds_outside_a_backlog(self) -> None:
        verdict, _ = run(policy(on_outage=OnOutage.NORMAL), (0, HOUR), (10, UNKNOWN))
        assert (verdict.backlog, verdict.reason) == (True, Reason.UNKNOWN)
        assert (verdict.interval_seconds, verdict.governed_as_backlog) == (I, False)
        assert not verdict.published_backlog

    def test_normal_keeps_votes_and_latches_for_the_recovery(self) -> None:
        verdict, _ = run(policy(on_outage=OnOutage.NORMAL), (0, HOUR), (10, UNKNOWN), (500, lag(301.0)))
        assert (verdict.reason, verdict.interval_seconds) == (LATE, B)

    def test_normal_leaves_a_known_phase_in_force(self) -> None:
        verdict, _ = run(policy(on_outage=OnOutage.NORMAL), (0, HOUR), (10, Seen(phase=True)))
        assert (verdict.reason, verdict.interval_seconds) == (Reason.PHASE, B)

    def test_normal_does_nothing_while_any_metric_is_known(self) -> None:
        rules = policy(A, Z, on_outage=OnOutage.NORMAL)
        verdict, _ = run(rules, (0, YES_NO), (10, {"z": lag(0.0)}))
        assert (verdict.outage, verdict.interval_seconds) == (False, B)

    def test_hold_never_holds_phase(self) -> None:
        verdict, _ = run(policy(), (0, Seen(phase=True, watermark_lag_seconds=0.0)), (10, UNKNOWN))
        assert (verdict.backlog, verdict.reason) == (False, None)

    def test_hold_holds_the_lag_beside_the_phase(self) -> None:
        verdict, _ = run(policy(), (0, self.LAGGING_IN_PHASE), (10, UNKNOWN))
        assert (verdict.backlog, verdict.reason) == (True, Reason.UNKNOWN)

    def test_a_phase_that_an_outage_ended_does_not_come_back_unheard(self) -> None:
        moments = ((0, Seen(phase=True, watermark_lag_seconds=0.0)), (10, UNKNOWN), (20, lag(0.0)))
        verdict, _ = run(policy(), *moments)
        assert not verdict.backlog

    def test_a_known_count_of_pending_records_is_no_outage(self) -> None:
        rules = policy(on_outage=OnOutage.NORMAL)
        verdict, _ = run(rules, (0, HOUR), (10, pending(5)))
        assert (verdict.outage, verdict.reason, verdict.interval_seconds) == (False, Reason.UNKNOWN, B)

    def test_a_paused_source_is_no_outage(self) -> None:
        verdict, _ = run(
            policy(on_outage=OnOutage.NORMAL), (0, HOUR), (10, Seen(watermark_lag_seconds=1, paused=True))
        )
        assert (verdict.outage, verdict.interval_seconds) == (False, B)


class TestPublishedVerdict:
    def test_it_leaves_out_phase(self) -> None:
        verdict, _ = run(policy(), (0, Seen(phase=True, watermark_lag_seconds=0.0)))
        assert (verdict.backlog, verdict.published_backlog) == (True, False)

    def test_it_has_every_other_voter(self) -> None:
        verdict, _ = run(policy(), (0, Seen(phase=True, watermark_lag_seconds=301.0)))
        assert verdict.published_backlog

    def test_it_holds_what_cannot_be_heard(self) -> None:
        verdict, _ = run(policy(), (0, HOUR), (10, Seen(phase=False)))
        assert verdict.published_backlog
