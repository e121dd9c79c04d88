"""Alignment row by row: who holds a group, who does not, and how far the others may go."""

from dataclasses import replace

import pytest

from headgate_contract import BatchControl, EventTimeControl, QueryControl, RateControl, SourceControl
from headgate_contract.held import HeldBy
from headgate_spark.planner.alignment_query import QueryAlignment
from headgate_spark.planner.event_times import Partition, Sampled
from headgate_spark.planner.model import Trigger, TriggerKind
from support.aligned_spark import Driver, backlog, member
from support.event_logs import NO_TIME, FakeEventTimes


def every(step: int, until: int, start: int = 0) -> list[int]:
    return list(range(start, until, step))


def live(interval: float, **sources: SourceControl) -> QueryControl:
    return QueryControl(
        interval_seconds=interval, batch=BatchControl(initial_records=100_000), sources=sources
    )


def one_query(control, **sources):
    driver = Driver()
    return driver, driver.query("delays", control, **sources)


# The limit


def test_the_first_batch_is_within_the_limit():
    control = backlog(10_000, flights=member(30, idle_after=3600), weather=member(30, idle_after=3600))
    driver, query = one_query(
        control, flights={"0": every(100, 3_600_000)}, weather={"0": every(1000, 60_000)}
    )
    driver.run_for(1)
    assert len(query.spark.batches) >= 1
    assert query.latest_read == {"flights": 89_000, "weather": 59_000}


def test_a_partition_exactly_at_the_limit_has_its_record_read_and_the_next_millisecond_not():
    control = backlog(flights=member(1, idle_after=3600), weather=member(1, idle_after=3600))
    driver, query = one_query(control, flights={"0": [42, 1044, 1045]}, weather={"0": [44]})
    driver.run_for(5)
    assert query.ends == {"flights": {"0": 2}, "weather": {"0": 1}}
    assert query.spark.held_by("flights") is HeldBy.ALIGNMENT


def test_progress_is_not_capped_at_one_drift_per_batch():
    control = backlog(100_000, flights=member(1), weather=member(1))
    driver, query = one_query(
        control, flights={"0": every(1000, 3_600_000)}, weather={"0": every(1000, 3_600_000)}
    )
    driver.run_for(1)
    assert query.spark.batches[0].total == 7200


def test_members_of_unequal_rate_end_at_the_same_event_time():
    control = backlog(1000, flights=member(60), weather=member(60))
    driver, query = one_query(
        control, flights={"0": every(10, 3_600_000)}, weather={"0": every(1000, 3_600_000)}
    )
    for _ in range(20):
        driver.run_for(5)
        read = query.latest_read
        assert abs(read["flights"] - read["weather"]) <= 2000


def test_no_drift_at_all_is_allowed():
    control = backlog(flights=member(0), weather=member(0))
    driver, query = one_query(control, flights={"0": every(1, 500)}, weather={"0": every(3, 500)})
    driver.run_for(60)
    assert query.ends == {"flights": {"0": 500}, "weather": {"0": 167}}


def test_a_single_member_has_no_limit():
    driver, query = one_query(backlog(flights=member(1)), flights={"0": every(1000, 900_000)})
    driver.run_for(1)
    assert query.ends == {"flights": {"0": 900}}


def test_a_source_outside_the_group_is_read_without_a_limit():
    control = backlog(flights=member(1, idle_after=3600), weather=member(1, idle_after=3600))
    driver, query = one_query(
        control, flights={"0": [0, 5000]}, weather={"0": [44]}, airports={"0": every(1000, 900_000)}
    )
    driver.run_for(5)
    assert query.ends == {"flights": {"0": 1}, "weather": {"0": 1}, "airports": {"0": 900}}


def test_two_groups_do_not_see_each_other():
    one, two = (
        {"group": "one", "drift": 1, "idle_after": 3600},
        {"group": "two", "drift": 1, "idle_after": 3600},
    )
    control = backlog(a=member(**one), b=member(**one), c=member(**two), d=member(**two))
    driver, query = one_query(
        control, a={"0": [5000, 6500, 7001]}, b={"0": [6000]}, c={"0": [44]}, d={"0": [60, 1044, 1045]}
    )
    driver.run_for(5)
    assert query.ends == {"a": {"0": 2}, "b": {"0": 1}, "c": {"0": 1}, "d": {"0": 2}}


def test_the_smallest_drift_of_a_group_holds():
    control = backlog(flights=member(3600, idle_after=3600), weather=member(1, idle_after=3600))
    driver, query = one_query(control, flights={"0": [42, 1044, 1045]}, weather={"0": [44]})
    driver.run_for(5)
    assert query.ends["flights"] == {"0": 2}


