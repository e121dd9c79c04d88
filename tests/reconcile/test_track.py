from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.reconcile.readings import QueryMetrics, SourceMetrics
from headgate.reconcile.track import WINDOW_SECONDS, Track


def query(processed: float | None, pending: float | None, **held: float) -> QueryMetrics:
    source = SourceMetrics(processed_records=processed, pending_records=pending, held_seconds=held)
    return QueryMetrics(sources={"flights": source})


def watched(*moments: tuple[float, QueryMetrics], attempt: int = 1) -> Track:
    track = Track()
    for at, metrics in moments:
        track = track.following(metrics, attempt=attempt, at=at)
    return track


def test_arrivals_are_what_was_read_and_what_waits_more() -> None:
    track = watched((0.0, query(0, 1000)), (10.0, query(400, 700)))
    assert track.arrival_rate == 10.0


def test_one_moment_tells_no_rate() -> None:
    assert watched((0.0, query(0, 1000))).arrival_rate is None


def test_moments_in_which_nothing_changed_do_not_dilute_the_rate() -> None:
    quiet = [(float(t), query(0, 1000)) for t in range(1, 5)]
    assert watched((0.0, query(0, 1000)), *quiet, (10.0, query(500, 600))).arrival_rate == 10.0


@pytest.mark.parametrize("hole", [query(None, 5), query(5, None), QueryMetrics(sources={})])
def test_an_unknown_amount_makes_the_rate_unknown(hole: QueryMetrics) -> None:
    assert watched((0.0, query(0, 1000)), (10.0, hole)).arrival_rate is None


def test_a_new_attempt_starts_over() -> None:
    track = watched((0.0, query(0, 1000)), (10.0, query(500, 600)))
    assert track.following(query(0, 600), attempt=2, at=11.0).arrival_rate is None


def test_a_reading_that_is_not_newer_changes_nothing() -> None:
    track = watched((0.0, query(0, 1000)), (10.0, query(500, 600)))
    assert track.following(query(900, 0), attempt=1, at=10.0) is track


def test_a_clock_that_is_set_back_starts_over_and_hides_nothing_until_it_has_caught_up() -> None:
    held = query(500, 600, Alignment=10.0)
    track = watched((5000.0, query(0, 1000, Alignment=0.0)), (5010.0, held))
    assert track.held_by == {"flights": "Alignment"}
    track = track.following(held, attempt=1, at=1410.0).following(query(900, 300), attempt=1, at=1420.0)
    assert (track.held_by, track.arrival_rate) == ({"flights": None}, 10.0)


def test_the_rate_is_that_of_the_last_minute() -> None:
    burst = [(float(t), query(1000.0 * t, 0)) for t in range(10)]
    calm = [(10.0 + t, query(9000.0 + t, 0)) for t in range(int(WINDOW_SECONDS) + 5)]
    assert watched(*burst, *calm).arrival_rate == pytest.approx(1.0)


@given(st.lists(st.tuples(st.floats(0.1, 500), st.floats(0, 1e6), st.floats(0, 1e6)), max_size=40))
def test_marks_span_the_window_and_at_most_one_more(steps: list[tuple[float, float, float]]) -> None:
    at, processed, track = 0.0, 0.0, Track()
    for seconds, read, pending in steps:
        at, processed = at + seconds, processed + read
        track = track.following(query(processed, pending), attempt=1, at=at)
    if track.marks:
        older = [mark for mark in track.marks if mark.t <= track.marks[-1].t - WINDOW_SECONDS]
        assert len(older) <= 1
        assert track.arrival_rate is None or track.arrival_rate >= 0


def test_the_hold_whose_time_grew_is_the_one_in_force() -> None:
    before = (0.0, query(0, 5, RateLimit=3, Alignment=9))
    assert watched(before, (1.0, query(0, 5, RateLimit=4, Alignment=9))).held_by == {"flights": "RateLimit"}
    assert watched(before, (1.0, query(0, 5, RateLimit=3, Alignment=9))).held_by == {"flights": None}


def test_waiting_for_the_commit_interval_is_not_being_held() -> None:
    track = watched((0.0, query(0, 5)), (1.0, query(0, 5, Interval=0.9, NothingPending=0.1)))
    assert track.held_by == {"flights": None}


def test_a_paused_source_is_held_by_that() -> None:
    paused = QueryMetrics(sources={"flights": SourceMetrics(paused=True)})
    assert watched((0.0, paused)).held_by == {"flights": "Paused"}


def test_what_a_history_tells_of_the_last_minute_goes_before_the_difference_of_two_looks() -> None:
    def look(lately: dict[str, float] | None) -> QueryMetrics:
        return QueryMetrics(
            sources={"flights": SourceMetrics(held_seconds={"Paused": 5.0}, held_lately=lately)}
        )

    assert watched((0.0, look({"": 0.0, "Alignment": 4.0, "RateLimit": 9.0}))).held_by == {
        "flights": "RateLimit"
    }
    assert watched((0.0, look(None)), (1.0, look({"": 0.0, "Interval": 50.0}))).held_by == {"flights": None}


def test_the_last_minute_goes_on_while_no_newer_reading_comes() -> None:
    def look(lately: dict[str, float]) -> QueryMetrics:
        return QueryMetrics(sources={"flights": SourceMetrics(held_lately=lately)})

    track = watched((5.0, look({"": 0.0, "RateLimit": 9.0})), (5.0, look({"": 0.0})))
    assert (track.held_by, track.at) == ({"flights": None}, 5.0)
