"""What scenarios make of the batches that they saw."""

import pytest
from prometheus_client.samples import Sample

from benchmarks.event_log import Batch
from benchmarks.local.child import taken
from benchmarks.local.drivers import Place, Resource
from benchmarks.local.recording import HOUR, KEYS
from benchmarks.local.scenarios.catchup import SETTLING_SECONDS, Outcome, figures, outcome
from benchmarks.local.scenarios.pace import buckets
from benchmarks.local.scenarios.rate import of_query
from benchmarks.local.scenarios.reaction import reaction
from benchmarks.local.statistics import rotated
from headgate_contract import QueryControl

BACKLOG, SECOND = HOUR.backlog_rows, HOUR.live_rows_per_second


def batch(number, started, committed, rows, state_rows=KEYS):
    first, end = rows
    return Batch("totals", number, started, started + 0.01, committed, (first,), (end,), state_rows)


def test_catch_up_lasts_from_the_first_batch_to_the_commit_of_what_was_there():
    batches = [
        batch(0, 100.0, 104.0, (0, 100_000), 100_000),
        batch(1, 104.1, 110.0, (100_000, BACKLOG)),
        batch(2, 110.1, 110.5, (BACKLOG, BACKLOG)),
        batch(3, 111.0, 111.5, (BACKLOG, BACKLOG + 10_000)),
    ]
    found = outcome(batches)
    assert found == Outcome(catch_up_seconds=10.0, commits=2, largest_batch=BACKLOG - 100_000)


def test_staleness_is_counted_from_the_arrival_of_the_oldest_record():
    batches = [
        batch(0, 100.0, 110.0, (0, BACKLOG)),
        batch(1, 111.0, 111.4, (BACKLOG, BACKLOG + SECOND)),
        batch(2, 112.0, 112.0, (BACKLOG + SECOND, BACKLOG + SECOND)),
        batch(3, 112.0, 112.5, (BACKLOG + SECOND, BACKLOG + 2 * SECOND)),
    ]
    assert outcome(batches, live_since=111.0).settling == pytest.approx([0.4, 0.5])


def test_staleness_counts_once_the_run_has_settled():
    settled = 111.0 + SETTLING_SECONDS
    rows = [BACKLOG + round(SECOND * (SETTLING_SECONDS + after)) for after in (-1, 0, 1)]
    batches = [
        batch(0, 100.0, 110.0, (0, BACKLOG)),
        batch(1, settled - 2, settled - 0.5, (BACKLOG, rows[0])),
        batch(2, settled - 0.5, settled - 0.1, (rows[0], rows[1])),
        batch(3, settled, settled + 0.3, (rows[1], rows[2])),
    ]
    found = outcome(batches, live_since=111.0)
    assert found.settling == pytest.approx([SETTLING_SECONDS - 0.5, 0.9])
    assert found.staleness == pytest.approx([0.3])


def test_a_state_that_lost_keys_is_not_measured():
    with pytest.raises(ValueError, match="the state has 999 rows"):
        outcome([batch(0, 0.0, 1.0, (0, BACKLOG), state_rows=999)])


def test_a_query_that_never_caught_up_is_not_measured():
    with pytest.raises(ValueError, match="the state has None rows"):
        outcome([batch(0, 0.0, 1.0, (0, BACKLOG - 1))])


def test_ratios_are_between_runs_of_one_round():
    def runs(*seconds):
        return [Outcome(s, 1, 1, staleness=[s / 10], settling=[s]) for s in seconds]

    found = figures(
        {
            "plain_low_latency": runs(100.0, 60.0),
            "plain_uncapped": runs(10.0, 5.0),
            "governed_2m": runs(20.0, 6.0),
            "governed_0s": runs(10.0, 6.0),
        }
    )
    assert found["catchup_vs_low_latency"].runs == [5.0, 10.0]
    assert found["catchup_vs_uncapped"].runs == [2.0, 1.2]
    assert found["catchup_0s_vs_low_latency"].runs == [10.0, 10.0]
    assert found["catchup_0s_vs_uncapped"].runs == [1.0, 1.2]
    assert found["staleness_vs_low_latency"].runs == pytest.approx([0.2, 0.1])


def test_each_round_begins_with_another_variant():
    assert ["".join(rotated("abc", turn)) for turn in range(-1, 4)] == ["cba", "abc", "bac", "cab", "acb"]


def test_a_rate_counts_the_batches_planned_in_its_time():
    batches = [batch(n, float(n), n + 0.5, (n * 1000, n * 1000 + 1000)) for n in range(10)]
    found = of_query(batches, 1000, begin=2.0, end=6.5)
    assert found.runs == pytest.approx([0.0])
    assert found.details["batches"] == 4


class Changed:
    """A query whose document changes at 10.0 and that has these batches then."""

    def __init__(self, *batches):
        self.batches = iter(batches)

    def change(self, control):
        return 10.0

    def next_batch(self, seconds):
        return next(self.batches)


def test_a_reaction_ends_with_the_first_planning_after_the_change():
    assert reaction(Changed(batch(0, 10.1, 10.4, (0, 1))), QueryControl()) == pytest.approx(0.11)


def test_a_change_that_meets_a_running_batch_counts_from_its_end():
    batches = batch(0, 9.0, 9.5, (0, 1)), batch(1, 9.6, 12.0, (1, 2)), batch(2, 12.1, 12.4, (2, 3))
    assert reaction(Changed(*batches), QueryControl()) == pytest.approx(0.11)


def test_a_process_that_ended_is_no_negative_time():
    assert taken({"jvm": 10.0, "worker": 50.0}, {"jvm": 10.5, "new": 0.25}) == 0.75


def test_the_planner_histogram_is_read_by_its_bounds():
    name = "headgate_planner_duration_seconds"
    samples = [
        Sample(f"{name}_bucket", {"le": "0.005"}, 7.0),
        Sample(f"{name}_bucket", {"le": "+Inf"}, 9.0),
        Sample(f"{name}_count", {}, 9.0),
    ]
    assert buckets(samples) == {0.005: 7.0, float("inf"): 9.0}


def test_a_run_elsewhere_has_the_settings_of_the_committed_resource(tmp_path):
    resource, place = Resource.read(), Place(tmp_path / "run").cleared()
    assert resource.place.directory != place.directory
    assert f"--checkpoint={place.checkpoint}" in resource.arguments(place)
    assert resource.properties(place)["spark.eventLog.dir"] == str(place.directory / "events")
    text = resource.write(place, "0s").read_text()
    assert "intervalDuringBacklog: 0s" in text
    assert str(resource.place.directory) not in text