def test_partitions_of_one_source_are_members_each():
    control = backlog(flights=member(1, idle_after=3600))
    driver, query = one_query(control, flights={"0": [42, 1044, 1045], "1": [44]})
    driver.run_for(5)
    assert query.ends == {"flights": {"0": 2, "1": 1}}


# Who holds a group


def test_a_partition_with_nothing_pending_holds_the_group_for_idle_after_and_no_longer():
    control = backlog(flights=member(1, idle_after=30), weather=member(1, idle_after=30))
    driver, query = one_query(control, flights={"0": every(500, 900_000)}, weather={"0": [44]})
    driver.run_for(29)
    assert query.latest_read["flights"] == 1000
    driver.run_for(3)
    assert query.latest_read["flights"] == 899_500


def test_idle_after_is_the_drift_by_default_and_at_least_a_second():
    control = backlog(flights=member(0.1), weather=member(0.1))
    driver, query = one_query(control, flights={"0": every(500, 900_000)}, weather={"0": [44]})
    driver.run_for(0.9)
    assert query.latest_read["flights"] == 0
    driver.run_for(1)
    assert query.latest_read["flights"] == 899_500


def test_a_member_that_comes_back_holds_the_group_again_and_nothing_is_unread():
    control = backlog(flights=member(1, idle_after=5), weather=member(1, idle_after=5))
    driver, query = one_query(control, flights={"0": every(500, 10_000)}, weather={"0": [44]})
    driver.run_for(10)
    assert query.latest_read["flights"] == 9500
    query.arrive("weather", "0", 5000)
    query.arrive("flights", "0", 10_000, 11_000)
    driver.run_for(3)
    assert query.ends == {"flights": {"0": 20}, "weather": {"0": 2}}
    driver.run_for(5)
    assert query.ends["flights"] == {"0": 22}


def test_a_source_that_a_person_has_paused_does_not_hold_the_group():
    control = backlog(flights=member(1, idle_after=3600), weather=member(1, idle_after=3600, paused=True))
    driver, query = one_query(control, flights={"0": every(500, 900_000)}, weather={"0": every(500, 900_000)})
    driver.run_for(5)
    assert query.ends == {"flights": {"0": 1800}, "weather": {"0": 0}}


def test_the_time_for_which_a_person_paused_a_source_is_not_silence_of_its_own():
    going = backlog(flights=member(1, idle_after=30), weather=member(1, idle_after=30))
    paused = backlog(flights=member(1, idle_after=30), weather=member(1, idle_after=30, paused=True))
    driver, query = one_query(going, flights={"0": every(500, 1500)}, weather={"0": [44]})
    driver.run_for(5)
    query.spark.control(paused)
    driver.run_for(60)
    query.arrive("flights", "0", 8000)
    query.spark.control(going)
    driver.run_for(25)
    assert query.latest_read["flights"] == 1000
    driver.run_for(10)
    assert query.latest_read["flights"] == 8000


def test_a_partition_that_begins_with_offsets_of_no_record_is_read():
    """Compaction takes records away, and leaves the beginning of the log where it was."""
    driver, query = one_query(backlog(3, flights=member(1)), flights={"0": [NO_TIME] * 5 + [1000, 2000]})
    driver.run_for(60)
    assert query.ends == {"flights": {"0": 7}}


def test_a_partition_without_event_times_is_read_while_the_others_wait():
    control = backlog(flights=member(1, idle_after=3600), weather=member(1, idle_after=3600))
    driver, query = one_query(control, flights={"0": every(500, 9000), "1": []}, weather={"0": [44]})
    driver.run_for(5)
    query.arrive("flights", "1", *[NO_TIME] * 20)
    driver.run_for(5)
    assert query.ends == {"flights": {"0": 3, "1": 20}, "weather": {"0": 1}}


def test_a_partition_without_a_record_does_not_hold_the_group():
    control = backlog(flights=member(1, idle_after=3600), weather=member(1, idle_after=3600))
    driver, query = one_query(control, flights={"0": every(500, 900_000)}, weather={"0": []})
    driver.run_for(5)
    assert query.latest_read["flights"] == 899_500


def test_a_member_at_its_rate_limit_holds_the_group_where_that_ends_it():
    control = backlog(flights=member(1), weather=member(1, rate=1.0))
    driver, query = one_query(
        control, flights={"0": every(100, 900_000)}, weather={"0": every(1000, 900_000)}
    )
    driver.run_for(30)
    read = query.latest_read
    assert 30_000 <= read["weather"] <= 45_000
    assert read["weather"] + 900 <= read["flights"] <= read["weather"] + 2000


