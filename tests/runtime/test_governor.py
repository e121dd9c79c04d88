"""The governor without Spark: what it answers while a query starts, and what it forgets when one has ended."""

import json
import re
import time
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from headgate_contract import (
    AlignmentControl,
    BacklogControl,
    ControlDocument,
    QueryControl,
    Refusal,
    RefusalReason,
    SourceControl,
)
from headgate_spark.engine import protocol
from headgate_spark.engine.checkpoint import Checkpoint, CheckpointInUseError
from headgate_spark.engine.directory import LocalDirectory
from headgate_spark.engine.executors import Executors
from headgate_spark.engine.governor import Governor, verbs
from headgate_spark.engine.resumption import Ends, Resumption
from headgate_spark.engine.services import Looks
from headgate_spark.exporter import DriverCollector
from headgate_spark.planner.alignment import Groups
from headgate_spark.planner.alignment_query import QueryAlignment
from headgate_spark.planner.event_times import Partition
from headgate_spark.planner.lease import Lease
from headgate_spark.planner.model import HybridMemory
from support.asked import admit, plan
from support.engine import begins, described, failure, noticed, services_with
from support.event_logs import FakeEventTimes


class FakeLock:
    def __init__(self):
        self.held = True

    def release(self):
        self.held = False


class FakeStore:
    def __init__(self):
        self.values = []

    def load(self):
        return self.values[-1] if self.values else None

    def save(self, value):
        self.values.append(value)


class FakeCheckpoint:
    """A checkpoint, and what runs of it find there."""

    def __init__(self):
        self.hybrid, self.batches, self.topics = FakeStore(), FakeStore(), FakeStore()
        self.left = Resumption()

    def resumption(self):
        if isinstance(self.left, Exception):
            raise self.left
        return self.left


class FakeMeasures:
    def forget(self, query):
        pass

    def batch_took(self, query, seconds):
        raise AssertionError("no batch")

    def planner_call(self):
        return nullcontext()


@pytest.fixture
def locks():
    return {}


def fakes(checkpoint, **services):
    """What queries are given from outside: this checkpoint, a lock on it, and what else is said."""
    least = {"acquire_lock": lambda _: FakeLock(), "observer": FakeMeasures()}
    return services_with(open_checkpoint=lambda _: checkpoint, **{**least, **services})


@pytest.fixture
def checkpoint():
    return FakeCheckpoint()


@pytest.fixture
def recalls():
    """What each query was told by when leases were recalled; `None` for a stop."""
    return []


@pytest.fixture
def governor(locks, checkpoint, recalls):
    def acquire(checkpoint):
        assert checkpoint not in locks or not locks[checkpoint].held, "held by ourselves"
        return locks.setdefault(checkpoint, FakeLock())

    def recall():
        recalls.append(
            None if governor.table.is_stopping else [run.settings.control for run in governor.runs]
        )

    governor = Governor(fakes(checkpoint, acquire_lock=acquire, recall=recall))
    return governor


def opened(governor, handle, *, run="r1"):
    described = {
        "handle": handle,
        "query": {"id": "1", "runId": run, "name": "copy"},
        "checkpoint": "file:/ck",
        "format": "replay",
        "api": "v2",
    }
    return governor.opened(handle, json.dumps(described))


ORDERS = json.dumps(
    {
        "handle": 1,
        "query": {"id": "1", "runId": "r1", "name": "copy"},
        "checkpoint": "file:/ck",
        "format": "kafka",
        "api": "v2",
        "options": {"subscribe": "orders", "kafka.bootstrap.servers": "broker:9092"},
    }
)
"""A stream of a topic."""


def test_a_query_that_has_no_stream_was_started_all_the_same(governor):
    noticed(governor)
    assert governor.table.has_had_any


def test_a_query_that_is_refused_its_checkpoint_was_started_all_the_same(checkpoint):
    def acquire(checkpoint):
        raise CheckpointInUseError(checkpoint)

    governor = Governor(fakes(checkpoint, acquire_lock=acquire))
    assert not governor.table.has_had_any
    begins(governor)
    assert opened(governor, 1).startswith("refuse:")
    assert governor.table.has_had_any


def test_a_query_of_which_nothing_was_told_runs_as_it_would(governor):
    opened(governor, 1)
    assert admit(governor, 1, '{"row":0}') == "all"


def test_a_query_that_is_named_in_vain_is_told_when_no_other_has_started_for_a_while(checkpoint):
    now = 0.0
    governor = Governor(fakes(checkpoint, acquire_lock=lambda _: None, clock=lambda: now))
    begins(governor, properties={"spark.headgate.queries.cpy.minPause": "1s"})
    opened(governor, 1)
    with capture_logs() as told:
        admit(governor, 1, '{"row":0}')
        now = 30.0
        admit(governor, 1, '{"row":0}')
        admit(governor, 1, '{"row":0}')
    assert [line["problem"] for line in told if "does not have" in line["event"]] == governor.table.unmatched
    assert ["no query cpy; did you mean copy?" in problem for problem in governor.table.unmatched] == [True]


@pytest.mark.parametrize(
    ("said", "followed", "warned"),
    [
        ("c.json", None, True),
        ("c.json", "other.json", True),
        ("c.json", "c.json", False),
        ("file:///run/c.json", "/run/c.json", False),
        ("s3a://run/c.json", "/run/c.json", True),
    ],
)
def test_a_control_document_that_a_session_names_too_late_is_warned_of(checkpoint, said, followed, warned):
    control = None if followed is None else Path(followed)
    governor = Governor(fakes(checkpoint, acquire_lock=lambda _: None, control=control))
    with capture_logs() as told:
        begins(governor, properties={"spark.headgate.control": said})
    assert ["anew with --conf spark.headgate.control" in line["event"] for line in told] == [True] * warned


