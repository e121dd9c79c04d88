"""What `make bench-live` and `make demo-live` count: agreement, rows of a snapshot, ages of results."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from benchmarks.live.demo import runs
from benchmarks.live.demo.page import cells, render
from benchmarks.live.demo.runs import Outcome
from benchmarks.live.scenarios import backlog, settling, snapshot, votes
from benchmarks.live.traffic import Output, Seen


@pytest.mark.parametrize("trace", ["one lagging partition", "nexmark"])
def test_all_who_vote_agree_on_an_hour_and_a_half_in_which_the_verdict_changes(trace: str) -> None:
    same, scrapes, changes = votes._agreement(votes.TRACES[trace], 1.5 * votes.HOUR)
    assert same == scrapes
    assert changes >= 1
    assert scrapes >= 200


def test_a_snapshot_is_spread_unevenly_and_none_of_it_is_lost() -> None:
    for seed in range(20):
        counts = snapshot._spread(random.Random(seed), 1000)
        assert len(counts) == snapshot.PARTITIONS
        assert sum(counts) == 1000
        assert min(counts) >= 0


def test_ages_are_told_by_windows_of_ten_seconds() -> None:
    ages = [(0.5, 1.0), (9.9, 3.0), (10.0, 0.25), (19.0, 0.25), (20.4, 0.25)]
    assert settling.by_window(ages, 20.0) == [pytest.approx(2.9), 0.25]


def test_what_is_counted_of_a_backlog_is_in_the_last_lines_of_the_output() -> None:
    lines = [Seen(1.0, "0 1 0"), Seen(2.0, "1 4 0"), Seen(3.0, "0 6 0")]
    assert backlog.all_of(lines, 10) == lines
    assert backlog.all_of(lines, 11) is None


# The demo

OUTPUT = Output(
    [Seen(99.5, "k 1 99400"), Seen(100.5, "k 2 100100"), Seen(100.6, "k 3 100000"), Seen(102.0, "k 9 101900")]
)
RUN = Outcome(runs.ages(OUTPUT, began=100.0), fresh_after=1.5, ended=40.0, counted=9, sent=9)


def test_results_grow_older_until_later_records_are_in_them() -> None:
    assert RUN.ages == ((-0.5, pytest.approx(0.1)), (0.5, pytest.approx(0.4)), (2.0, pytest.approx(0.1)))
    ages = {round(at, 2): age for at, age in RUN.sampled(0.5)}
    assert ages[0.0] == pytest.approx(0.6)
    assert ages[0.5] == pytest.approx(0.4)
    assert ages[1.5] == pytest.approx(1.4)
    assert ages[2.0] == pytest.approx(0.1)


def test_the_page_of_the_demo_has_a_line_and_a_figure_of_each_run_and_needs_nothing_else() -> None:
    cut = replace(RUN, fresh_after=None, counted=7)
    found = {"default": cut, "real_time": RUN, "governed": RUN}
    page = render(found, "one <outage>")
    assert page.count("<polyline") == 3
    assert "one &lt;outage&gt;" in page
    assert "<script" not in page
    assert "http" not in page
    assert cells(found)[2] == (
        "fresh again (no older than 1 s) after",
        "not within the run",
        "1.50 s",
        "1.50 s",
    )
    assert cells(found)[-1] == ("counted in the end", "7", "9", "9")