def test_a_member_with_a_rate_limit_uses_all_of_its_tokens():
    """An interval's tokens fill the bucket, so what a batch left of them would be lost."""
    limited = replace(member(30), rate_limit=RateControl(records_per_second=100.0))
    control = replace(backlog(flights=limited, weather=member(30)), backlog=False, interval_seconds=5)
    driver, query = one_query(
        control,
        flights={"0": every(10, 900_000), "1": every(23, 900_000)},
        weather={"0": every(1000, 900_000)},
    )
    driver.run_for(200)
    first, *batches, last = query.spark.batches
    read = sum(batch.records["flights"] for batch in (*batches, last))
    assert read >= 0.99 * 100 * (last.planned_at - first.planned_at)


def test_a_backlog_as_one_batch_goes_on_when_records_arrive_behind_its_slowest_member():
    """That member is at its end of the backlog, as it was fixed, and the others may not come to theirs before it."""
    control = backlog(interval=0.0, flights=member(1, idle_after=3600), weather=member(1, idle_after=3600))
    driver, query = one_query(control, flights={"0": every(500, 60_000)}, weather={"0": every(500, 10_000)})
    driver.run_for(5)
    assert query.latest_read == {"flights": 10_500, "weather": 9_500}
    query.arrive("weather", "0", *every(500, 60_000, start=10_000))
    driver.run_for(20)
    assert query.latest_read == {"flights": 59_500, "weather": 59_500}


def test_a_partition_that_appears_behind_the_others_is_waited_for_and_nothing_is_unread():
    control = backlog(flights=member(1, idle_after=3600), weather=member(1, idle_after=3600))
    driver, query = one_query(control, flights={"0": every(500, 900_000)}, weather={"0": [50_000]})
    driver.run_for(5)
    assert query.ends == {"flights": {"0": 103}, "weather": {"0": 1}}
    query.appear("weather", "1", every(1000, 40_000))
    query.arrive("weather", "0", 60_000)
    driver.run_for(5)
    assert query.ends == {"flights": {"0": 103}, "weather": {"0": 1, "1": 40}}
    assert query.spark.source("flights").alignment.drift == 12
    query.arrive("weather", "1", 61_000)
    driver.run_for(5)
    assert query.ends == {"flights": {"0": 123}, "weather": {"0": 2, "1": 41}}
    assert query.spark.source("flights").alignment.drift == 1


def test_a_partition_that_is_gone_does_not_hold_the_group():
    control = backlog(flights=member(1, idle_after=3600), weather=member(1, idle_after=3600))
    driver, query = one_query(
        control, flights={"0": every(500, 900_000)}, weather={"0": every(500, 900_000), "1": [44]}
    )
    driver.run_for(1)
    del query.spark.sources["weather"].latest["1"]
    driver.run_for(5)
    assert query.latest_read["flights"] == 899_500


def test_a_partition_that_comes_back_is_another_whatever_was_known_of_the_one_before():
    control = backlog(flights=member(1, idle_after=3600), weather=member(1, idle_after=3600))
    driver, query = one_query(
        control,
        flights={"0": every(500, 60_000)},
        weather={"0": every(500, 60_000), "1": every(500, 60_000)},
    )
    driver.run_for(5)
    weather = query.spark.sources["weather"]
    del weather.latest["1"], weather.start["1"]
    query.arrive("flights", "0", 60_000)
    driver.run_for(5)
    query.appear("weather", "1", every(5000, 600_000))
    driver.run_for(5)
    assert query.ends["weather"]["1"] == 13, "one record in five seconds, up to a second behind the others"


def test_in_a_run_that_ends_by_itself_a_partition_at_its_end_is_finished():
    driver = Driver()
    control = backlog(flights=member(1, idle_after=3600), weather=member(1, idle_after=3600))
    query = driver.query(
        "delays",
        control,
        Trigger(TriggerKind.AVAILABLE_NOW),
        flights={"0": every(500, 900_000)},
        weather={"0": [44]},
    )
    query.spark.run_until(lambda: query.spark.ended is not None, within=60)
    assert query.spark.ended == "idle"
    assert query.ends == {"flights": {"0": 1800}, "weather": {"0": 1}}