@pytest.mark.parametrize("resumed", [True, False])
def test_a_stop_refuses_what_begins_and_holds_what_another_planner_has_begun(governor, resumed):
    governor.stop()
    begins(governor, resumed=resumed)
    answer = opened(governor, 1)
    assert answer.startswith("refuse:") != resumed
    if resumed:
        assert [run.run_id for run in governor.runs] == ["r1"]
        assert admit(governor, 1, '{"row":0}').startswith("wait:")


def test_a_governed_query_looks_before_it_reads(governor):
    governor.take_document(ControlDocument(generation=1, queries={"copy": QueryControl(interval_seconds=1)}))
    begins(governor)
    opened(governor, 1)
    answers = [admit(governor, 1, '{"row":0}') for _ in range(2)]
    assert "survey:1" in answers


def test_a_source_that_comes_after_one_that_there_is_not_is_named(governor):
    begins(governor)
    opened(governor, 1)
    admit(governor, 1, '{"row":0}')
    (name,) = [opened.name for opened in governor.runs[0].sources]
    control = QueryControl(sources={name: SourceControl(after="nowhere")})
    with capture_logs() as told:
        governor.take_document(ControlDocument(generation=1, queries={"copy": control}))
    assert [line["unknown"] for line in told if "unknown" in line] == [["nowhere"]]
    assert [line["waiting"] for line in told if "waiting" in line] == [[name]]


def test_a_setting_that_its_source_cannot_heed_is_told(governor):
    begins(governor)
    opened(governor, 1)
    admit(governor, 1, '{"row":0}')
    control = QueryControl(sources={"replay": SourceControl(publish_group="positions")})
    with capture_logs() as told:
        for generation in (1, 2):
            governor.take_document(ControlDocument(generation=generation, queries={"copy": control}))
    (problem,) = [line["problem"] for line in told if line["event"] == "a setting is not heeded"]
    assert problem.startswith("kafka.publishGroup of source replay does nothing: its format is replay")


def a_leased_query(governor):
    """A query of one source that has read everything; returns how to ask about it."""
    begins(governor)
    opened(governor, 1)

    def ask():
        answer = admit(governor, 1, '{"row":5}')
        return plan(governor, 1, '{"1":"{\\"row\\":5}"}') if answer == "survey:1" else answer

    return ask


MISSING = (
    "java.util.concurrent.ExecutionException: org.apache.kafka.common.errors.UnknownTopicOrPartitionException\n"
    "org.apache.kafka.common.errors.UnknownTopicOrPartitionException: This server does not host this topic-partition."
)


def told_of_orders(governor, *failures):
    governor.opened(1, ORDERS)
    with capture_logs() as told:
        for failure in failures:
            governor.outage(1, failure)
    return [line.get("problem", line["event"]) for line in told]


def test_a_source_that_is_silent_is_told_of_once_with_its_address_and_the_remedy(governor):
    silent = (
        "query copy: source orders: broker:9092 has not answered yet; see that it runs, listens there and can be "
        "reached from the driver, or correct `kafka.bootstrap.servers` in the job"
    )
    assert told_of_orders(governor, "", "", None, None, "") == [silent, "source answers again", silent]
    assert governor.runs[0].sources.out_of_reach == {"orders": silent}


def test_what_a_source_says_takes_the_place_of_its_silence_and_silence_not_that_of_what_it_said(governor):
    silent, missing = told_of_orders(governor, "", MISSING, "", MISSING)
    assert "has not answered yet" in silent
    assert missing == (
        "query copy: source orders: topic orders does not exist at broker:9092; create it, or correct `subscribe` "
        "in the job"
    )


def test_files_that_take_long_to_be_listed_are_no_outage(governor):
    opened(governor, 1)
    governor.outage(1, "")
    assert governor.runs[0].sources.out_of_reach == {}


def test_a_source_that_nobody_has_opened_or_that_is_closed_is_none_of_ours(governor):
    governor.outage(7, "")
    governor.thrown(7, MISSING)


def two_topics(governor):
    """A query of two topics, which fails of one that does not exist, in words that name none."""
    returns = ORDERS.replace("orders", "returns").replace('"handle": 1', '"handle": 2')
    begins(governor)
    governor.opened(1, ORDERS)
    governor.opened(2, returns)
    admit(governor, 1, "{}")


def ended(governor):
    failed_of = failure("[STREAM_FAILED] ExecutionException", MISSING)
    governor.closed(1, failed_of)
    governor.closed(2, failed_of)
    return governor.endings.failures["copy"]


ABSENT = (
    "query copy: source returns: topic returns does not exist at broker:9092; create it, or correct `subscribe` in "
    "the job"
)


def test_a_failure_that_names_no_source_is_told_of_the_one_that_has_thrown_it(governor):
    two_topics(governor)
    governor.outage(1, MISSING)
    governor.thrown(2, MISSING)
    assert ended(governor) == ABSENT


def test_a_failure_that_no_source_has_thrown_is_told_of_those_that_are_out_of_reach(governor):
    two_topics(governor)
    governor.outage(2, MISSING)
    assert ended(governor) == ABSENT


