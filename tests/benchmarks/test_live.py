"""What `make bench-live` counts: scrapes on which all agree, and rows that are drawn for a snapshot."""

from __future__ import annotations

import random

import pytest

from benchmarks.live.scenarios import snapshot, votes


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