def test_the_first_batch_of_a_run_that_ends_by_itself_is_within_the_limit():
    driver = Driver()
    control = backlog(1000, flights=member(10, idle_after=3600), weather=member(10, idle_after=3600))
    trigger = Trigger(TriggerKind.AVAILABLE_NOW)
    logs = {"flights": {"0": every(100, 900_000)}, "weather": {"0": every(100, 900_000)}}
    query = driver.query("delays", control, trigger, **logs)
    while query.spark.ended is None:
        query.spark.round()
        read = query.latest_read
        assert (read["weather"] or 0) - (read["flights"] or 0) <= 10_000
    assert query.ends == {"flights": {"0": 9000}, "weather": {"0": 9000}}


@pytest.mark.parametrize(("flights_from", "weather_from"), [(0, 100_000), (100_000, 0)])
def test_a_run_that_ends_by_itself_reads_sources_that_begin_far_apart(flights_from, weather_from):
    driver = Driver()
    control = backlog(1000, flights=member(10, idle_after=3600), weather=member(10, idle_after=3600))
    logs = {
        "flights": {"0": every(1000, 180_000, start=flights_from)},
        "weather": {"0": every(1000, 180_000, start=weather_from)},
    }
    query = driver.query("delays", control, Trigger(TriggerKind.AVAILABLE_NOW), **logs)
    query.spark.run_until(lambda: query.spark.ended is not None)
    assert query.spark.ended == "idle"
    assert query.ends == {name: {"0": len(log["0"])} for name, log in logs.items()}


@pytest.mark.parametrize("weather_at", [0, 10, 129, 180])
@pytest.mark.parametrize("flights_at", [0, 10, 129, 180])
def test_a_run_that_ends_by_itself_goes_on_from_a_checkpoint_and_reads_everything(flights_at, weather_at):
    driver = Driver()
    control = backlog(1000, flights=member(10, idle_after=3600), weather=member(10, idle_after=3600))
    logs = {"flights": {"0": every(1000, 180_000)}, "weather": {"0": every(1000, 180_000)}}
    query = driver.query(
        "delays",
        control,
        Trigger(TriggerKind.AVAILABLE_NOW),
        starts={"flights": {"0": flights_at}, "weather": {"0": weather_at}},
        resumed=True,
        **logs,
    )
    while query.spark.ended is None:
        before = dict(query.latest_read)
        query.spark.round()
        for name, other in (("flights", "weather"), ("weather", "flights")):
            read = query.latest_read[name]
            if read != before[name] and query.ends[other]["0"] < 180:
                assert (read or 0) - (query.latest_read[other] or 0) <= 11_000
    assert query.spark.ended == "idle"
    assert query.ends == {"flights": {"0": 180}, "weather": {"0": 180}}


@pytest.mark.parametrize("weather_from", [0, 100_000])
def test_a_run_that_ends_by_itself_goes_on_where_one_ended_before_every_source_had_an_offset(weather_from):
    """It was killed after its first batch, in which Spark had been told of one source only."""
    driver = Driver()
    control = backlog(1000, flights=member(10, idle_after=3600), weather=member(10, idle_after=3600))
    logs = {
        "flights": {"0": every(1000, 180_000)},
        "weather": {"0": every(1000, 180_000, start=weather_from)},
    }
    trigger = Trigger(TriggerKind.AVAILABLE_NOW)
    query = driver.query("delays", control, trigger, resumed=["flights"], **logs)
    query.spark.run_until(lambda: query.spark.ended is not None)
    assert query.spark.ended == "idle"
    assert query.ends == {name: {"0": len(log["0"])} for name, log in logs.items()}


def test_after_an_empty_first_batch_every_source_has_an_offset():
    driver = Driver()
    control = backlog(1000, flights=member(10, idle_after=3600), weather=member(10, idle_after=3600))
    trigger = Trigger(TriggerKind.AVAILABLE_NOW)
    logs = {"flights": {"0": every(1000, 9000)}, "weather": {"0": every(1000, 9000, start=100_000)}}
    query = driver.query("delays", control, trigger, **logs)
    query.spark.round()
    assert query.ends == {"flights": {"0": 0}, "weather": {"0": 0}}
    assert query.spark.unplanned == set()


def test_event_times_that_cannot_be_had_hold_the_group_and_say_so():
    control = backlog(flights=member(1), weather=member(1))
    driver = Driver()
    query = driver.query("delays", control, flights={"0": every(500, 9000)}, weather={"0": [44]})
    query.times.reachable = False
    driver.run_for(10)
    assert query.ends == {"flights": {"0": 0}, "weather": {"0": 0}}
    assert query.spark.held_by("flights") in (HeldBy.EVENT_TIME, HeldBy.ALIGNMENT)
    query.times.reachable = True
    driver.run_for(10)
    assert query.ends == {"flights": {"0": 18}, "weather": {"0": 1}}