def test_a_failure_of_which_nothing_is_known_is_told_of_every_source(governor):
    two_topics(governor)
    assert "source orders: topic orders does not exist" in ended(governor)
    assert "; or source returns: topic returns does not exist" in governor.endings.failures["copy"]


def warnings_of(told):
    return [line["event"] for line in told if line["log_level"] == "warning"]


@pytest.mark.parametrize("argument", ["continuous", "realTime"])
def test_a_listed_query_whose_trigger_plans_no_batches_is_told_of_once_with_the_remedy(governor, argument):
    document = ControlDocument(generation=1, queries={"copy": QueryControl(), "other": QueryControl()})
    with capture_logs() as told:
        governor.take_document(document)
        noticed(governor, unplanned=argument)
        noticed(governor, run="r2", name="other")
        governor.take_document(document)
    assert warnings_of(told) == [
        f"query copy uses trigger({argument}=…), where Spark plans no batches, so nothing of it is governed; use "
        "trigger(processingTime=…), or remove it from the resource"
    ]
    assert governor.table.unplanned == ["copy"]


def test_it_is_told_of_when_a_document_comes_to_list_it(governor):
    with capture_logs() as told:
        noticed(governor, unplanned="continuous")
        governor.take_document(ControlDocument(generation=1, queries={"other": QueryControl()}))
        assert warnings_of(told) == []
        governor.take_document(ControlDocument(generation=2, queries={"copy": QueryControl()}))
    assert len(warnings_of(told)) == 1


def test_a_query_that_is_started_again_in_batches_is_planned(governor):
    noticed(governor, unplanned="continuous")
    noticed(governor, run="r2")
    assert governor.table.unplanned == []


def test_a_query_with_nothing_to_do_is_leased_and_watched(governor):
    governor.take_document(
        ControlDocument(generation=1, queries={"copy": QueryControl(interval_seconds=0.1)})
    )
    assert a_leased_query(governor)() == "lease:1000:100:1"


def test_a_threshold_has_it_watched_more_often_than_its_interval_would(governor):
    votes = SourceControl(backlog=BacklogControl(pending_records=500))
    control = QueryControl(interval_seconds=60, sources={"replay": votes})
    governor.take_document(ControlDocument(generation=1, queries={"copy": control}))
    assert a_leased_query(governor)() == "lease:1000:150:1"


def test_a_lease_says_of_each_stream_how_many_records_are_too_many():
    assert protocol.lease(Lease(1.0, look_seconds=0.15), {1: None, 2: 1000}) == "lease:1000:150:1,2=1000"


def test_it_is_watched_no_more_often_than_the_queries_of_the_driver_allow(checkpoint):
    class Rare(Looks):
        def spaced(self, run_id, lease, now):
            return replace(lease, look_seconds=0.7)

    governor = Governor(fakes(checkpoint, looks=Rare()))
    governor.take_document(
        ControlDocument(generation=1, queries={"copy": QueryControl(interval_seconds=0.1)})
    )
    assert a_leased_query(governor)() == "lease:1000:700:1"


WATERMARK = "EventTimeWatermark ts#5: timestamp, 10 seconds"


@pytest.mark.parametrize(
    ("nodes", "seconds_ahead", "reached", "future_batches"),
    [([WATERMARK], 5, 5, 0), ([WATERMARK] * 2, 5, None, 0), ([WATERMARK], 100, None, 1)],
    ids=["known by the batch", "of several watermarks any", "beyond the least maxFuture"],
)
def test_what_a_batch_tells_of_event_times_is_judged_by_plan_and_settings(
    checkpoint, nodes, seconds_ahead, reached, future_batches
):
    class Measures(FakeMeasures):
        def batch_took(self, query, seconds):
            pass

    governor = Governor(fakes(checkpoint, observer=Measures()))
    sources = {name: SourceControl(max_future_seconds=most) for name, most in (("replay", 3600), ("b", 10))}
    governor.take_document(ControlDocument(generation=1, queries={"copy": QueryControl(sources=sources)}))
    begins(governor, plan="\n".join(nodes))
    opened(governor, 1)
    admit(governor, 1, '{"row":0}')
    newest = round(time.time() + seconds_ahead)
    told = {"max": f"{datetime.fromtimestamp(newest, UTC):%Y-%m-%dT%H:%M:%S.000Z}"}
    durations = {"addBatch": 1, "triggerExecution": 1}
    progress = {"batchId": 0, "durationMs": durations, "sources": [{"numInputRows": 1}], "eventTime": told}
    governor.progressed("r1", json.dumps(progress))
    admit(governor, 1, '{"row":1}')
    (run,) = governor.runs
    assert run.batches.event_time.reached == (None if reached is None else newest)
    assert run.batches.event_time.future_batches == future_batches


def test_a_query_whose_event_times_lie_after_the_year_9999_is_planned_on(checkpoint, locks):
    governor = Governor(fakes(checkpoint))
    governor.take_document(ControlDocument(generation=1, queries={"copy": QueryControl(interval_seconds=1)}))
    begins(governor, plan=WATERMARK)
    opened(governor, 1)
    admit(governor, 1, '{"row":0}')
    far = "+55840-11-08T22:13:20.000Z"
    progress = {"batchId": 0, "durationMs": {"addBatch": 1, "triggerExecution": 1}, "sources": []}
    governor.progressed("r1", json.dumps(progress | {"eventTime": {"max": far, "watermark": far}}))
    admit(governor, 1, '{"row":1}')
    (run,) = governor.runs
    assert run.batches.event_time.reached is None
    assert run.batches.event_time.future_batches == 1


