"""The replay source without Spark: what has arrived when, and which rows a batch reads."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from headgate_spark.sources.arrival import Schedule, parse_options, parse_time
from headgate_spark.sources.recording import index_by_time, open_recording, to_micros
from headgate_spark.sources.replay import ROWS_PER_TASK, ReplayStreamReader
from support.recordings import at, write_recording

ALL = ReadAllAvailable()
ZERO = 1_700_000_000.0


class Clock:
    """Time that passes when a test says so."""

    def __init__(self, now: float = ZERO) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def reader(path: Path, clock: Clock, **options: object) -> ReplayStreamReader:
    texts = {"path": str(path)} | {name: str(value) for name, value in options.items()}
    return ReplayStreamReader(parse_options(texts), clock)


def live_reader(path: Path, clock: Clock, **options: object) -> ReplayStreamReader:
    """Ten rows a second apart, of which five lie before the cut; the others arrive at twice real time."""
    write_recording(path, [range(10)])
    given_options = {"eventTime": "ts", "cut": at(5).isoformat(), "speed": 2} | options
    return reader(path, clock, **given_options)


def end(replay: ReplayStreamReader, start: int = 0, limit: object = ALL) -> int:
    return replay.latestOffset({"row": start}, limit)["row"]


def test_without_a_cut_everything_is_there_at_once(tmp_path: Path) -> None:
    replay = reader(write_recording(tmp_path / "r", [range(7), range(7, 9)]), Clock())
    assert end(replay) == 9


def test_what_lies_before_the_cut_is_there_at_once_and_the_rest_at_a_multiple_of_real_time(
    tmp_path: Path,
) -> None:
    clock = Clock()
    replay = live_reader(tmp_path / "r", clock)
    arrived = []
    for passed in (0, 0.1, 0.4, 0.6, 2.1, 99):
        clock.now = ZERO + passed
        arrived.append(end(replay))
    assert arrived == [5, 6, 6, 7, 10, 10]


def test_arrival_follows_a_fixed_start_no_matter_when_a_query_begins(tmp_path: Path) -> None:
    replay = live_reader(tmp_path / "r", Clock(ZERO + 1.1), startedAt=ZERO)
    assert end(replay) == 8


def test_a_start_in_the_future_leaves_what_lies_before_the_cut(tmp_path: Path) -> None:
    replay = live_reader(tmp_path / "r", Clock(), startedAt=ZERO + 60)
    assert end(replay) == 5


def test_nothing_arrives_after_the_cut_until_the_file_exists(tmp_path: Path) -> None:
    clock, tap = Clock(), tmp_path / "tap"
    replay = live_reader(tmp_path / "r", clock, startedBy=tap)
    clock.now = ZERO + 60
    assert end(replay) == 5
    tap.touch()
    clock.now = tap.stat().st_mtime + 0.6
    assert end(replay) == 7


def test_arrival_resumes_at_the_last_row_read_after_a_restart(tmp_path: Path) -> None:
    clock = Clock(ZERO + 3600)
    replay = live_reader(tmp_path / "r", clock)
    assert end(replay, start=8) == 8
    clock.now += 0.6
    assert end(replay, start=8) == 9


def test_a_clock_that_goes_back_takes_no_row_away(tmp_path: Path) -> None:
    clock = Clock()
    replay = live_reader(tmp_path / "r", clock, startedAt=ZERO)
    clock.now = ZERO + 1.1
    assert end(replay) == 8
    clock.now = ZERO
    assert end(replay) == 8


def test_the_users_cap_is_the_default_limit_and_binds_no_other_caller(tmp_path: Path) -> None:
    replay = reader(write_recording(tmp_path / "r", [range(10)]), Clock(), rowsPerBatch=4)
    limit = replay.getDefaultReadLimit()
    assert limit == ReadMaxRows(4)
    assert [end(replay, 0, limit), end(replay, 8, limit), end(replay, 0, ALL)] == [4, 10, 10]


def test_the_latest_offset_that_is_reported_ignores_the_cap(tmp_path: Path) -> None:
    replay = reader(write_recording(tmp_path / "r", [range(10)]), Clock(), rowsPerBatch=4)
    assert replay.reportLatestOffset() == {"row": 10}


def test_a_query_that_ends_by_itself_ends_at_what_had_arrived_when_it_began(tmp_path: Path) -> None:
    clock = Clock()
    replay = live_reader(tmp_path / "r", clock)
    replay.prepareForTriggerAvailableNow()
    clock.now += 60
    assert end(replay) == 5
    assert end(replay, start=7) == 7


def test_an_empty_batch_has_no_partitions(tmp_path: Path) -> None:
    replay = reader(write_recording(tmp_path / "r", [range(10)]), Clock())
    assert replay.partitions({"row": 4}, {"row": 4}) == []


@pytest.mark.parametrize(
    ("rows", "tasks"), [(1, 1), (ROWS_PER_TASK, 1), (ROWS_PER_TASK + 1, 2), (9 * ROWS_PER_TASK, 3)]
)
def test_small_batches_are_split_into_fewer_tasks(tmp_path: Path, rows: int, tasks: int) -> None:
    replay = reader(write_recording(tmp_path / "r", [range(rows)], 100_000), Clock(), numPartitions=3)
    assert len(replay.partitions({"row": 0}, {"row": rows})) == tasks


def test_a_reader_takes_nothing_open_to_the_executors(tmp_path: Path) -> None:
    replay = reader(write_recording(tmp_path / "r", [range(10)]), Clock())
    assert end(replay) == 10
    (partition,) = replay.partitions({"row": 3}, {"row": 6})
    copy, part = pickle.loads(pickle.dumps(replay)), pickle.loads(pickle.dumps(partition))
    assert [row for batch in copy.read(part) for row in batch.column("id").to_pylist()] == [3, 4, 5]


recordings = st.lists(st.lists(st.integers(0, 50), min_size=1, max_size=9), min_size=1, max_size=4)


@given(recordings, st.integers(1, 5), st.booleans(), st.data())
def test_a_search_finds_what_counting_finds(
    tmp_path_factory: pytest.TempPathFactory,
    files: list[list[int]],
    rows_per_group: int,
    statistics: bool,
    data: st.DataObject,
) -> None:
    seconds = sorted(second for file in files for second in file)
    split = iter(seconds)
    parts = [[next(split) for _ in file] for file in files]
    path = write_recording(tmp_path_factory.mktemp("r"), parts, rows_per_group, statistics=statistics)
    recording = open_recording(path)
    index = index_by_time(recording, "ts")
    time = data.draw(st.integers(-1, 51))
    row = data.draw(st.integers(0, len(seconds) - 1))
    assert index.rows_before(to_micros(at(time))) == sum(second < time for second in seconds)
    assert index.time_of(row) == to_micros(at(seconds[row]))
    first, last = sorted(data.draw(st.tuples(st.integers(0, len(seconds)), st.integers(0, len(seconds)))))
    read = [
        id_
        for part in recording.ranges(first, last)
        for batch in part.batches(3)
        for id_ in batch["id"].to_pylist()
    ]
    assert read == list(range(first, last))


@given(st.integers(-(10**15), 10**15), st.floats(0.001, 1e6), st.floats(0, 1e6))
def test_a_row_has_arrived_once_its_time_has_come(cut: int, speed: float, elapsed: float) -> None:
    schedule = Schedule(cut, speed)
    reached = schedule.event_time_reached(elapsed)
    assert schedule.seconds_until(reached) <= elapsed + 1e-6
    assert schedule.event_time_reached(elapsed + 1) >= reached


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "option path is not set"),
        ({"path": "p", "cut": "2013-01-01"}, "cut is set but eventTime is not"),
        ({"path": "p", "cut": "soon", "eventTime": "ts"}, "option cut is 'soon'; write a timestamp"),
        ({"path": "p", "speed": "2"}, "speed is set but cut is not"),
        (
            {"path": "p", "cut": "2013-01-01", "eventTime": "ts", "speed": "0"},
            "option speed is '0'; set it to",
        ),
        ({"path": "p", "cut": "2013-01-01", "eventTime": "ts", "speed": "nan"}, "option speed is 'nan'"),
        ({"path": "p", "startedAt": "now"}, "option startedAt is 'now'"),
        ({"path": "p", "startedAt": "1", "startedBy": "f"}, "startedAt and startedBy are both set"),
        ({"path": "p", "rowsPerBatch": "-5"}, "option rowsPerBatch is '-5'; set it to a whole number"),
        ({"path": "p", "numPartitions": "two"}, "option numPartitions is 'two'"),
    ],
)
def test_options_that_make_no_sense_are_refused_with_the_remedy(
    options: dict[str, str], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        parse_options(options)


def test_a_cut_without_a_zone_is_utc() -> None:
    assert parse_time("2013-01-01") == parse_time("2013-01-01T01:00:00+01:00") == to_micros(at(0))


@pytest.mark.parametrize("statistics", [True, False])
@pytest.mark.parametrize("files", [[[1, 3, 2]], [[1, 2], [1, 5]], [[5, 6], [1, 2]]])
def test_a_recording_that_is_not_sorted_is_refused(
    tmp_path: Path, files: list[list[int]], statistics: bool
) -> None:
    recording = open_recording(write_recording(tmp_path, files, statistics=statistics))
    with pytest.raises(ValueError, match="is not sorted by 'ts'; sort the rows"):
        index_by_time(recording, "ts").rows_before(to_micros(at(2.5)))


def test_a_path_without_parquet_files_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=f"no Parquet file at {tmp_path}; set option path"):
        open_recording(tmp_path)


@pytest.mark.parametrize(
    ("column", "message"), [("time", "set option eventTime to one of: id, ts"), ("id", "not a timestamp")]
)
def test_an_event_time_column_that_cannot_be_is_refused(tmp_path: Path, column: str, message: str) -> None:
    recording = open_recording(write_recording(tmp_path, [range(3)]))
    with pytest.raises(ValueError, match=message):
        index_by_time(recording, column)