def test_a_limit_at_the_first_moment_of_all_is_a_limit():
    """Once the rate limit is known to end weather there, the limit is 0."""
    patient = member(0, idle_after=3600)
    control = backlog(flights=patient, weather=member(0, idle_after=3600, rate=0.1))
    driver, query = one_query(control, flights={"0": [0, 5, 20]}, weather={"0": [0, 0, 0, 10, 20]})
    driver.run_for(5)
    assert query.ends == {"flights": {"0": 1}, "weather": {"0": 1}}
    driver.run_for(60)
    assert query.ends == {"flights": {"0": 3}, "weather": {"0": 5}}


# Queries of one driver


def test_a_query_waits_for_what_another_is_committed_to():
    driver = Driver()
    fast = driver.query(
        "fast", backlog(flights=member(30, idle_after=3600)), flights={"0": every(100, 3_600_000)}
    )
    driver.query("slow", backlog(weather=member(30, idle_after=3600)), weather={"0": every(1000, 60_000)})
    driver.run_for(20)
    assert fast.latest_read == {"flights": 89_000}


@pytest.mark.parametrize("drift", [0, 1, 60])
def test_two_queries_read_everything_side_by_side(drift):
    driver = Driver()
    one = driver.query("one", backlog(50, flights=member(drift)), flights={"0": every(70, 100_000)})
    two = driver.query("two", backlog(50, weather=member(drift)), weather={"0": every(310, 100_000)})
    driver.run_for(600)
    assert (one.ends, two.ends) == ({"flights": {"0": 1429}}, {"weather": {"0": 323}})


def test_queries_that_go_on_from_the_middle_of_their_logs_are_aligned_at_once():
    driver = Driver()
    starts = {"flights": {"0": 20_000}, "weather": {"0": 1900}}
    one = driver.query("one", backlog(flights=member(1)), starts=starts, flights={"0": every(100, 3_600_000)})
    two = driver.query(
        "two", backlog(weather=member(1)), starts=starts, weather={"0": every(1000, 3_600_000)}
    )
    driver.run_for(5)
    assert one.ends["flights"]["0"] > 20_000 or two.ends["weather"]["0"] > 1900
    assert abs(one.latest_read["flights"] - two.latest_read["weather"]) <= 110_000


def test_a_query_at_its_limit_reads_nothing_past_it_when_another_moves_while_it_plans(monkeypatch):
    driver = Driver()
    patient = member(1, idle_after=3600)
    fast = driver.query("fast", backlog(flights=patient), flights={"0": every(500, 900_000)})
    slow = driver.query("slow", backlog(weather=patient), weather={"0": [44]})
    driver.run_for(5)
    assert fast.latest_read == {"flights": 1000}
    assert fast.spark.held_by("flights") is HeldBy.ALIGNMENT
    cut = fast.alignment.cut

    def overtaken(*views, **turn):
        parts = cut(*views, **turn)
        slow.arrive("weather", "0", 1044)
        slow.spark.run_for(2)
        return parts

    monkeypatch.setattr(fast.alignment, "cut", overtaken)
    fast.spark.round()
    assert slow.latest_read == {"weather": 1044}
    assert fast.latest_read["flights"] <= 2044


def test_a_query_that_has_ended_is_waited_for_no_longer():
    driver = Driver()
    fast = driver.query(
        "fast", backlog(flights=member(1, idle_after=3600)), flights={"0": every(500, 900_000)}
    )
    driver.query("slow", backlog(weather=member(1, idle_after=3600)), weather={"0": [44]})
    driver.run_for(5)
    assert fast.latest_read == {"flights": 1000}
    driver.end("slow")
    driver.run_for(5)
    assert fast.latest_read == {"flights": 899_500}


def test_queries_of_a_group_plan_at_the_smallest_interval_among_them():
    driver = Driver()
    long = driver.query("long", backlog(interval=60, flights=member(1)), flights={"0": every(500, 9000)})
    driver.query("short", backlog(interval=5, weather=member(1)), weather={"0": every(500, 9000)})
    driver.run_for(5)
    assert long.spark.figures.interval_seconds == 5
    driver.end("short")
    driver.run_for(100)
    assert long.spark.figures.interval_seconds == 60


def test_a_query_follows_one_that_starts_to_plan_more_often_while_its_own_gate_is_closed():
    driver = Driver()
    long = driver.query("long", live(600, flights=member(1)), flights={"0": every(500, 9000)})
    driver.run_for(5)
    assert long.spark.figures.interval_seconds == 600
    driver.query("short", live(1, weather=member(1)), weather={"0": every(500, 9000)})
    driver.run_for(5)
    assert long.spark.figures.interval_seconds == 1
    long.arrive("flights", "0", 9000)
    driver.run_for(5)
    assert long.ends == {"flights": {"0": 19}}