def test_a_batch_took_as_long_as_its_trigger_less_what_that_waited(locks, checkpoint):
    now, took = [0.0], []

    class Measures(FakeMeasures):
        def batch_took(self, query, seconds):
            took.append(seconds)

    def ran(batch, rows, milliseconds):
        durations = {"addBatch": milliseconds, "triggerExecution": milliseconds}
        progress = {"batchId": batch, "durationMs": durations, "sources": [{"numInputRows": rows}]}
        governor.progressed("r1", json.dumps(progress))

    governor = Governor(fakes(checkpoint, observer=Measures(), clock=lambda: now[0]))
    governor.take_document(ControlDocument(generation=1, queries={"copy": QueryControl(interval_seconds=1)}))
    begins(governor)
    opened(governor, 1)

    def ask(at, row, latest):
        now[0] = at
        answer = admit(governor, 1, json.dumps({"row": row}))
        survey = json.dumps({"1": json.dumps({"row": latest})})
        return plan(governor, 1, survey) if answer == "survey:1" else answer

    assert ask(0.0, 0, 100) == 'offset:{"row": 100}', "as the source has written it"
    ran(0, 100, 300)
    assert ask(0.3, 100, 100) == "hold"
    ran(1, 0, 400)
    assert ask(0.75, 100, 100) == "wait:250"
    assert ask(1.0, 100, 200) == 'offset:{"row": 200}'
    ran(2, 100, 700)
    ask(1.5, 200, 200)
    assert took == [0.3, pytest.approx(0.45)]


def test_a_new_document_and_a_stop_recall_leases_once_every_query_knows(governor, recalls):
    a_leased_query(governor)
    control = QueryControl(interval_seconds=60)
    governor.take_document(ControlDocument(generation=1, queries={"copy": control}))
    assert recalls == [[control]]
    governor.stop()
    assert recalls[1:] == [None]


def test_a_query_that_stops_waits_inside_its_trigger_where_spark_can_begin_no_batch_without_data(governor):
    governor.take_document(ControlDocument(generation=1, queries={"copy": QueryControl(interval_seconds=60)}))
    ask = a_leased_query(governor)
    ask()
    (run,) = governor.stop()
    assert not run.at_boundary.is_set()
    assert ask() == "wait:1000"
    assert run.at_boundary.is_set()


def test_a_run_whose_streams_were_never_closed_gives_its_checkpoint_to_the_next(governor, locks):
    begins(governor)
    opened(governor, 1)
    governor.ended("r1", failure("no such file"))  # of its second source, and Spark left the first one open
    assert opened(governor, 2, run="r2") == "ok"
    assert [run.run_id for run in governor.runs] == ["r2"]


def test_a_stop_does_not_wait_for_a_run_that_has_ended(governor):
    begins(governor)
    opened(governor, 1)
    governor.ended("r1", None)
    assert governor.stop() == []


class Times(FakeEventTimes):
    """Event times of any source of a run."""

    def decode_by(self, decoders):
        pass

    def problem(self, source):
        return None

    def prepare(self, source, max_future_seconds, event_time):
        pass

    def close(self):
        pass


def test_nobody_waits_for_a_run_that_has_ended_whatever_it_is_told_or_asked_then(checkpoint):
    def times() -> Times:
        return Times({Partition("replay", "row"): [0] * 5})

    groups = Groups()
    governor = Governor(fakes(checkpoint, groups=groups, event_times=times))
    member = SourceControl(alignment=AlignmentControl(group="trips", max_drift_seconds=1))
    control = QueryControl(interval_seconds=60, sources={"replay": member})
    governor.take_document(ControlDocument(generation=1, queries={"copy": control}))
    begins(governor)
    opened(governor, 1)
    admit(governor, 1, '{"row":0}')
    other = QueryAlignment("other", groups, times())
    other.control({"flights": member}, 0.0)
    assert other.interval == 60
    (run,) = governor.runs
    governor.closed(1, None)
    run.take_control(control)  # whoever waits for the lock of a run has it when that has ended
    assert admit(run, 1, '{"row":0}') == plan(run, 1, {"1": '{"row":5}'}) == "hold"
    assert other.interval is None


def reads_all_but_what_is_paused(governor, trigger):
    """A query of two sources, of which the second is paused; returns how to end its run."""
    sources = {"replay-2": SourceControl(paused=True)}
    governor.take_document(ControlDocument(generation=1, queries={"copy": QueryControl(sources=sources)}))
    begins(governor, trigger=trigger)
    opened(governor, 1)
    opened(governor, 2)
    latest = json.dumps({n: json.dumps({"row": 1500}) for n in ("1", "2")})
    assert admit(governor, 1, json.dumps({"row": 1500})) == "survey:1,2"
    plan(governor, 1, latest)
    assert admit(governor, 2, json.dumps({"row": 0})) == "hold"

    def end(failed_of=None):
        failed = failed_of and failure(failed_of)
        with capture_logs() as told:
            governor.closed(1, failed)
            governor.closed(2, failed)
        return [line["problem"] for line in told if line["event"] == "a run has ended with records unread"]

    return end


def test_a_run_that_ends_by_itself_says_what_it_has_left_because_it_is_paused(governor):
    end = reads_all_but_what_is_paused(governor, "availableNow")
    problem = "query copy left sources unread because they are paused: replay-2 (1,500 records)"
    assert end() == governor.endings.unread == [f"{problem}; unpause them and run it again"]


