"""The records that are read."""

import json
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest

from benchmarks.local import recording
from benchmarks.local.recording import CUT, Recording, prepare, repeated

SMALL = Recording("small", backlog_rows=100, backlog_seconds=50, live_rows_per_second=10, live_seconds=5)


@pytest.fixture(autouse=True)
def few_rows(monkeypatch):
    monkeypatch.setattr(recording, "KEYS", 20)
    monkeypatch.setattr(recording, "ROWS_PER_FILE", 40)


def read(directory):
    return pq.ParquetDataset(sorted(directory.glob("*.parquet"))).read()


def test_the_backlog_ends_at_the_cut_and_the_live_part_begins_there(tmp_path):
    times = read(prepare(SMALL, tmp_path)).column("event_time").cast("int64").to_numpy() / 1e6
    since_cut = times - CUT.timestamp()
    assert len(since_cut) == SMALL.rows == 150
    assert np.all(np.diff(since_cut) > 0)
    assert since_cut[0] == -50
    assert since_cut[99] == pytest.approx(-0.5)
    assert since_cut[100] == 0
    assert since_cut[149] == pytest.approx(4.9)


def test_a_live_row_arrives_when_its_event_time_says():
    assert SMALL.arrived_after(100) == 0
    assert SMALL.arrived_after(110) == 1


def test_each_pass_has_every_key_once_in_an_order_of_its_own(tmp_path):
    keys = read(prepare(SMALL, tmp_path)).column("key").to_numpy()
    first, second = keys[:20], keys[20:40]
    assert sorted(first) == sorted(second) == list(range(20))
    assert list(first) != list(second)


def test_the_same_records_are_written_each_time(tmp_path):
    assert read(prepare(SMALL, tmp_path / "a")).equals(read(prepare(SMALL, tmp_path / "b")))


def test_what_is_there_is_not_written_again(tmp_path):
    file = next(prepare(SMALL, tmp_path).glob("*.parquet"))
    before = file.stat().st_mtime_ns
    prepare(SMALL, tmp_path)
    assert file.stat().st_mtime_ns == before


def test_another_description_is_written_anew(tmp_path):
    prepare(SMALL, tmp_path)
    longer = Recording("small", 100, 50, 10, 9)
    assert len(read(prepare(longer, tmp_path))) == longer.rows == 190


def test_a_repeated_recording_has_its_files_in_turn(tmp_path):
    directory = prepare(SMALL, tmp_path)
    twice = repeated(directory, 2)
    assert twice.name == "small-2-times"
    assert read(twice).column("key").to_pylist() == 2 * read(directory).column("key").to_pylist()


@pytest.mark.parametrize("spread", ["uniform", "zipf", "hot"])
def test_keys_by_chance_have_sums_that_are_odd_once_their_last_record_is_in(spread, tmp_path):
    recording_ = Recording("some", 5000, 50, 1, 0, keys=100, spread=spread)
    table = read(prepare(recording_, tmp_path))
    keys, values = table.column("key").to_numpy(), table.column("value").to_numpy()
    seen = {}
    for number, (key, value) in enumerate(zip(keys.tolist(), values.tolist(), strict=True)):
        assert seen.get(key, 0) % 2 == 0, f"record {number} comes after the last one of its key"
        seen[key] = seen.get(key, 0) + value
    assert all(total % 2 for total in seen.values())
    most = np.bincount(keys).max() / len(keys)
    assert {"uniform": most < 0.03, "hot": 0.08 < most < 0.14, "zipf": 0.15 < most < 0.24}[spread]


def test_a_recording_is_described_as_before_there_were_spreads(tmp_path):
    described = json.loads((prepare(SMALL, tmp_path) / "recording.json").read_text())
    assert "spread" not in described
    assert json.loads(recording.described_as(replace(SMALL, spread="hot")))["spread"] == "hot"