def test_a_query_follows_one_that_a_new_document_lets_plan_more_often():
    driver = Driver()
    long = driver.query("long", live(600, flights=member(1)), flights={"0": every(500, 9000)})
    short = driver.query("short", live(600, weather=member(1)), weather={"0": every(500, 9000)})
    driver.run_for(5)
    long.spark.control(live(600, flights=member(1)))
    short.spark.control(live(1, weather=member(1)))
    driver.run_for(5)
    assert long.spark.figures.interval_seconds == 1


def test_a_query_that_has_not_been_asked_yet_shortens_no_interval():
    driver = Driver()
    long = driver.query("long", live(600, flights=member(1)), flights={"0": every(500, 9000)})
    driver.run_for(5)
    QueryAlignment("opened", driver.groups, FakeEventTimes({})).control({"weather": member(1)}, driver.now)
    driver.run_for(5)
    assert long.spark.figures.interval_seconds == 600


def test_queries_that_are_all_started_anew_wait_for_each_other_again():
    driver = Driver()
    driver.groups.expect({"delays": {"fast": 3600.0, "slow": 3600.0}})
    logs = {"flights": {"0": every(500, 900_000)}}
    driver.query("fast", backlog(flights=member(1)), flights={"0": []})
    driver.query("slow", backlog(weather=member(1)), weather={"0": []})
    driver.run_for(60)
    driver.end("fast")
    driver.end("slow")
    driver.now += 60
    fast = driver.query("fast", backlog(flights=member(1)), **logs)
    driver.run_for(5)
    assert fast.ends == {"flights": {"0": 0}}


def test_a_listed_query_that_was_waited_for_in_vain_is_not_waited_for_again_before_it_has_come():
    driver = Driver()
    driver.groups.expect({"delays": {"fast": 3600.0, "slow": 3600.0}})
    logs = {"flights": {"0": every(500, 900_000)}}

    def is_begun_anew() -> bool:
        fast = driver.query("fast", backlog(flights=member(1)), **logs)
        driver.run_for(5)
        driver.end("fast")
        return fast.ends != {"flights": {"0": 0}}

    driver.query("fast", backlog(flights=member(1)), flights={"0": []})
    driver.run_for(11)
    driver.end("fast")
    assert is_begun_anew()
    driver.query("slow", backlog(weather=member(1)), weather={"0": []})
    driver.end("slow")
    assert not is_begun_anew()


def test_a_listed_query_that_has_not_started_is_waited_for_ten_seconds_at_most():
    driver = Driver()
    driver.groups.expect({"delays": {"fast": 3600.0, "slow": 3600.0}})
    fast = driver.query("fast", backlog(flights=member(1)), flights={"0": every(500, 900_000)})
    driver.run_for(9)
    assert fast.ends == {"flights": {"0": 0}}
    driver.run_for(5)
    assert fast.latest_read == {"flights": 899_500}


def test_new_members_by_a_new_document_are_aligned_from_the_next_planning():
    driver = Driver()
    query = driver.query(
        "delays", backlog(100), flights={"0": every(100, 3_600_000)}, weather={"0": every(1000, 3_600_000)}
    )
    driver.run_for(1)
    query.spark.control(backlog(100, flights=member(10), weather=member(10)))
    driver.run_for(20)
    before = query.latest_read
    assert abs(before["flights"] - before["weather"]) <= 11_000


def test_a_query_all_of_whose_sources_are_paused_is_not_waited_for():
    driver = Driver()
    paused = backlog(weather=member(1, idle_after=3600, paused=True))
    driver.query("paused", paused, weather={"0": every(500, 9000)})
    fast = driver.query(
        "fast", backlog(flights=member(1, idle_after=3600)), flights={"0": every(500, 900_000)}
    )
    driver.run_for(5)
    assert fast.latest_read == {"flights": 899_500}


def test_a_query_that_is_paused_while_it_runs_lets_the_others_go():
    driver = Driver()
    slow = driver.query("slow", backlog(weather=member(1, idle_after=3600)), weather={"0": [44]})
    fast = driver.query(
        "fast", backlog(flights=member(1, idle_after=3600)), flights={"0": every(500, 900_000)}
    )
    driver.run_for(5)
    assert fast.latest_read == {"flights": 1000}
    slow.spark.control(backlog(weather=member(1, idle_after=3600, paused=True)))
    driver.run_for(5)
    assert fast.latest_read == {"flights": 899_500}