def test_a_run_that_fails_has_more_to_say_than_what_is_paused(governor):
    end = reads_all_but_what_is_paused(governor, "availableNow")
    assert end("out of disk") == governor.endings.unread == []


def test_a_run_that_is_stopped_was_not_to_read_everything(governor):
    end = reads_all_but_what_is_paused(governor, "availableNow")
    governor.stop()
    assert end() == governor.endings.unread == []


def test_a_run_that_does_not_end_by_itself_was_not_to_read_everything(governor):
    end = reads_all_but_what_is_paused(governor, "processingTime")
    assert end() == governor.endings.unread == []


def test_the_last_closed_stream_ends_the_run(governor, locks):
    opened(governor, 1)
    opened(governor, 2)
    governor.closed(1, None)
    assert len(governor.runs) == 1
    governor.closed(2, None)
    assert governor.runs == []
    assert not locks["file:/ck"].held


def test_batches_that_run_again_are_counted_over_all_runs(governor, checkpoint):
    for run, repeats in (("r1", True), ("r2", False), ("r3", True)):
        checkpoint.left = Resumption(7, repeats=repeats)
        opened(governor, 1, run=run)
        governor.closed(1, None)
    checkpoint.left = Resumption(7, repeats=False)
    opened(governor, 1, run="r4")
    assert governor.runs[0].state.memory.repeated == 2
    assert [memory.repeated for memory in checkpoint.batches.values] == [1, 2]


def test_a_checkpoint_that_cannot_be_read_keeps_no_query_from_running(governor, checkpoint):
    checkpoint.left = OSError("the name node is in safe mode")
    assert opened(governor, 1) == "ok"
    assert governor.runs[0].state.memory.repeated == 0


def test_a_run_that_ends_by_itself_takes_no_source_for_new_of_which_the_checkpoint_could_not_be_read(
    governor, checkpoint
):
    """It would begin with an empty batch, which Spark does not run where each source has an offset: the run ends."""
    checkpoint.left = OSError("the name node is in safe mode")
    governor.take_document(ControlDocument(generation=1, queries={"copy": QueryControl()}))
    begins(governor, trigger="availableNow")
    for handle in (1, 2):
        opened(governor, handle)
    assert admit(governor, 1, '{"row":5}') == "survey:1,2"
    assert plan(governor, 1, '{"1": "{\\"row\\":9}", "2": null}') == 'offset:{"row":9}'


def test_each_latest_offset_comes_in_a_field_of_its_own(governor, checkpoint):
    checkpoint.left = Resumption(7, repeats=False, ends=Ends(('{"row":5}', '{"row":0}')))
    governor.take_document(ControlDocument(generation=1, queries={"copy": QueryControl()}))
    asked = verbs(governor)
    begins(governor, trigger="availableNow")
    for handle in (1, 2):
        opened(governor, handle)
    assert asked["admit"]("1", "1.1:", '{"row":5}', "r1", None) == "survey:1,2"
    assert asked["plan"]("1", "1.1:", "2", None, "1", '{"row":9}') == 'offset:{"row":9}'
    assert asked["admit"]("2", "1.3:1=1", '{"row":0}', "r1", None) == "survey:2"
    assert asked["plan"]("2", "1.3:1=1", "2", '{"row":3}') == 'offset:{"row":3}'


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        (("1", "1.1:", "2", '{"row":3}', "1"), "end with '1': a handle without its offset"),
        (("1", "1.1:", '{"row":3}', "2"), """'{"row":3}' is no handle of a stream"""),
        (("1", "1.1:", None, "2"), "a null is no handle of a stream"),
        (("one", "1.1:"), "'one' is no handle of a stream"),
        (("1", "1.1:2"), "'1.1:2' does not say when it is asked: <trigger>.<question>:<handle>=<trigger>,…"),
        (("1", "1"), "'1' does not say when it is asked"),
        (("1", None), "a null does not say when it is asked"),
    ],
)
def test_a_question_whose_fields_make_no_sense_is_refused_with_what_is_wrong(governor, fields, told):
    governor.take_document(ControlDocument(generation=1, queries={"copy": QueryControl()}))
    begins(governor)
    opened(governor, 1)
    with pytest.raises(ValueError, match=re.escape(told)):
        verbs(governor)["plan"](*fields)


@pytest.mark.parametrize("offset", ['{"row":', '{"row":"five"}', "17", "[" * 100_000])
def test_a_damaged_offset_of_one_source_holds_no_other_until_spark_has_told_of_it(
    governor, checkpoint, offset
):
    checkpoint.left = Resumption(7, repeats=False, ends=Ends(('{"row":5}', offset)))
    governor.take_document(ControlDocument(generation=1, queries={"copy": QueryControl(interval_seconds=1)}))
    begins(governor)
    opened(governor, 1)
    opened(governor, 2)
    assert admit(governor, 1, '{"row":5}') == "survey:1,2"


def test_what_a_later_version_remembers_is_ignored(governor, checkpoint, tmp_path):
    checkpoint.batches = Checkpoint(str(tmp_path / "ck"), lambda path: LocalDirectory(Path(path))).batches
    (tmp_path / "ck.headgate").mkdir()
    (tmp_path / "ck.headgate/batches.1.json").write_text('{"repeated": 3, "colour": "blue"}')
    opened(governor, 1)
    assert governor.runs[0].state.memory.repeated == 3


