"""A change stream is in backlog while it reads its snapshot, and a batch that spans it ends with its last record."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_contract import BatchControl, LiveControl, QueryControl, ReentryControl, SourceControl
from headgate_contract.held import HeldBy
from headgate_spark.planner import snapshots
from headgate_spark.planner.model import Hold, TakeUpTo, Trigger, TriggerKind
from headgate_spark.planner.snapshots import QUIET_SECONDS, Over, SearchRange, SnapshotEnd
from support.scripted_spark import START, ScriptedSpark, Stream


@dataclass
class Log:
    """The partitions of a topic, each with so many rows of a snapshot and changes, in this order: `(3, 2, 4, 1)`."""

    parts: dict[str, Sequence[int]]
    answers: bool = True
    found: dict[str, SnapshotEnd] = field(default_factory=dict)
    searched: list[Mapping[str, SearchRange]] = field(default_factory=list)
    over: frozenset[Over] = frozenset()
    connectors: dict[str, str | None] = field(default_factory=dict)
    """By partition who has written it; `None`: that is not told."""
    told: dict[str, str] = field(default_factory=dict)
    can_be_asked: bool = True

    @property
    def stream(self) -> Stream:
        return Stream("orders", {partition: sum(parts) for partition, parts in self.parts.items()})

    def end_behind(self, partition: str, at: int) -> int:
        """Return where the snapshot ends that `at` is in; `at`: it is in none."""
        begin = 0
        for n, count in enumerate(self.parts[partition]):
            begin += count
            if at < begin:
                return begin if n % 2 == 0 else at
        return at

    def search(self, source: str, places: Mapping[str, SearchRange]) -> None:
        self.searched.append(dict(places))
        if self.answers:
            self.answer()

    def answer(self) -> None:
        for partition, place in self.searched[-1].items():
            end = min(self.end_behind(partition, place.begin), place.until)
            connector = self.connectors.get(partition, "shop")
            of_all = frozenset({(connector, None)} if connector is not None else ())
            self.found[partition] = SnapshotEnd(
                begin=place.begin,
                end=end,
                until=place.until,
                is_open=end == place.until,
                connector=connector,
                over=self.over if end == place.until else of_all,
            )

    def drop(self, source: str, partitions: Collection[str]) -> None:
        self.found = {partition: end for partition, end in self.found.items() if partition not in partitions}

    def known(self, source: str) -> Mapping[str, SnapshotEnd] | None:
        return dict(self.found) if self.can_be_asked else None

    def problems(self, source: str) -> Mapping[str, str]:
        return self.told


ROWS = 5_000_000
"""Of a snapshot that takes minutes to be read."""


def control(during: float = 0.0, most: int = 10**8) -> QueryControl:
    return QueryControl(
        interval_seconds=1,
        interval_during_backlog_seconds=during,
        batch=BatchControl(max_records=most),
        sources={"orders": SourceControl(snapshot="Debezium")},
    )


def spark_with(
    log: Log, declared: QueryControl | None = None, **more: object
) -> tuple[ScriptedSpark, Stream]:
    stream = log.stream
    spark = ScriptedSpark(stream, control=declared or control(), snapshots=log, **more)  # type: ignore[arg-type]
    return spark, stream


def test_a_snapshot_is_one_batch_that_ends_in_each_partition_with_its_last_record() -> None:
    spark, stream = spark_with(Log({"t/0": (70, 30), "t/1": (20, 50), "t/2": (0, 40), "t/3": (9, 0)}))
    spark.run_until(lambda: len(spark.batches) == 1)
    assert stream.start == {"t/0": 70, "t/1": 20, "t/2": 0, "t/3": 9}
    spark.run_until(lambda: stream.pending == 0)
    assert [sum(batch.records.values()) for batch in spark.batches] == [99, 120]
    assert not spark.figures.backlog


def test_its_phase_is_yes_from_the_first_batch_until_every_partition_is_past_it() -> None:
    spark, stream = spark_with(Log({"t/0": (60, 100), "t/1": (10, 300)}), control(10.0))
    spark.run_until(lambda: stream.start["t/0"] > 0)
    phases = {spark.figures.sources[0].phase}
    while stream.start["t/0"] < 60:
        assert spark.figures.backlog
        spark.round()
    spark.run_until(lambda: stream.pending == 0)
    spark.run_for(3)
    assert phases == {True}
    assert not spark.figures.sources[0].phase
    assert not spark.figures.backlog


def test_nothing_is_read_before_it_is_known_where_the_snapshot_ends() -> None:
    log = Log({"t/0": (70, 30)}, answers=False)
    spark, stream = spark_with(log)
    spark.run_for(5)
    assert stream.start == {"t/0": 0}
    assert spark.answers["orders"] == Hold(HeldBy.SNAPSHOT)
    log.answer()
    spark.run_until(lambda: bool(spark.batches))
    assert stream.start == {"t/0": 70}


def test_where_it_cannot_be_asked_it_is_read_without_a_phase() -> None:
    spark, stream = spark_with(Log({"t/0": (70, 30)}, answers=False, can_be_asked=False))
    spark.run_until(lambda: stream.pending == 0)
    assert not spark.figures.backlog


def test_a_source_that_is_no_change_stream_is_not_searched() -> None:
    log = Log({"t/0": (70, 30)})
    spark, stream = spark_with(log, replace(control(), sources={}))
    spark.run_until(lambda: stream.pending == 0)
    assert log.searched == []


def test_where_max_records_cuts_the_batch_those_that_follow_end_at_the_same_place() -> None:
    spark, stream = spark_with(Log({"t/0": (70, 30), "t/1": (20, 50)}), control(most=40))
    spark.run_until(lambda: len(spark.batches) == 3)
    assert [sum(batch.records.values()) for batch in spark.batches] == [40, 40, 10]
    assert stream.start == {"t/0": 70, "t/1": 20}


def test_a_restart_in_its_midst_ends_at_the_same_place() -> None:
    log = Log({"t/0": (70, 30), "t/1": (20, 50)})
    at = {"t/0": 33, "t/1": 20}
    spark, stream = spark_with(log, resumed={"orders": at})
    stream.start = dict(at)
    spark.run_until(lambda: len(spark.batches) == 1)
    assert stream.start == {"t/0": 70, "t/1": 20}


def test_a_restart_behind_it_has_no_phase() -> None:
    at = {"t/0": 70, "t/1": 31}
    spark, stream = spark_with(Log({"t/0": (70, 30), "t/1": (20, 50)}), resumed={"orders": at})
    stream.start = dict(at)
    spark.run_until(lambda: len(spark.batches) == 1)
    assert not spark.figures.backlog


def test_a_snapshot_that_goes_on_is_a_phase_while_it_does_and_its_end_is_found_when_it_comes() -> None:
    log = Log({"t/0": (50,)})
    spark, stream = spark_with(log)
    for rows in (50, 80, 95):
        log.parts["t/0"] = (rows,)
        stream.latest["t/0"] = rows
        spark.run_until(lambda: stream.pending == 0, within=5)
        spark.run_for(QUIET_SECONDS - 10)
        assert spark.figures.backlog
    log.parts["t/0"], stream.latest["t/0"] = (120, 40), 160
    before = len(spark.batches)
    spark.run_until(lambda: len(spark.batches) > before, within=5)
    assert stream.start == {"t/0": 120}
    spark.run_until(lambda: stream.pending == 0, within=5)
    assert not spark.figures.backlog


def test_one_that_has_stopped_growing_is_none_and_is_named_with_what_to_do() -> None:
    spark, stream = spark_with(Log({"t/0": (50,)}))
    spark.run_until(lambda: stream.pending == 0)
    spark.run_for(QUIET_SECONDS + 5)
    assert not spark.figures.backlog
    problem = spark.figures.sources[0].snapshot_problem
    assert problem is not None
    assert problem.startswith("partition t/0 ends with a record of a snapshot")
    assert "see its status" in problem
    assert [remark.source for remark in spark.planner.remarks() if problem in remark.text] == ["orders"]


def test_what_comes_behind_one_that_has_stalled_is_read_before_anybody_knows_what_it_is() -> None:
    """Nor is it a phase: not known is no yes."""
    log = Log({"t/0": (50,)})
    spark, stream = spark_with(log)
    spark.run_until(lambda: stream.pending == 0)
    spark.run_for(QUIET_SECONDS + 5)
    log.answers = False
    log.parts["t/0"], stream.latest["t/0"] = (60,), 60
    spark.run_until(lambda: stream.start["t/0"] == 60, within=5)
    assert stream.start == {"t/0": 60}
    assert not spark.figures.sources[0].phase
    log.answer()
    spark.run_until(lambda: spark.figures.sources[0].phase, within=5)
    assert spark.figures.sources[0].phase


def test_of_a_source_that_cannot_be_asked_any_more_nothing_is_said_that_was_found_before() -> None:
    log = Log({"t/0": (50,)})
    spark, _ = spark_with(log)
    spark.run_for(QUIET_SECONDS + 15)
    assert spark.figures.sources[0].snapshot_problem is not None
    log.can_be_asked = False
    spark.run_for(5)
    assert spark.figures.sources[0].snapshot_problem is None


def test_a_log_of_nothing_but_markers_is_no_phase() -> None:
    """Paused, or it would be read past where nothing was found."""
    log = Log({"t/0": (0, 30)}, answers=False)
    log.found["t/0"] = SnapshotEnd(begin=0, end=0, until=30, is_open=True)
    sources = {"orders": SourceControl(snapshot="Debezium", paused=True)}
    spark, _ = spark_with(log, replace(control(), sources=sources))
    spark.run_for(3)
    assert not spark.figures.sources[0].phase


def test_one_without_an_end_stays_a_phase_and_is_named_once_with_partition_offset_and_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It grows for ever, faster than what counts as quiet: whether it ends is not known, and that is no "no"."""
    monkeypatch.setattr(snapshots, "ENDLESS_SECONDS", 3 * QUIET_SECONDS)
    log = Log({"t/0": (50,), "t/1": (0, 0)})
    spark, stream = spark_with(log, control(10.0))

    def grow(seconds: float, *parts: int) -> set[str]:
        told = set()
        log.parts["t/0"] = parts
        stream.latest["t/0"] = sum(parts)
        end = spark.now + seconds
        while spark.now < end:
            spark.round()
            told |= {r.text for r in spark.planner.remarks() if "does not end" in r.text}
        return told

    for rows in (50, 100, 150, 200):
        assert grow(QUIET_SECONDS - 10, rows) == set()
    told = {sentence for rows in (250, 300, 350) for sentence in grow(QUIET_SECONDS - 10, rows)}
    problem = spark.figures.sources[0].snapshot_problem
    assert problem is not None
    assert problem.startswith("partition t/0: for an hour no end of the snapshot was found")
    assert "up to the record at offset 249" in problem
    assert "take backlog.snapshot out" in problem
    assert told == {f"the snapshot of a change stream does not end: {problem}"}
    assert spark.figures.sources[0].phase
    assert spark.figures.backlog
    grow(10, 400, 5)
    assert spark.figures.sources[0].snapshot_problem is None
    assert not spark.figures.sources[0].phase
    assert grow(QUIET_SECONDS - 10, 400, 5, 100) == set(), "another one, which has just begun"
    assert spark.figures.sources[0].phase


