"""The laws of the auction stream, anywhere in it and whatever is drawn."""

from dataclasses import replace

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.backlog import auctions
from benchmarks.backlog.auctions import AUCTIONS, EPOCH, KINDS, PERSONS, AuctionBench, events, tables
from benchmarks.local import recording
from benchmarks.local.recording import MICROS, Recording

SMALL = Recording("auctions", 5_000, 3600, 10, 30)
OWN = {
    "person": {"id", "name", "city", "state"},
    "auction": {"id", "seller", "category", "expires"},
    "bid": {"auction", "bidder", "price"},
}


def stretch(start, count, seed=0):
    """Some events in a row, one each 10 ms."""
    numbers = np.arange(start, start + count)
    return events(numbers, numbers * 10_000, np.random.default_rng(seed))


def of_kind(kind, table):
    """Their numbers in the stretch, and the events of a kind."""
    is_kind = pc.equal(table.column("kind"), kind)
    return np.flatnonzero(is_kind.to_numpy()), table.filter(is_kind)


anywhere = given(
    start=st.one_of(st.integers(0, 3 * EPOCH), st.integers(0, 10**9)),
    count=st.integers(EPOCH, 4 * EPOCH),
    seed=st.integers(0, 2**32 - 1),
)


@anywhere
def test_of_fifty_in_a_row_one_is_a_person_and_three_are_auctions(start, count, seed):
    kinds = stretch(start, count, seed).column("kind").to_pylist()
    for first in range(count - EPOCH + 1):
        fifty = kinds[first : first + EPOCH]
        assert [fifty.count(kind) for kind in KINDS] == [1, 3, 46]


@anywhere
def test_persons_and_auctions_are_counted_from_0(start, count, seed):
    table = stretch(start, count, seed)
    for kind, in_epoch, before in (("person", PERSONS, 0), ("auction", AUCTIONS, PERSONS)):
        at, found = of_kind(kind, table)
        epoch, place = np.divmod(at + start, EPOCH)
        assert found.column("id").to_pylist() == list(epoch * in_epoch + place - before)


@anywhere
def test_nothing_is_mentioned_before_it_is_there_or_long_after(start, count, seed):
    table = stretch(start, count, seed)
    for kind, column, in_epoch, recent in (
        ("auction", "seller", PERSONS, auctions.RECENT_PERSONS),
        ("bid", "bidder", PERSONS, auctions.RECENT_PERSONS),
        ("bid", "auction", AUCTIONS, auctions.RECENT_AUCTIONS),
    ):
        at, found = of_kind(kind, table)
        there = ((at + start) // EPOCH + 1) * in_epoch
        mentioned = found.column(column).to_numpy()
        assert np.all((mentioned >= 0) & (mentioned < there))
        assert np.all(mentioned >= there - max(recent, auctions.HOT_EVERY))


@anywhere
def test_auctions_are_open_for_a_time_and_bids_are_above_nothing(start, count, seed):
    table = stretch(start, count, seed)
    _, opened = of_kind("auction", table)
    micros = [opened.column(name).cast("int64").to_numpy() for name in ("event_time", "expires")]
    seconds = (micros[1] - micros[0]) / MICROS
    assert np.all((seconds >= 1) & (seconds <= auctions.LONGEST_SECONDS))
    assert set(opened.column("category").to_pylist()) <= set(range(10, 15))
    _, bids = of_kind("bid", table)
    assert np.all(bids.column("price").to_numpy() >= 100)


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_has_its_own_columns_and_no_others(kind):
    _, found = of_kind(kind, stretch(0, 1000))
    filled = {name for name in found.column_names if found.column(name).null_count == 0}
    empty = {name for name in found.column_names if found.column(name).null_count == len(found)}
    assert filled == OWN[kind] | {"kind", "event_time"}
    assert filled | empty == set(found.column_names)


def test_one_auction_in_a_hundred_has_half_of_the_bids():
    _, bids = of_kind("bid", stretch(0, 100_000))
    is_hot = bids.column("auction").to_numpy() % auctions.HOT_EVERY == 0
    assert 0.48 < is_hot.mean() < 0.53


def test_the_same_events_are_written_each_time_and_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(auctions, "ROWS_PER_FILE", 2_000)
    monkeypatch.setattr(recording, "ROWS_PER_GROUP", 500)
    bench = AuctionBench(tmp_path, tmp_path / "a", 1, print, scale=1.0)
    first = bench.recording(SMALL)
    other = replace(bench, data=tmp_path / "b").recording(SMALL)
    files = sorted(first.glob("*.parquet"))
    assert [len(pq.read_table(file)) for file in files] == [2_000, 2_000, 1_300]
    written = pq.ParquetDataset(files).read()
    assert written.equals(pq.ParquetDataset(sorted(other.glob("*.parquet"))).read())
    before = files[0].stat().st_mtime_ns
    assert bench.recording(SMALL) == first
    assert files[0].stat().st_mtime_ns == before


def test_event_times_are_even_and_end_where_those_of_other_recordings_do():
    (table,) = tables(SMALL)
    times = table.column("event_time").cast("int64").to_numpy()
    backlog = times[: SMALL.backlog_rows]
    assert set(np.diff(backlog)) == {720_000}
    assert backlog[0] == recording.CUT.timestamp() * MICROS - 3600 * MICROS
    assert np.all(np.diff(times) > 0)


def test_a_part_of_the_stream_has_as_long_a_history(tmp_path):
    bench = AuctionBench(tmp_path, tmp_path, 1, print, scale=0.5)
    table = pq.ParquetDataset(sorted(bench.recording(SMALL, 0.1).glob("*.parquet"))).read()
    assert len(table) == 250 + 1 * 30
    assert table.column("event_time")[0].value == recording.CUT.timestamp() * MICROS - 3600 * MICROS
