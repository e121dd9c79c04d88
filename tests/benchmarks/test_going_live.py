"""What runs that work a backlog off and go on live are read off: when which record arrived and was committed."""

from pathlib import Path

import pytest

from benchmarks.backlog import going_live
from benchmarks.backlog.comparison import Output
from benchmarks.backlog.going_live import Flow, Run
from benchmarks.backlog.scenarios import live, nexmark
from benchmarks.event_log import Batch
from benchmarks.local.recording import Recording

LIVE = Recording("live", 1_000, 3600, 100, 120, keys=100)
FLOW = Flow(LIVE, Path("live"))


def batch(started, committed, *rows):
    """A batch that read a span of rows of each source."""
    first, end = zip(*rows, strict=True)
    return Batch("live", 0, started, started + 0.01, committed, first, end, 100)


def made(*batches, began=0.0):
    return Run(began, batches, Output(rows=1, hash=1))


def test_live_batches_count_by_when_their_oldest_record_arrived():
    run = made(
        batch(0.5, 0.6, (0, 500)),
        batch(0.6, 4.0, (500, 1_000)),
        batch(4.0, 5.5, (1_000, 1_400)),
        batch(5.5, 6.0, (1_400, 6_900)),
        batch(60.0, 60.4, (6_900, 7_000)),
        batch(60.5, 60.9, (7_000, 7_050)),
        batch(61.0, 61.3, (7_050, 7_100)),
    )
    found = live.outcome(run, FLOW, live.MEASURED)
    assert found.latencies == pytest.approx([0.9, 0.8])
    assert found.longest_gap == 1.5


def test_a_run_that_has_not_caught_up_is_not_measured():
    with pytest.raises(ValueError, match="not yet live"):
        live.outcome(made(batch(0.5, 59.0, (0, 6_000))), FLOW, live.MEASURED)


def test_what_arrives_faster_is_older_the_later_it_is_committed():
    hastened = Flow(LIVE, Path("live"), speed=4.0)
    assert (hastened.live_seconds, hastened.arrived_after(1_400)) == (30.0, 1.0)
    run = made(batch(10.0, 10.5, (1_400, 1_500)), began=9.0)
    assert going_live.latencies(run, hastened, 0, 30) == [0.5]


def test_the_oldest_record_of_a_batch_is_that_of_the_source_that_has_read_less():
    run = made(
        batch(10.0, 13.0, (1_100, 1_300), (1_200, 1_300)), batch(13.0, 14.0, (1_300, 1_300), (1_300, 1_400))
    )
    assert going_live.latencies(run, FLOW, 0, 30) == [12.0, 11.0]


def test_a_backlog_is_read_when_every_source_has_read_it():
    run = made(
        batch(1.0, 2.0, (0, 1_000), (0, 400)),
        batch(2.0, 5.0, (1_000, 1_000), (400, 1_000)),
        batch(5.0, 6.0, (1_000, 1_100), (1_000, 1_100)),
    )
    assert list(going_live.catch_up(run, FLOW)) == list(run.batches[:2])


def test_a_batch_without_records_has_no_latency():
    run = made(batch(10.0, 11.0, (1_100, 1_100)))
    assert going_live.latencies(run, FLOW, 0, 30) == []


@pytest.mark.parametrize(
    ("flow", "pending"),
    [
        (Flow(live.RECORDING, Path("live")), 100_000),
        (Flow(nexmark.EVENTS, Path("auctions"), nexmark.SPEED, reads=2), 31_125),
    ],
    ids=["live", "nexmark"],
)
def test_a_backlog_is_more_than_arrives_in_five_seconds(flow, pending):
    (source,) = going_live.query(flow)["sources"]
    assert source == {"name": flow.recording.name, "backlog": {"pendingRecords": pending}}


@pytest.mark.parametrize("scale", [1.0, 0.5, 0.01, 0.0005])
def test_each_key_of_the_live_recording_comes_as_often_as_its_job_says(scale):
    script = Path("benchmarks/backlog/jobs/workloads.py").read_text()
    recording = live.of_scale(live.RECORDING, scale)
    assert f"\nTIMES = {recording.rows // recording.keys}\n" in script
    assert recording.rows % recording.keys == 0


def test_what_counts_of_a_live_run_lies_within_its_recording():
    for span in (live.MEASURED, live.TRIED):
        flow = Flow(live.RECORDING, Path("live"), span.speed)
        assert span.start < span.end < flow.live_seconds