@pytest.mark.parametrize(
    ("left", "waits"),
    [
        (Resumption(), True),
        (Resumption(7, repeats=False, ends=Ends(('{"row":5}', '{"row":0}'))), False),
        (OSError("the name node is in safe mode"), False),
    ],
    ids=["a new checkpoint", "the same one", "nobody can tell"],
)
def test_a_new_checkpoint_in_the_place_of_an_old_one_begins_with_its_history(
    governor, checkpoint, left, waits
):
    checkpoint.hybrid.save(HybridMemory({"replay": {"row": 5}}, frozenset({"replay"})))
    checkpoint.left = left
    sources = {"replay": SourceControl(), "replay-2": SourceControl(after="replay")}
    governor.take_document(ControlDocument(generation=1, queries={"copy": QueryControl(sources=sources)}))
    begins(governor)
    opened(governor, 1)
    opened(governor, 2)
    admit(governor, 1, '{"row":0}')
    assert governor.runs[0].figures().sources[1].phase == waits


DAMAGED = (
    b"",
    b'{"ends": {"replay": {"row": 5',
    b"\xff\xfe\x00",
    b"[" * 100_000,
    b"null",
    b"17",
    b'{"finished": []}',
    b'{"ends": {"replay": {"row": "5"}}, "finished": []}',
    b'{"ends": {"replay": 5}, "finished": []}',
    b'{"ends": {}, "finished": "replay"}',
    b'{"ends": {}, "finished": [5]}',
)
"""What may be found of the memory of histories."""


@pytest.fixture
def keeping(checkpoint, tmp_path):
    """Keep in files what is known of histories, and say what the newest of them holds."""
    checkpoint.left = Resumption(7, repeats=False, ends=Ends(('{"row":5}', '{"row":0}')))
    kept = Checkpoint(str(tmp_path / "ck"), lambda path: LocalDirectory(Path(path)))
    checkpoint.hybrid = kept.hybrid
    folder = tmp_path / "ck.headgate"
    folder.mkdir()
    kept.hybrid.save(HybridMemory({"replay": {"row": 5}}, frozenset({"replay"})))

    def holds(content):
        (folder / "hybrid.2.json").write_bytes(content)
        return folder / "hybrid.2.json"

    return holds


@pytest.mark.parametrize("content", DAMAGED)
def test_a_damaged_memory_of_histories_fails_what_waits_for_one_and_names_file_and_remedy(
    governor, keeping, content
):
    file = keeping(content)
    waiting = QueryControl(sources={"replay": SourceControl(), "replay-2": SourceControl(after="replay")})
    governor.take_document(ControlDocument(generation=1, queries={"copy": waiting}))
    begins(governor)
    opened(governor, 1)
    opened(governor, 2)
    told = admit(governor, 1, '{"row":5}')
    assert told.startswith(
        "fail:query copy: source replay-2: it is not known whether its history has been read"
    )
    assert f"file {file} is damaged (" in told
    assert told.endswith("; put it back from a copy, or delete it: nothing is lost then, or read twice")
    assert governor.failures == 0
    file.unlink()
    for handle in (1, 2):
        governor.closed(handle, None)
    begins(governor, run="r2")
    for handle in (3, 4):
        opened(governor, handle, run="r2")
    assert admit(governor, 3, '{"row":5}') == "survey:3,4"
    assert [source.phase for source in governor.runs[0].figures().sources] == [False, False]


def test_a_damaged_memory_of_histories_is_nothing_to_a_query_without_one_until_it_has_one(governor, keeping):
    file = keeping(b"{")
    sources = {"replay": SourceControl(), "replay-2": SourceControl()}
    governor.take_document(ControlDocument(generation=1, queries={"copy": QueryControl(sources=sources)}))
    begins(governor)
    opened(governor, 1)
    opened(governor, 2)
    assert admit(governor, 1, '{"row":5}') == "survey:1,2"
    sources["replay-2"] = SourceControl(after="replay")
    governor.take_document(ControlDocument(generation=2, queries={"copy": QueryControl(sources=sources)}))
    assert str(file) in admit(governor, 1, '{"row":5}')
    assert file.read_bytes() == b"{"


class FakePositions:
    """What is published of one source, until its query ends."""

    def __init__(self):
        self.told = []

    def committed(self, *, query, source, group, options, offset):
        self.told.append((query, source, group, offset))

    def ended(self, query):
        self.told.append(query)


def test_of_a_source_that_is_none_of_kafka_nothing_is_published(checkpoint):
    positions = FakePositions()
    governor = Governor(fakes(checkpoint, positions=positions))
    control = QueryControl(sources={"replay": SourceControl(publish_group="lag")})
    governor.take_document(ControlDocument(generation=1, queries={"copy": control}))
    begins(governor)
    opened(governor, 1)
    admit(governor, 1, '{"row":0}')
    assert positions.told == []


@pytest.mark.parametrize(
    ("left", "last"),
    [
        (Resumption(7, repeats=False, ends=Ends(('{"orders":{"0":9}}',))), ['{"orders":{"0":9}}']),
        (Resumption(7, repeats=True, ends=Ends(('{"orders":{"0":9}}',))), []),
        (OSError("the name node is in safe mode"), []),
    ],
    ids=["committed", "in mid-batch", "nobody can tell"],
)
def test_where_a_query_ends_is_published_before_it_is_told_that_it_has(checkpoint, left, last):
    positions = FakePositions()
    governor = Governor(fakes(checkpoint, positions=positions))
    control = QueryControl(sources={"orders": SourceControl(publish_group="lag")})
    governor.take_document(ControlDocument(generation=1, queries={"copy": control}))
    begins(governor)
    governor.opened(1, ORDERS)
    checkpoint.left = left
    governor.closed(1, None)
    assert positions.told == [*(("copy", "orders", "lag", offset) for offset in last), "copy"]