def test_a_source_behind_a_history_does_not_hold_the_group():
    driver = Driver()
    live = replace(member(1, idle_after=3600), after="history")
    driver.query(
        "hybrid",
        replace(backlog(10, live=live), batch=BatchControl(initial_records=10, max_records=10)),
        history={"0": every(1, 100_000)},
        live={"0": [0]},
    )
    fast = driver.query(
        "fast", backlog(flights=member(1, idle_after=3600)), flights={"0": every(500, 900_000)}
    )
    driver.run_for(5)
    assert fast.latest_read == {"flights": 899_500}


def test_a_source_behind_a_history_that_is_paused_does_not_hold_the_group():
    driver = Driver()
    live = replace(member(1, idle_after=3600), after="history")
    paused = backlog(history=SourceControl(paused=True), live=live)
    driver.query("hybrid", paused, history={"0": every(1, 1000)}, live={"0": [0]})
    fast = driver.query(
        "fast", backlog(flights=member(1, idle_after=3600)), flights={"0": every(500, 900_000)}
    )
    driver.run_for(5)
    assert fast.latest_read == {"flights": 899_500}


def test_a_query_of_one_single_batch_is_in_no_group():
    driver = Driver()
    driver.query(
        "once", backlog(weather=member(1)), Trigger(TriggerKind.ONCE), weather={"0": every(500, 9000)}
    )
    fast = driver.query("fast", backlog(flights=member(1)), flights={"0": every(500, 900_000)})
    fast.spark.run_for(5)
    assert fast.latest_read == {"flights": 899_500}


# What is asked of the source


def test_in_live_reading_a_batch_takes_one_question_and_a_trigger_without_records_none():
    control = QueryControl(interval_seconds=0.1, sources={"flights": member(5), "weather": member(5)})
    driver, query = one_query(control, flights={"0": [0, 10]}, weather={"0": [5]})
    driver.run_for(5)
    before = query.times.questions
    driver.run_for(5)
    assert query.times.questions == before
    for n in range(1, 6):
        query.arrive("flights", "0", 1000 * n)
        query.arrive("weather", "0", 1000 * n)
        driver.run_for(0.5)
        assert query.ends == {"flights": {"0": 2 + n}, "weather": {"0": 1 + n}}
        assert query.times.questions <= before + n
    assert query.times.questions < before + 5, "no look began ahead of its planning"
    driver.run_for(1)
    ahead = query.times.looks_ahead
    driver.run_for(5)
    assert query.times.looks_ahead == ahead


def test_while_the_grant_decides_it_is_not_asked_how_late_the_records_are():
    control = backlog(100, flights=member(60), weather=member(60))
    driver, query = one_query(
        control, flights={"0": every(100, 3_600_000)}, weather={"0": every(1000, 3_600_000)}
    )
    driver.run_for(5)
    looks = []
    query.times.latest = looks.append
    driver.run_for(20)
    assert len(query.spark.batches) > 5
    assert looks == []


# What is told


def test_limit_floor_drift_and_who_holds_the_group_are_told():
    control = backlog(flights=member(1, idle_after=3600), weather=member(1, idle_after=3600))
    driver, query = one_query(control, flights={"0": every(500, 9000)}, weather={"0": [50], "1": [44]})
    driver.run_for(5)
    told = query.spark.source("flights").alignment
    assert (told.floor, told.limit, told.drift) == (0.044, 1.044, 1.0)
    assert (told.held_by, told.held_by_partition) == ("delays/weather", "1")
    assert query.spark.source("weather").alignment.drift == 0
    assert query.spark.figures.watermark_held_by is None


def test_a_member_whose_next_record_is_far_past_the_limit_is_no_further_ahead_than_the_drift():
    control = backlog(flights=member(30, idle_after=3600), weather=member(30, idle_after=3600))
    driver, query = one_query(control, flights={"0": [0, 600_000]}, weather={"0": [10_000]})
    driver.run_for(5)
    assert query.ends == {"flights": {"0": 1}, "weather": {"0": 1}}
    assert query.spark.source("flights").alignment.drift == 30
    query.arrive("weather", "0", 500_000)
    driver.run_for(5)
    assert query.spark.source("flights").alignment.drift == 30


def test_a_member_that_was_read_past_the_limit_of_one_that_came_back_is_told_with_its_distance():
    control = backlog(flights=member(1, idle_after=5), weather=member(1, idle_after=5))
    driver, query = one_query(control, flights={"0": every(500, 10_000)}, weather={"0": [44]})
    driver.run_for(10)
    query.arrive("weather", "0", 5000)
    query.arrive("flights", "0", 10_000)
    driver.run_for(3)
    told = query.spark.source("flights").alignment
    assert (told.floor, told.limit, told.drift) == (5.0, 6.0, 4.5)


