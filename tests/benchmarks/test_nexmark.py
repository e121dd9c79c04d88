"""What the scenarios of Nexmark run, and what they make of it."""

import re
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from benchmarks.backlog import auctions
from benchmarks.backlog.comparison import Comparison, Output
from benchmarks.backlog.going_live import Flow, Run
from benchmarks.backlog.rounds import GOVERNED
from benchmarks.backlog.scenario import Bench
from benchmarks.backlog.scenarios import nexmark
from benchmarks.event_log import Batch
from benchmarks.local.recording import CUT, Recording

JOB = Path("benchmarks/backlog/jobs/nexmark.py").read_text()


def test_every_query_is_one_of_the_job_and_a_scenario():
    queries = re.findall(r'^    "(\w+)": \w+,$', JOB, re.M)
    assert [query.name for query in nexmark.QUERIES] == queries
    assert [scenario.name for scenario in nexmark.SCENARIOS] == queries


def test_the_job_knows_where_the_recording_ends():
    last = datetime.fromisoformat(re.search(r'^LAST = "(.*)"$', JOB, re.M)[1])
    assert last == CUT.replace(tzinfo=None) + timedelta(seconds=nexmark.EVENTS.live_seconds)


def test_the_job_reads_the_columns_that_the_recording_has():
    (table,) = auctions.tables(Recording("auctions", 50, 50, 1, 0))
    schema = "".join(re.findall(r'"(.*)"', re.search(r"SCHEMA = \((.*?)\n\)", JOB, re.S)[1]))
    assert [column.split()[0] for column in schema.split(",")] == table.column_names
    assert f'LONGEST = "{auctions.LONGEST_SECONDS} seconds"' in JOB


def test_results_are_remembered_where_those_of_other_scenarios_are(tmp_path):
    comparison = Comparison()
    bench = Bench(tmp_path, tmp_path, 3, print, scale=0.5, comparison=comparison)
    own = auctions.AuctionBench(**vars(bench))
    assert own.comparison is comparison
    assert (own.root, own.rounds, own.scale) == (tmp_path, 3, 0.5)


def test_events_come_live_as_densely_as_before():
    before = nexmark.EVENTS.backlog_rows / nexmark.EVENTS.backlog_seconds
    assert nexmark.EVENTS.live_rows_per_second == pytest.approx(before, rel=0.01)


@pytest.mark.parametrize("query", nexmark.QUERIES, ids=lambda query: query.name)
def test_catching_up_and_living_on_are_figures_of_their_own(query):
    flow = Flow(nexmark.EVENTS, Path("auctions"), nexmark.SPEED, query.reads)
    runs = {
        nexmark.LOW: [nexmark.Outcome(20.0, 10, 0.5, [1.0, 2.0]), nexmark.Outcome(30.0, 10, 0.5, [2.0, 2.0])],
        GOVERNED: [nexmark.Outcome(5.0, 2, 4.0, [3.0, 3.0]), nexmark.Outcome(5.0, 2, 4.0, [1.0, 1.0])],
    }
    found = nexmark.figures(query, flow, runs)
    faster, latency = (found[figure.id] for figure in (query.catch_up, query.latency))
    assert faster.runs == [4.0, 6.0]
    assert (faster.details["interval_low"], faster.details["interval_high"]) == (4.0, 6.0)
    assert faster.details["closing_seconds"] == {nexmark.LOW: [0.5, 0.5], GOVERNED: [4.0, 4.0]}
    assert faster.details["records"] == 300_000 * query.reads
    assert latency.runs == pytest.approx([3.0 / 1.95, 0.5])
    assert latency.details["latency_median_seconds"] == {nexmark.LOW: [1.5, 2.0], GOVERNED: [3.0, 1.0]}


def batch(started, committed, first, end):
    return Batch("live", 0, started, started + 0.01, committed, (first,), (end,), 0)


def test_a_run_has_caught_up_when_it_has_committed_the_backlog():
    last = nexmark.EVENTS.backlog_rows
    per_second = round(nexmark.EVENTS.live_rows_per_second * nexmark.SPEED)
    batches = [
        batch(100.0, 102.0, 0, 100_000),
        batch(102.0, 105.0, 100_000, last),
        batch(110.0, 110.5, last, last + per_second),
        batch(112.0, 112.5, last + 2 * per_second, last + 3 * per_second),
    ]
    flow = Flow(nexmark.EVENTS, Path("auctions"), nexmark.SPEED)
    made = Run(109.5, batches, Output(1, 1))
    found = nexmark.outcome(made, flow, 1.0)
    assert found == nexmark.Outcome(seconds=5.0, batches=2, closing=4.5, latencies=[1.0])
    assert nexmark.outcome(made, flow, 0.0).latencies == [1.0, 1.0]
    with pytest.raises(ValueError, match="batches took all 8 s of the live part"):
        nexmark.outcome(made, flow, 3.0)