@pytest.mark.parametrize(("parts", "connector"), [((ROWS, 5), "a"), ((ROWS, 5), None), ((ROWS,), "a")])
def test_one_that_is_read_for_long_is_not_named_before_all_of_it_was_read(
    monkeypatch: pytest.MonkeyPatch, parts: Sequence[int], connector: str | None
) -> None:
    """Nor is one beside it that has stalled: that keeps no query in backlog."""
    monkeypatch.setattr(snapshots, "ENDLESS_SECONDS", QUIET_SECONDS + 5)
    log = Log({"t/0": (50,), "t/1": (50,)}, connectors={"t/0": connector, "t/1": "b"})
    spark, stream = spark_with(log, control(10.0))
    spark.run_until(lambda: stream.pending == 0)
    log.parts["t/0"], stream.latest["t/0"] = parts, sum(parts)
    while stream.start["t/0"] < ROWS:
        spark.round()
        assert "does not end" not in "".join(remark.text for remark in spark.planner.remarks())
    assert spark.now > START + 2.5 * QUIET_SECONDS


@pytest.mark.parametrize("paused", [False, True])
def test_one_with_a_change_behind_it_is_over_though_its_records_name_no_connector(
    monkeypatch: pytest.MonkeyPatch, paused: bool
) -> None:
    """Whether all was read or the snapshot alone: it is neither a phase nor one that has stalled."""
    monkeypatch.setattr(snapshots, "ENDLESS_SECONDS", QUIET_SECONDS + 5)
    log = Log({"t/0": (50, 30), "t/1": (5, 20)}, connectors={"t/0": None, "t/1": None})
    spark, stream = spark_with(log)
    spark.run_until(lambda: len(spark.batches) == 1)
    source = SourceControl(snapshot="Debezium", paused=paused)
    spark.control(replace(control(), sources={"orders": source}))
    spark.run_for(3)
    assert stream.start == ({"t/0": 50, "t/1": 5} if paused else {"t/0": 80, "t/1": 25})
    assert not spark.figures.sources[0].phase
    spark.run_for(3 * QUIET_SECONDS)
    assert spark.figures.sources[0].snapshot_problem is None