def test_a_member_that_was_read_further_than_a_smaller_drift_allows_is_told_with_its_distance():
    wide = backlog(flights=member(30, idle_after=3600), weather=member(30, idle_after=3600))
    narrow = backlog(flights=member(10, idle_after=3600), weather=member(10, idle_after=3600))
    driver, query = one_query(wide, flights={"0": every(1000, 900_000)}, weather={"0": [10_000]})
    driver.run_for(5)
    assert query.latest_read["flights"] == 40_000
    query.spark.control(narrow)
    driver.run_for(5)
    assert query.spark.source("flights").alignment.drift == 30


def resumed_beside_a_slow_member(flights_at):
    driver = Driver()
    patient = member(30, idle_after=3600)
    query = driver.query(
        "delays",
        backlog(flights=patient, weather=patient),
        starts={"flights": {"0": flights_at}, "weather": {"0": 1}},
        resumed=True,
        flights={"0": every(1000, 900_000)},
        weather={"0": [10_000]},
    )
    driver.run_for(5)
    return query


def test_a_query_that_goes_on_at_its_limit_is_no_further_ahead_than_the_drift():
    query = resumed_beside_a_slow_member(flights_at=41)
    assert query.ends == {"flights": {"0": 41}, "weather": {"0": 1}}
    assert query.spark.source("flights").alignment.drift == 30


def test_a_query_that_goes_on_past_its_limit_says_how_far_that_is_known():
    query = resumed_beside_a_slow_member(flights_at=400)
    assert 30 < query.spark.source("flights").alignment.drift <= 390


def test_a_silent_source_that_the_group_no_longer_waits_for_still_holds_the_watermark():
    control = backlog(flights=member(1, idle_after=2), weather=member(1, idle_after=2))
    driver, query = one_query(control, flights={"0": every(500, 9000)}, weather={"0": [44]})
    driver.run_for(10)
    assert query.latest_read["flights"] == 8500
    query.arrive("flights", "0", 9000)
    driver.run_for(1)
    assert query.spark.figures.watermark_held_by == "weather"


def test_a_source_without_event_times_is_named_and_its_siblings_are_aligned_without_it():
    control = backlog(flights=member(1), weather=member(1), airports=member(1))
    driver, query = one_query(
        control, flights={"0": every(500, 9000)}, weather={"0": every(500, 9000)}, airports={"0": [44]}
    )
    del query.times.logs[Partition("airports", "0")]
    query.spark.control(control)
    driver.run_for(5)
    assert query.alignment.refused == {"airports": "source airports has no log"}
    assert query.spark.source("airports").alignment is None
    assert query.ends == {"flights": {"0": 18}, "weather": {"0": 18}, "airports": {"0": 1}}


def test_what_was_known_of_event_times_is_forgotten_when_they_are_in_another_column():
    aligned = member(1, idle_after=3600)
    driver, query = one_query(
        backlog(flights=aligned, weather=aligned), flights={"0": every(500, 9000)}, weather={"0": [1000]}
    )
    driver.run_for(5)
    assert query.ends == {"flights": {"0": 5}, "weather": {"0": 1}}
    query.times.logs[Partition("flights", "0")] = every(100, 1800)
    in_a_column = replace(aligned, event_time=EventTimeControl(column="$.at"))
    query.spark.control(backlog(flights=in_a_column, weather=aligned))
    driver.run_for(5)
    assert query.ends == {"flights": {"0": 18}, "weather": {"0": 1}}


def test_what_was_seen_of_the_records_of_a_source_stands_in_its_snapshot(monkeypatch):
    driver, query = one_query(backlog(flights=member(1)), flights={"0": [1]})
    monkeypatch.setattr(query.times, "sampled", lambda source: Sampled(2500, {"f/0": 7}, {"f/1": 9}))
    driver.run_for(1)
    standing = query.spark.source("flights").alignment
    assert standing.out_of_orderness == 2.5
    assert (standing.unreadable, standing.far_ahead) == ({"f/0": 7}, {"f/1": 9})


def test_of_a_source_of_which_nothing_was_seen_nothing_is_told():
    driver, query = one_query(backlog(flights=member(1)), flights={"0": [1]})
    driver.run_for(1)
    standing = query.spark.source("flights").alignment
    assert (standing.out_of_orderness, standing.unreadable, standing.far_ahead) == (None, None, {})