def test_where_a_query_ends_is_published_of_each_source_also_where_its_plan_reads_one_twice(checkpoint):
    positions = FakePositions()
    governor = Governor(fakes(checkpoint, positions=positions))
    listed = {name: SourceControl(publish_group="lag") for name in ("orders", "returns")}
    governor.take_document(ControlDocument(generation=1, queries={"copy": QueryControl(sources=listed)}))
    begins(governor, sources=[0, 0, 1])
    for handle, topic in enumerate(listed):
        governor.opened(handle, described(handle, topic=topic, index=handle))
    orders, returns = '{"orders":{"0":9}}', '{"returns":{"0":4}}'
    checkpoint.left = Resumption(7, repeats=False, ends=Ends((orders, orders, returns)))
    for handle in range(2):
        governor.closed(handle, None)
    assert positions.told == [("copy", "orders", "lag", orders), ("copy", "returns", "lag", returns), "copy"]


def test_a_failure_that_does_not_say_which_source_it_was_is_explained(governor):
    begins(governor)
    governor.opened(1, ORDERS)
    admit(governor, 1, None)
    governor.closed(1, failure("UnknownTopicOrPartitionException"))
    (explanation,) = governor.endings.explanations
    assert explanation.startswith("query copy: source orders: topic orders does not exist at broker:9092")


def test_so_is_one_that_only_its_causes_tell(governor):
    begins(governor)
    governor.opened(1, ORDERS)
    admit(governor, 1, None)
    cause = "ConfigException: No resolvable bootstrap urls given in bootstrap.servers"
    governor.closed(1, failure("Failed to create new KafkaAdminClient", cause))
    (explanation,) = governor.endings.explanations
    assert explanation.startswith("query copy: source orders: no host in broker:9092 is known by its name")


def test_a_query_that_has_failed_says_so_until_it_is_started_again(governor):
    begins(governor)
    opened(governor, 1)
    admit(governor, 1, None)
    governor.closed(1, failure("java.lang.IllegalStateException: the sink is full"))
    sentence = "query copy: java.lang.IllegalStateException: the sink is full"
    assert governor.endings.failures == {"copy": sentence}
    assert governor.endings.explanations == [sentence]
    opened(governor, 2, run="r2")
    assert governor.endings.failures == {}


def test_a_query_that_fails_before_it_has_opened_anything_is_told_by_its_name(governor):
    noticed(governor)
    assert governor.endings.failures == {}
    for _ in range(2):
        governor.ended("r1", failure("Option 'subscribe' is missing"))
    assert governor.endings.failures == {"copy": "query copy: Option 'subscribe' is missing"}
    assert governor.endings.explanations == ["query copy: Option 'subscribe' is missing"]


def test_a_query_that_fails_leaving_its_streams_open_is_told_while_its_siblings_go_on(governor):
    begins(governor)
    opened(governor, 1)
    governor.ended("r1", failure("no such file"))
    assert governor.endings.failures == {"copy": "query copy: no such file"}
    assert governor.runs == []


def test_a_query_that_ends_without_failing_needs_no_explanation(governor):
    begins(governor)
    opened(governor, 1)
    admit(governor, 1, None)
    governor.closed(1, None)
    assert governor.endings.explanations == []


def test_a_query_that_fails_between_its_beginning_and_its_first_stream_is_told_once(governor):
    begins(governor)
    noticed(governor)
    for _ in range(2):
        governor.ended("r1", failure("Option 'subscribe' is missing"))
    assert governor.endings.failures == {"copy": "query copy: Option 'subscribe' is missing"}
    assert governor.table._started == {}


def test_what_is_told_twice_of_the_end_of_a_query_is_what_was_told_first(governor):
    begins(governor)
    governor.opened(1, ORDERS)
    governor.closed(1, failure("[STREAM_FAILED] ExecutionException", MISSING))
    noticed(governor)
    governor.ended("r1", failure("[STREAM_FAILED] ExecutionException"))
    assert "topic orders does not exist" in governor.endings.failures["copy"]
    assert len(governor.endings.explanations) == 1


def test_a_beginning_that_is_told_again_changes_nothing(governor):
    begins(governor, interval_seconds=5)
    opened(governor, 1)
    (run,) = governor.runs
    started = run.started
    begins(governor, interval_seconds=7)
    assert opened(governor, 1) == "ok"
    assert run.started is started
    assert started.trigger.interval_seconds == 5
    assert governor.table._started == {}


def test_a_planner_that_comes_while_a_query_runs_is_told_of_it_and_plans_it(governor):
    begins(governor, run="r7")
    for handle in (41, 42):
        assert opened(governor, handle, run="r7") == "ok"
    governor.take_document(ControlDocument(generation=1, queries={"copy": QueryControl(interval_seconds=1)}))
    assert admit(governor, 42, '{"row":700}') == "survey:41,42"