def test_changes_that_come_behind_an_end_that_is_known_hold_nothing() -> None:
    log = Log({"t/0": (10, 5), "t/1": (500, 5)})
    spark, stream = spark_with(log, control(most=100))
    spark.run_until(lambda: stream.start["t/0"] == 10)
    log.answers = False
    log.parts["t/0"], stream.latest["t/0"] = (10, 50), 60
    spark.run_until(lambda: stream.start["t/1"] == 500, within=60)
    assert stream.start == {"t/0": 10, "t/1": 500}


@pytest.mark.parametrize("over", [("shop", None), ("shop", "t")], ids=["of all tables", "of the table"])
def test_where_the_last_record_was_read_it_is_over_at_once(over: Over) -> None:
    spark, stream = spark_with(Log({"t/0": (50,)}, over=frozenset({over})))
    spark.run_until(lambda: stream.pending == 0)
    spark.run_for(3)
    assert not spark.figures.backlog
    assert spark.figures.sources[0].snapshot_problem is None


def test_a_change_in_one_partition_says_that_the_snapshot_is_over_in_all_that_have_none() -> None:
    spark, stream = spark_with(Log({"t/0": (50,), "t/1": (50, 1)}))
    spark.run_until(lambda: stream.pending == 0)
    spark.run_for(3)
    assert not spark.figures.backlog
    assert spark.figures.sources[0].snapshot_problem is None


