"""What the scenarios and the demo on Kafka make of what they saw."""

from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from benchmarks.event_log import Batch as Logged
from benchmarks.event_log import row_of
from benchmarks.kafka.demo.runs import START_MS, Batch, Outcome, batch
from benchmarks.kafka.scenarios.faults import compared, id_of
from benchmarks.kafka.scenarios.throughput import NAMES, WARM_UPS, read_in_turns
from benchmarks.kafka.scenarios.throughput import compared as throughput
from benchmarks.kafka.turns import speed, whole


def logged(number: int, started: float, committed: float, records: int) -> Logged:
    return Logged("forward", number, started, started + 0.01, committed, (0,), (records,), 0)


@pytest.mark.parametrize(
    ("offset", "records"),
    [(None, 0), ('{"row": 17}', 17), ('{"orders": {"0": 17, "1": 3}, "refunds": {"0": 1}}', 21)],
)
def test_offsets_of_every_format_count_records(offset, records):
    assert row_of(offset) == records


def test_throughput_is_from_the_first_trigger_to_the_last_commit():
    assert speed([logged(0, 10.0, 12.0, 1000), logged(1, 12.5, 15.0, 1500)]) == 500.0


def test_each_driver_of_a_pair_reads_as_early_and_as_late_as_the_other():
    order = []

    @dataclass
    class Turn:
        name: str

        def read(self, query):
            order.append(self.name)
            return [logged(0, 0.0, 1.0, 10)]

    bench = SimpleNamespace(rounds=8, tell=lambda _: None)
    readers = {name: Turn(name) for name in NAMES}
    pairs = list(read_in_turns(bench, readers, "forward", number=1))
    warm_ups, counted = order[: 2 * WARM_UPS], order[2 * WARM_UPS :]
    assert sorted(warm_ups) == sorted(NAMES * WARM_UPS)
    assert counted == ["governed", "plain", "plain", "governed", "plain", "governed", "governed", "plain"]
    assert [{name: len(runs) for name, runs in pair.items()} for pair in pairs] == [
        {"plain": 2, "governed": 2}
    ] * 2


def test_throughput_is_compared_by_the_median_of_pairs_with_an_interval():
    def run(took):
        return [logged(0, 0.0, took, 1000)]

    seconds = [2.0, 2.0, 2.0, 4.0, 2.0, 2.0, 1.6]  # of the governed runs of each pair, in the mean
    pairs = [
        {"plain": [run(1.5), run(2.5)], "governed": [run(took - 0.5), run(took + 0.5)]} for took in seconds
    ]
    found = throughput(pairs)
    assert found.runs == pytest.approx([1.0, 1.0, 1.0, 0.5, 1.0, 1.0, 1.25])
    assert (found.details["interval_low"], found.details["interval_high"]) == pytest.approx((0.5, 1.25))
    assert found.details["governed_records_per_second"] == pytest.approx(500.0)
    assert found.details["governed_planning_seconds"] == pytest.approx(0.01)


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