def test_no_query_begins_while_the_driver_is_being_stopped_and_those_that_run_are_told_of_again(governor):
    begins(governor)
    assert opened(governor, 1) == "ok"
    governor.stop()
    begins(governor, run="r2")
    assert opened(governor, 2, run="r2") == ("refuse:query copy is not started: the driver is being stopped")
    assert opened(governor, 1) == "ok"
    assert [run.run_id for run in governor.runs] == ["r1"]


@pytest.mark.parametrize("trigger", ["availableNow", "once"])
def test_a_run_that_a_stop_cuts_fails_and_says_that_this_was_not_its_end(governor, recalls, trigger):
    begins(governor, trigger=trigger)
    opened(governor, 1)
    (run,) = governor.stop()
    assert admit(governor, 1, '{"row":0}').startswith("wait:")
    assert run.at_boundary.is_set()
    governor.cut()
    message = "query copy was stopped before its end; start it again, and it goes on where it was stopped"
    assert admit(governor, 1, '{"row":0}') == f"fail:{message}"
    assert len(recalls) == 2
    governor.closed(1, failure(f"dev.headgate.spark.PlannerException: {message}"))
    assert list(governor.endings.cut_short.values()) == [message]
    assert governor.endings.explanations == []


def test_a_run_without_an_end_of_its_own_is_not_cut(governor):
    begins(governor)
    opened(governor, 1)
    governor.stop()
    governor.cut()
    assert governor.endings.cut_short == {}
    assert not admit(governor, 1, '{"row":0}').startswith("fail:")


def test_a_query_is_stopped_by_the_id_of_its_run(checkpoint):
    stopped = []
    governor = Governor(fakes(checkpoint, stop_query=stopped.append))
    begins(governor, run="r7")
    opened(governor, 1, run="r7")
    governor.runs[0].started.stop()
    assert stopped == ["r7"]


UNREAD = Refusal(RefusalReason.MALFORMED, "not JSON: it is cut short")


def test_a_document_that_cannot_be_read_holds_what_it_may_limit_and_says_so_with_the_remedy(
    governor, recalls
):
    begins(governor)
    opened(governor, 1)
    with capture_logs() as told:
        governor.documents.refuse(UNREAD, True)
    assert recalls == [[None]], "leases would let a query go on without a question"
    assert admit(governor, 1, '{"row":0}') == "hold"
    assert told[-1]["event"] == governor.documents.unread
    assert "it is cut short" in governor.documents.unread
    assert "or delete it" in governor.documents.unread
    governor.take_document(ControlDocument(generation=1))
    assert governor.documents.unread is None
    assert admit(governor, 1, '{"row":0}') == "all"


def test_one_that_is_taken_away_holds_nothing(governor):
    begins(governor)
    opened(governor, 1)
    governor.documents.refuse(UNREAD, True)
    admit(governor, 1, '{"row":0}')
    governor.documents.refuse(Refusal(RefusalReason.MISSING, "it is gone"), False)
    assert governor.documents.unread is None
    assert admit(governor, 1, '{"row":0}') == "all"


def test_a_query_that_is_to_run_without_headgate_is_not_held(governor):
    begins(governor, properties={"spark.headgate.onFailure": "continue"})
    opened(governor, 1)
    governor.documents.refuse(UNREAD, True)
    assert admit(governor, 1, '{"row":0}') == "all"


def of_session(governor, handle, run):
    begins(governor, run=run, name="copy")
    assert governor.opened(handle, described(handle, run=run, checkpoint=f"s3a://b/{run}")) == "ok"


def test_a_call_that_asks_again_and_gives_up_takes_no_name_from_the_first_one():
    table = Governor(fakes(FakeCheckpoint())).table
    with table.told_as("slow", "copy"):
        with table.told_as("slow", "copy") as again:
            assert again == "copy"
        with table.told_as("other", "copy") as other:
            assert other == "copy-2"
    with table.told_as("later", "copy") as later:
        assert later == "copy"


def test_queries_of_two_sessions_with_one_name_are_told_apart_and_do_as_the_document_says():
    """Spark sees to it that no two of a session have the same."""
    governor = Governor(fakes(FakeCheckpoint()))
    paused = QueryControl(sources={"orders": SourceControl(paused=True)})
    governor.take_document(ControlDocument(generation=1, queries={"copy": paused}))
    with capture_logs() as logs:
        of_session(governor, 1, "r1")
        of_session(governor, 2, "r2")
        of_session(governor, 1, "r1")
    assert [run.name for run in governor.runs] == ["copy", "copy-2"]
    assert [run.settings.control for run in governor.runs] == [paused, paused]
    assert [line["told_as"] for line in logs if "of another session" in line["event"]] == ["copy-2"]
    governor.take_document(ControlDocument(generation=2, queries={"copy": QueryControl()}))
    assert [run.settings.control for run in governor.runs] == [QueryControl(), QueryControl()]
    series = [
        (metric.name, labels)
        for metric, labels, _ in DriverCollector("a", governor, Executors(between_batches=bool))._samples()
    ]
    assert len(series) == len(set(series))
    governor.closed(1, None)
    of_session(governor, 3, "r3")
    assert [run.name for run in governor.runs] == ["copy-2", "copy"]


def test_a_run_that_takes_the_place_of_one_whose_end_was_not_told_has_its_name():
    governor = Governor(fakes(FakeCheckpoint()))
    for handle, run in ((1, "r1"), (2, "r2")):
        begins(governor, run=run, id="the same checkpoint")
        assert opened(governor, handle, run=run) == "ok"
    assert [run.name for run in governor.runs] == ["copy", "copy"]