def test_a_second_snapshot_is_a_phase_from_when_it_is_found_and_nothing_waits_for_that() -> None:
    log = Log({"t/0": (10, 30)})
    spark, stream = spark_with(log, control(10.0))
    spark.run_until(lambda: stream.pending == 0)
    spark.run_for(3)
    assert not spark.figures.backlog
    log.parts["t/0"], stream.latest["t/0"] = (10, 30, 500_000, 7), 500_047
    log.answers = False
    before = len(spark.batches)
    spark.run_until(lambda: len(spark.batches) > before, within=5)
    assert stream.start["t/0"] > 40, "it is read before anybody knows what it is"
    log.answers = True
    spark.run_until(lambda: spark.figures.sources[0].phase, within=60)
    assert spark.figures.sources[0].phase
    spark.run_until(lambda: stream.pending == 0)
    spark.run_for(3)
    assert not spark.figures.sources[0].phase


def test_a_change_of_before_it_in_another_partition_does_not_end_a_second_snapshot() -> None:
    log = Log({"t/0": (10, 30), "t/1": (20, 50)})
    spark, stream = spark_with(log, control(10.0))
    spark.run_until(lambda: stream.pending == 0)
    spark.run_for(3)
    for rows in (50, 80, 95):
        log.parts["t/0"], stream.latest["t/0"] = (10, 30, rows), 40 + rows
        spark.run_for(5)
        assert stream.pending == 0
        for _ in range(10):
            spark.run_for(1)
            assert spark.figures.sources[0].phase, "all that there is of it was read, and more comes"
    log.parts["t/1"], stream.latest["t/1"] = (20, 60), 80
    spark.run_for(5)
    assert not spark.figures.sources[0].phase, "this one is of behind it"
    assert spark.figures.sources[0].snapshot_problem is None


