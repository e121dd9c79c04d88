"""What the scenarios of Nexmark run, and what they make of it."""

import re
from pathlib import Path

import pytest

from benchmarks.backlog import auctions
from benchmarks.backlog.comparison import Comparison, Output
from benchmarks.backlog.engine import Ran
from benchmarks.backlog.rounds import BATCH, GOVERNED, UNCAPPED, measured
from benchmarks.backlog.scenario import Bench
from benchmarks.backlog.scenarios import live, nexmark
from benchmarks.local.recording import Recording

JOB = Path("benchmarks/backlog/jobs/nexmark.py").read_text()


def test_every_query_is_one_of_the_job():
    queries = re.findall(r'^    "(\w+)": \w+,$', JOB, re.M)
    assert [workload.name for workload in nexmark.WORKLOADS] == queries
    assert nexmark.LIVE.workload in queries


def ran(seconds):
    return Ran(began=100.0, ended=100.0 + seconds, batches=1, output=Output(rows=10, hash=99))


@pytest.mark.parametrize("workload", nexmark.WORKLOADS, ids=lambda workload: workload.name)
def test_every_query_is_compared_with_low_latency_and_with_one_batch(workload):
    seconds = {GOVERNED: 2.0, BATCH: 1.0, UNCAPPED: 3.0, nexmark.LOW: 40.0}
    assert [variant.name for variant in workload.variants] == list(seconds)
    runs = {name: [ran(took)] for name, took in seconds.items()}
    found = {ratio.figure.id: measured(workload, runs, ratio).runs for ratio in workload.ratios}
    assert found == {f"{workload.name}_vs_low_latency": [20.0], f"{workload.name}_vs_uncapped": [1.5]}


@pytest.mark.parametrize("workload", nexmark.WORKLOADS, ids=lambda workload: workload.name)
def test_a_batch_at_low_latency_has_as_many_events_however_often_they_are_read(workload):
    batch_sizes = {variant.name: variant.records_per_batch for variant in workload.variants}
    assert batch_sizes[nexmark.LOW] == nexmark.EVENTS_PER_BATCH * len(workload.sides)


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


@pytest.mark.parametrize("case", [live.TOTALS, nexmark.LIVE], ids=lambda case: case.workload)
def test_a_backlog_is_more_than_arrives_in_five_seconds(case):
    source = live.query(case.recording)["sources"][0]
    assert source["name"] == case.recording.name
    assert source["backlog"]["pendingRecords"] == 5 * case.recording.live_rows_per_second


def test_the_figures_of_a_live_query_have_its_names():
    outcomes = {live.LOW: [live.Outcome([2.0], 1.0)], live.GOVERNED: [live.Outcome([3.0], 0.75)]}
    found = live.figures(outcomes, nexmark.LIVE)
    assert found[nexmark.LIVE.latency.id].runs == [1.5]
    assert found[nexmark.LIVE.gap.id].runs == [1.5]
