"""What the scenarios and the demo on Kafka make of what they saw."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from benchmarks.event_log import Batch as Logged
from benchmarks.event_log import row_of
from benchmarks.kafka.demo.runs import START_MS, Batch, Outcome, batch
from benchmarks.kafka.scenarios import reader
from benchmarks.kafka.scenarios.faults import LONGEST_AWAY_SECONDS, Outage, compared, id_of
from benchmarks.kafka.scenarios.planning import LEAST, percentile_of
from benchmarks.kafka.scenarios.throughput import BATCH, NAMES, SIZES, read_in_turns
from benchmarks.kafka.scenarios.throughput import compared as throughput
from benchmarks.kafka.timed_run import Planning
from benchmarks.kafka.turns import in_turns, speed, whole


def logged(number: int, started: float, committed: float, records: int) -> Logged:
    return Logged("forward", number, started, started + 0.01, committed, (0,), (records,), 0)


def run_of(took: float, sizes: Sequence[int] = SIZES) -> list[Logged]:
    """Return a run of batches of these sizes that took so long together."""
    each = took / len(sizes)
    return [logged(n, n * each, (n + 1) * each, records) for n, records in enumerate(sizes)]


@pytest.mark.parametrize(
    ("offset", "records"),
    [(None, 0), ('{"row": 17}', 17), ('{"orders": {"0": 17, "1": 3}, "refunds": {"0": 1}}', 21)],
)
def test_offsets_of_every_format_count_records(offset, records):
    assert row_of(offset) == records


def test_throughput_is_from_the_first_trigger_to_the_last_commit():
    assert speed([logged(0, 10.0, 12.0, 1000), logged(1, 12.5, 15.0, 1500)]) == 500.0


def test_each_of_a_pair_reads_as_early_and_as_late_as_the_other():
    order = []

    def read(name):
        order.append(name)
        return run_of(1.0)

    pairs = list(in_turns(("one", "other"), read, warm_ups=2, pairs=2, begin=1))
    warm_ups, counted = order[:4], order[4:]
    assert warm_ups == ["one", "other", "other", "one"]
    assert counted == ["other", "one", "one", "other", "one", "other", "other", "one"]
    assert [{name: len(runs) for name, runs in pair.items()} for pair in pairs] == [
        {"one": 2, "other": 2}
    ] * 2


@dataclass
class Turns:
    """A driver whose runs have these batches."""

    sizes: Sequence[int]

    def read(self, _: str) -> list[Logged]:
        return run_of(1.0, self.sizes)


def read_by(plain: Sequence[int], governed: Sequence[int]) -> list[Mapping[str, object]]:
    readers = dict(zip(NAMES, (Turns(plain), Turns(governed)), strict=True))
    return list(read_in_turns(SimpleNamespace(rounds=8, tell=lambda _: None), readers, "forward", number=1))


def test_runs_of_ten_batches_of_a_million_are_compared():
    assert len(read_by(SIZES, SIZES)) == 2
    assert sum(SIZES) == 10 * BATCH == 10_000_000


@pytest.mark.parametrize(
    ("plain", "governed", "who"),
    [
        (SIZES, (BATCH // 2,) * 20, "governed"),
        (SIZES, (10 * BATCH,), "governed"),
        (SIZES, (BATCH - 1, BATCH + 1, *SIZES[2:]), "governed"),
        ((*SIZES, 0), SIZES, "plain"),
    ],
)
def test_throughput_of_other_batches_than_a_million_is_not_compared(plain, governed, who):
    with pytest.raises(ValueError, match=f"a {who} run had batches of"):
        read_by(plain, governed)


def test_throughput_is_compared_by_the_median_of_pairs_with_an_interval():
    seconds = [2.0, 2.0, 2.0, 4.0, 2.0, 2.0, 1.6]  # of the governed runs of each pair, in the mean
    pairs = [
        {"plain": [run_of(1.5), run_of(2.5)], "governed": [run_of(took - 0.5), run_of(took + 0.5)]}
        for took in seconds
    ]
    found = throughput(pairs)
    assert found.runs == pytest.approx([1.0, 1.0, 1.0, 0.5, 1.0, 1.0, 1.25])
    assert (found.details["interval_low"], found.details["interval_high"]) == pytest.approx((0.5, 1.25))
    assert found.details["governed_records_per_second"] == pytest.approx(5_000_000)
    assert found.details["governed_planning_seconds"] == pytest.approx(0.01)
    for name in NAMES:
        assert (found.details[f"{name}_runs"], found.details[f"{name}_batch_records"]) == (14, SIZES)


def test_a_percentile_of_plannings_says_how_many_there_were():
    plannings = [Planning(n, seconds=n / 1000, first_seconds=0.001) for n in range(1, LEAST + 2)]
    found = percentile_of(plannings, run_of(1.0))
    assert found.runs == [pytest.approx(LEAST / 1000)]
    assert found.details["plannings"] == LEAST + 1
    with pytest.raises(ValueError, match=f"{LEAST - 1} plannings are too few"):
        percentile_of(plannings[: LEAST - 1], run_of(1.0))


def test_a_run_is_whole_when_every_record_has_been_read():
    half = [logged(0, 0.0, 1.0, 500)]
    assert whole(half, 1000) is None
    assert whole(half * 2, 1000) is not None


def test_records_are_lost_doubled_or_neither():
    written = {id_of(0, 0), id_of(0, 1), id_of(1, 0)}
    found = compared([id_of(0, 0), id_of(0, 0), id_of(1, 0)], written, {})
    assert (found["records_lost"].runs, found["records_doubled"].runs) == ([1], [1])
    with pytest.raises(ValueError, match="1 records were read that nobody wrote"):
        compared([*written, 7], written, {})


def outage(*, away: float = 40.0, committed: int = 3, planned: int = 3) -> Outage:
    """Return an outage that began when batch 3 had been committed."""
    return Outage(away, 2.0, committed_before=3, committed=committed, planned=planned)


def test_outages_stand_beside_what_was_lost():
    found = compared([], set(), {"mid_batch": outage(planned=4), "caught_up": outage()})
    told = found["records_lost"].details["outages"]
    assert (told["mid_batch"]["away_seconds"], told["mid_batch"]["planned"]) == (40.0, 4)
    assert told["caught_up"]["commit_seconds"] == 2.0


@pytest.mark.parametrize(
    ("moment", "found", "message"),
    [
        ("mid_batch", outage(), "mid_batch: .* batch 3 was planned and 3 committed"),
        ("mid_batch", outage(committed=4, planned=4), "mid_batch: .* batch 4 was planned and 4 committed"),
        ("between_batches", outage(planned=4), "between_batches: .* batch 4 was planned and 3 committed"),
        ("caught_up", outage(committed=4, planned=4), "caught_up: .* batch 4 was planned and 4 committed"),
        ("mid_batch", outage(away=LONGEST_AWAY_SECONDS + 1, planned=4), "mid_batch: .* away for 61 s"),
    ],
)
def test_an_outage_at_another_moment_or_too_long_gives_no_figures(moment, found, message):
    with pytest.raises(ValueError, match=message):
        compared([], set(), {moment: found})


def test_event_time_goes_back_behind_what_had_been_read():
    batches = [(0.0, 50.0), (10.0, 60.0), (55.0, 70.0)]
    outcome = Outcome(tuple(Batch(1.0, low, high, 5, 1, 10) for low, high in batches))
    assert outcome.went_back_seconds == 40.0
    assert (outcome.dropped, outcome.peak_state_rows) == (3, 5)


def test_a_batch_of_the_demo_is_read_off_its_report():
    report = {
        "timestamp": "2026-01-01T00:00:05.000Z",
        "durationMs": {"triggerExecution": 1500},
        "eventTime": {"min": "2026-01-01T00:00:01.000Z", "max": "2026-01-01T00:10:00.000Z"},
        "stateOperators": [{"numRowsTotal": 7, "numRowsDroppedByWatermark": 2}],
        "sources": [{"numInputRows": 3}, {"numInputRows": 4}],
    }
    assert batch(report, began=START_MS / 1000) == Batch(6.5, 1.0, 600.0, 7, 2, 7)


def test_readers_are_compared_round_by_round():
    spark = {"spark": [3.0, 4.0], "spark_small_polls": [6.0, 6.0]}
    found = reader.compared(spark | {"columns": [2.0, 2.0], "columns_small_polls": [2.0, 3.0]})
    assert found["kafka_read_vs_plain"].runs == [1.5, 2.0]
    assert found["kafka_read_vs_plain_small_polls"].runs == [3.0, 2.0]
    assert found["kafka_read_vs_plain"].details["records_per_second"]["columns"] == reader.RECORDS / 2