def test_a_second_snapshot_takes_a_query_back_from_real_time_mode_until_it_is_over() -> None:
    log = Log({"t/0": (10, 30)})
    live = LiveControl(real_time=True, batch_seconds=60)
    spark, stream = spark_with(
        log, replace(control(10.0), live=live, reentry=ReentryControl(dwell_seconds=0))
    )
    spark.run_until(lambda: bool(spark.figures.real_time), within=60)
    assert not spark.figures.backlog
    log.parts["t/0"], stream.latest["t/0"] = (10, 30, 500_000, 7), 500_047
    spark.live_records_per_second = 1000
    spark.run_until(lambda: not spark.figures.real_time, within=300)
    assert spark.figures.sources[0].phase
    assert spark.figures.backlog
    assert 40 < stream.start["t/0"] < 500_040
    spark.run_until(lambda: bool(spark.figures.real_time), within=300)
    assert not spark.figures.sources[0].phase
    assert stream.pending == 0


def test_a_run_that_ends_by_itself_waits_for_the_answer_and_ends_with_all_read() -> None:
    log = Log({"t/0": (70, 30)}, answers=False)
    spark, _ = spark_with(log, trigger=Trigger(TriggerKind.AVAILABLE_NOW))
    spark.save = lambda _: None
    asked = 0

    def known(source: str, really: Callable[[str], Mapping[str, SnapshotEnd] | None] = log.known) -> object:
        nonlocal asked
        asked += 1
        if asked == 20:
            log.answer()
        return really(source)

    log.known = known  # type: ignore[method-assign, assignment]
    spark.run_until(lambda: spark.ended is not None, within=60)
    assert [sum(batch.records.values()) for batch in spark.batches] == [70, 30]
    assert spark.ended == "idle"


def test_what_does_not_tell_is_named() -> None:
    spark, stream = spark_with(Log({"t/0": (0, 30)}, told={"t/0": "it is no envelope"}))
    spark.run_until(lambda: stream.pending == 0)
    assert spark.figures.sources[0].snapshot_problem == "partition t/0: it is no envelope"


PARTS = st.lists(st.integers(1, 40), min_size=0, max_size=4).map(tuple)


@given(
    topic=st.dictionaries(st.sampled_from(["t/0", "t/1", "u/0"]), PARTS, min_size=1),
    most=st.sampled_from([7, 50, 10**8]),
    during=st.sampled_from([0.0, 30.0]),
    data=st.data(),
)
def test_whatever_a_log_holds_all_is_read_and_no_batch_that_spans_a_snapshot_goes_past_an_end(
    topic: dict[str, Sequence[int]], most: int, during: float, data: st.DataObject
) -> None:
    """From anywhere, with any number of snapshots, with answers that come now or later."""
    log = Log(topic)
    spark, stream = spark_with(log, control(during, most))
    stream.start = {partition: data.draw(st.integers(0, end)) for partition, end in stream.latest.items()}
    for _ in range(400):
        log.answers = data.draw(st.booleans()) if len(log.searched) < 20 else True
        before, inside = dict(stream.start), {s: log.end_behind(s, at) for s, at in stream.start.items()}
        was_known = {s: f.begin <= before[s] < f.end for s, f in log.found.items()}
        spark.round()
        answer = spark.answers["orders"]
        if during == 0 and isinstance(answer, TakeUpTo) and any(was_known.values()):
            over = {s: at for s, at in answer.ends.items() if was_known.get(s) and at > inside[s]}
            assert not over
        if stream.pending == 0:
            break
    assert stream.pending == 0


def test_while_it_cannot_tell_it_is_asked_for_what_is_there_now() -> None:
    log = Log({"t/0": (70, 30)}, answers=False, can_be_asked=False)
    spark, stream = spark_with(log)
    spark.run_until(lambda: stream.pending == 0)
    assert log.searched[0] == {"t/0": SearchRange(0, 100)}
    spark.run_for(3)
    assert log.searched[-1] == {}
    log.can_be_asked = log.answers = True
    log.parts["t/0"] = (70, 30, 50, 10)
    stream.latest["t/0"] = 160
    spark.run_until(lambda: len(spark.batches) == 2)
    assert stream.start == {"t/0": 150}


def test_partitions_that_are_gone_are_dropped() -> None:
    log = Log({"t/0": (0, 30), "t/1": (0, 50)})
    spark, stream = spark_with(log)
    spark.run_until(lambda: stream.pending == 0)
    assert log.found.keys() == {"t/0", "t/1"}
    del stream.latest["t/1"], stream.start["t/1"]
    spark.run_for(3)
    assert log.found.keys() == {"t/0"}
