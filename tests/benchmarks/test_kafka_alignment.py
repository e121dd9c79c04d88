"""What the alignment scenario counts, where there is a record past the limit, and what it makes of its runs."""

import json
from pathlib import Path

import pytest

from benchmarks.event_log import Batch
from benchmarks.kafka.scenarios.alignment import DRIFT_SECONDS, START_MS, compared, ideal_rows, past_limit
from benchmarks.kafka.topic import Topic
from support.kafka_records import Ramp

FAST = Topic("fast", (Ramp(0, 2_000, START_MS, 1_000),))
SLOW = Topic("slow", (Ramp(0, 100, START_MS, 10_000),))


@pytest.fixture
def notes(tmp_path) -> Path:
    return tmp_path / "1.jsonl"


def got(notes: Path, *batches: dict[str, tuple[int, int]]) -> None:
    """Note batches as the job does: for each topic how many records came, and the number of the last one."""
    steps = {"fast": 1_000, "slow": 10_000}
    lines = []
    for number, batch in enumerate(batches):
        splits = [
            {"topic": topic, "partition": 0, "records": n, "last": START_MS + last * steps[topic]}
            for topic, (n, last) in batch.items()
        ]
        lines.append(json.dumps({"batch": number, "splits": splits}))
    notes.write_text("\n".join(lines), encoding="utf-8")


def test_records_within_the_drift_of_where_the_slowest_ends_are_not_past_the_limit(notes):
    got(notes, {"fast": (131, 130), "slow": (1, 0)})
    assert past_limit((FAST, SLOW), notes) == 0


def test_each_record_beyond_it_is_counted(notes):
    got(notes, {"fast": (134, 133), "slow": (1, 0)})
    assert past_limit((FAST, SLOW), notes) == 3


def test_a_partition_that_was_at_its_end_before_the_batch_holds_nobody(notes):
    got(notes, {"fast": (900, 899), "slow": (100, 99)}, {"fast": (1_100, 1_999)})
    assert past_limit((FAST, SLOW), notes) == 0


def test_other_records_than_were_planned_are_noticed(notes):
    got(notes, {"fast": (10, 12)})
    with pytest.raises(RuntimeError, match="other records"):
        past_limit((FAST, SLOW), notes)


def test_the_least_state_is_what_lies_within_delay_and_bound():
    assert ideal_rows((FAST, SLOW)) == DRIFT_SECONDS + 2 * DRIFT_SECONDS // 10


def run(*seconds: float) -> list[Batch]:
    """Return a run of batches of a thousand records that took so long, of which each was planned for 10 ms."""
    ends = [sum(seconds[: n + 1]) for n in range(len(seconds))]
    return [
        Batch("aligned", n, end - took, end - took + 0.01, end, (1000 * n,), (1000 * (n + 1),), 0)
        for n, (took, end) in enumerate(zip(seconds, ends, strict=True))
    ]


def test_the_catch_up_is_told_by_the_event_rates_where_alignment_costs_most():
    unaligned = [run(1.0, 1.0), run(1.0, 1.0)]
    found = compared(
        {
            10: [{"unaligned": unaligned, "aligned": [run(1.0, 1.0), run(1.0, 1.0)]}] * 3,
            100: [
                {"unaligned": unaligned, "aligned": [run(0.5, 0.5), run(1.5, 1.5)]},
                {"unaligned": unaligned, "aligned": [run(1.0, 1.5), run(1.0, 1.5)]},
                {"unaligned": unaligned, "aligned": [run(2.0, 2.0), run(2.0, 2.0)]},
            ],
        }
    )
    assert found.runs == pytest.approx([1.0, 0.8, 0.5])
    assert (found.details["at_1_to_10"]["median"], found.details["at_1_to_100"]["median"]) == pytest.approx(
        (1.0, 0.8)
    )
    assert found.details["at_1_to_100"]["ratios"] == found.runs
    aligned = found.details["at_1_to_100"]["aligned"]
    assert (aligned["batches"], aligned["planning_seconds"]) == pytest.approx((2, 0.02))
