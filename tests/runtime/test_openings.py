"""A stream is opened once, however often, late and at once the shim asks for it."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_contract import ControlDocument, QueryControl, SourceControl
from headgate_spark.engine.checkpoint import CheckpointInUseError
from headgate_spark.engine.governor import Governor
from headgate_spark.engine.resumption import Ends, Resumption
from headgate_spark.engine.run_table import Openings, StillUnderWayError
from headgate_spark.engine.services import Services
from headgate_spark.engine.sources import Descriptor, names_of
from support.asked import admit, plan
from support.engine import Lock, Locks, MadeUpCheckpoint, Unmeasured, begins, described
from support.waiting import wait_until

TOPICS = ("orders", "returns")
DEADLINE_SECONDS = 60.0


@dataclass(frozen=True)
class Calls:
    """What the shim asks of the streams of one query: at once within a round, and round after round."""

    topics: list[str]
    """Of the streams, whose handles count from 1."""
    rounds: list[list[int]]


@st.composite
def calls(draw: st.DrawFn) -> Calls:
    """Every stream is asked for at least once; any may be late, lost, doubled and out of order."""
    topics = draw(st.lists(st.sampled_from(TOPICS), min_size=1, max_size=4))
    handles = range(1, len(topics) + 1)
    again = draw(st.lists(st.sampled_from(handles), max_size=6))
    asked = draw(st.permutations([*handles, *again]))
    cuts = sorted(draw(st.sets(st.integers(1, len(asked)), max_size=3)))
    ends = [0, *cuts, len(asked)]
    return Calls(topics, [asked[a:b] for a, b in pairwise(ends) if a < b])


class Gathering:
    """Keeps whoever makes a run waiting until all calls of the round are out."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._out = 0

    def begin(self, size: int) -> None:
        with self._changed:
            self._out = size

    def arrive(self) -> None:
        with self._changed:
            self._out -= 1
            self._changed.notify_all()

    def wait(self) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self._out == 0, DEADLINE_SECONDS)


def ask(governor: Governor, gathering: Gathering, handle: int, topic: str) -> str:
    gathering.arrive()
    return governor.opened(handle, described(handle, topic=topic))


@given(asked=calls(), is_local=st.booleans())
def test_whatever_is_asked_late_twice_or_at_once_there_is_one_run_whose_names_follow_from_its_streams(
    asked: Calls, is_local: bool
) -> None:
    locks, gathering, made = Locks(), Gathering(), []

    def open_checkpoint(described: Descriptor) -> MadeUpCheckpoint:
        location = described.checkpoint
        made.append(location)
        return MadeUpCheckpoint(gathering.wait)

    governor = Governor(
        Services(
            acquire_lock=locks.acquire if is_local else lambda _: None,
            open_checkpoint=open_checkpoint,
            observer=Unmeasured(),
        )
    )
    paused = {"orders": SourceControl(paused=True)}
    governor.take_document(ControlDocument(generation=1, queries={"copy": QueryControl(sources=paused)}))
    begins(governor)
    with ThreadPoolExecutor(12) as threads:
        for at_once in asked.rounds:
            gathering.begin(len(at_once))
            answers = [
                threads.submit(ask, governor, gathering, handle, asked.topics[handle - 1])
                for handle in at_once
            ]
            assert {answer.result(DEADLINE_SECONDS) for answer in answers} == {"ok"}
    assert governor.endings.checkpoint_in_use is None
    assert len(made) == 1
    (run,) = governor.runs
    descriptors = [Descriptor.parse(described(n, topic=topic)) for n, topic in enumerate(asked.topics, 1)]
    names = {handle: opened.name for handle, opened in run.sources.by_handle.items()}
    assert list(names.items()) == list(names_of(descriptors).items())
    assert {opened.descriptor.options["subscribe"] for opened in run.sources} == set(asked.topics)
    for handle, name in names.items():
        admit(governor, handle, json.dumps({asked.topics[handle - 1]: {"0": 5}}))
        figures = run.figures()
        assert figures is not None
        (standing,) = (source for source in figures.sources if source.name == name)
        assert standing.paused == (name == "orders")


def test_while_a_file_system_is_slow_whoever_asks_again_is_told_to_and_nobody_else_waits() -> None:
    locks, answers, made = Locks(), threading.Event(), []

    def open_checkpoint(described: Descriptor) -> MadeUpCheckpoint:
        location = described.checkpoint
        made.append(location)
        if location == "s3a://b/slow":
            assert answers.wait(DEADLINE_SECONDS)
        return MadeUpCheckpoint()

    governor = Governor(
        Services(acquire_lock=locks.acquire, open_checkpoint=open_checkpoint, observer=Unmeasured())
    )
    governor._openings = Openings(wait_seconds=0.01)
    slow = described(1, checkpoint="s3a://b/slow")
    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(governor.opened, 1, slow)
        wait_until(lambda: bool(made), "the first call")
        for _ in range(3):
            with pytest.raises(StillUnderWayError, match="its file system is slow to answer"):
                governor.opened(1, slow)
        other = described(2, query="totals", run="r2", checkpoint="s3a://b/quick")
        assert governor.opened(2, other) == "ok"
        governor.take_document(ControlDocument(generation=1))
        assert [run.name for run in governor.runs] == ["totals"]
        answers.set()
        assert first.result(DEADLINE_SECONDS) == "ok"
    assert governor.opened(1, slow) == "ok"
    assert made == ["s3a://b/slow", "s3a://b/quick"]
    assert [opened.name for run in governor.runs for opened in run.sources] == ["orders"] * 2


def test_a_run_that_cannot_be_made_leaves_no_lock_behind() -> None:
    locks, fails = Locks(), [True]

    def open_checkpoint(described: Descriptor) -> MadeUpCheckpoint:
        if fails.pop():
            raise OSError("No FileSystem for scheme s3a")
        return MadeUpCheckpoint()

    governor = Governor(
        Services(acquire_lock=locks.acquire, open_checkpoint=open_checkpoint, observer=Unmeasured())
    )
    with pytest.raises(OSError, match="No FileSystem"):
        governor.opened(1, described(1))
    fails.append(False)
    assert governor.opened(1, described(1)) == "ok"


def test_a_run_that_spark_has_ended_already_is_waited_for_and_one_that_goes_on_is_named() -> None:
    """Whoever starts a query again as it begins would find its checkpoint in use, and have no query at all."""
    running = {"r1"}

    class OwnLocks(Locks):
        def acquire(self, checkpoint: str) -> Lock:
            try:
                return super().acquire(checkpoint)
            except CheckpointInUseError:
                raise CheckpointInUseError("in use by another query", by_this_driver=True) from None

    governor = Governor(
        Services(
            acquire_lock=OwnLocks().acquire,
            open_checkpoint=lambda _: MadeUpCheckpoint(),
            observer=Unmeasured(),
            running=lambda: running,
        )
    )
    assert governor.opened(1, described(1)) == "ok"
    assert governor.opened(2, described(2, run="r2")) == "refuse:in use by another query"
    running.clear()
    with pytest.raises(StillUnderWayError, match="s3a://b/ck before is still being ended"):
        governor.opened(2, described(2, run="r2"))
    assert governor.opened(2, described(2, run="r2")) == "ok", (
        "though nobody has told of the end of the other"
    )
    assert [run.run_id for run in governor.runs] == ["r2"]


def test_a_stream_that_is_told_of_after_the_first_planning_is_planned_as_well() -> None:
    governor = Governor(
        Services(
            acquire_lock=lambda _: None, open_checkpoint=lambda _: MadeUpCheckpoint(), observer=Unmeasured()
        )
    )
    governor.take_document(ControlDocument(generation=1, queries={"copy": QueryControl(interval_seconds=1)}))
    begins(governor)
    governor.opened(2, described(2))
    admit(governor, 2, '{"orders":{"0":5}}')
    governor.opened(1, described(1, topic="returns"))
    assert admit(governor, 1, '{"returns":{"0":5}}').startswith("survey:")
    assert [source.name for source in governor.runs[0].figures().sources] == ["returns", "orders"]  # type: ignore[union-attr]


def test_a_stream_that_is_told_of_before_others_goes_on_where_it_was_itself() -> None:
    checkpoint = MadeUpCheckpoint()
    offsets = {topic: json.dumps({topic: {"0": n}}) for n, topic in enumerate(TOPICS, 5)}
    checkpoint.left = Resumption(3, False, Ends(tuple(offsets.values())))
    governor = Governor(
        Services(acquire_lock=lambda _: None, open_checkpoint=lambda _: checkpoint, observer=Unmeasured())
    )
    governor.take_document(ControlDocument(generation=1, queries={"copy": QueryControl(interval_seconds=1)}))
    second, first = described(2, topic="returns", index=1), described(1, topic="orders", index=0)
    begins(governor)
    assert governor.opened(2, second) == f"resume:{offsets['returns']}"
    admit(governor, 2, offsets["returns"])
    report = {
        "batchId": 4,
        "durationMs": {"triggerExecution": 5, "addBatch": 4},
        "sources": [{"numInputRows": 100}, {"numInputRows": 7}],
    }
    governor.progressed("r1", json.dumps(report))
    admit(governor, 2, offsets["returns"])
    (source,) = governor.runs[0].figures().sources  # type: ignore[union-attr]
    assert (source.name, source.processed_records_total) == ("returns", 7)
    assert governor.opened(1, first) == f"resume:{offsets['orders']}"


def at(topic: str, offset: int) -> str:
    return json.dumps({topic: {"0": offset}})


def twice(checkpoint: MadeUpCheckpoint) -> Governor:
    """A query whose plan reads its first topic in two places."""
    governor = Governor(
        Services(acquire_lock=lambda _: None, open_checkpoint=lambda _: checkpoint, observer=Unmeasured())
    )
    governor.take_document(ControlDocument(generation=1, queries={"copy": QueryControl(interval_seconds=1)}))
    begins(governor, sources=[0, 0, 1])
    for handle, topic in enumerate(TOPICS):
        governor.opened(handle, described(handle, topic=topic, index=handle))
    return governor


def counted(governor: Governor, batch: int, *rows: int) -> dict[str, int]:
    """Tell of a batch, and return what is counted by then."""
    took = {"triggerExecution": 5, "addBatch": 4}
    report = {"batchId": batch, "durationMs": took, "sources": [{"numInputRows": n} for n in rows]}
    governor.progressed("r1", json.dumps(report))
    admit(governor, 0, at("orders", 30))
    figures = governor.runs[0].figures()
    assert figures is not None
    return {source.name: source.processed_records_total for source in figures.sources}


@pytest.mark.parametrize(("told", "orders"), [(60, 30), (30, 30), (24, 12), (90, 30)])
def test_of_a_stream_that_a_plan_reads_twice_each_record_counts_once(told: int, orders: int) -> None:
    """Of 30 offsets, of which some may have no record.

    Where the plan uses one shuffle in both places, Spark reads it once, and counts it once.
    """
    governor = twice(MadeUpCheckpoint())
    latest = {str(handle): at(topic, n) for handle, topic, n in zip((0, 1), TOPICS, (30, 70), strict=True)}
    for _ in range(2):
        for handle, topic in enumerate(TOPICS):
            if admit(governor, handle, at(topic, 0)).startswith("survey:"):
                plan(governor, handle, json.dumps(latest))
    assert counted(governor, 0, told, 70) == {"orders": orders, "returns": 70}


@pytest.mark.parametrize(
    ("begin", "counts"),
    [
        pytest.param(10, {"orders": 20, "returns": 40}, id="as usual"),
        pytest.param(None, {"orders": 20, "returns": 80}, id="nothing tells where it begins"),
        pytest.param(500, {"orders": 0, "returns": 0}, id="its topics were created anew"),
    ],
)
def test_so_it_is_in_a_batch_that_runs_again_after_a_restart(
    begin: int | None, counts: dict[str, int]
) -> None:
    checkpoint = MadeUpCheckpoint()
    ends = [Ends((at("orders", n), at("orders", n), at("returns", 2 * n)) if n else ()) for n in (30, begin)]
    checkpoint.left = Resumption(3, True, *ends)
    assert counted(twice(checkpoint), 3, 40, 80) == counts


def test_a_run_that_has_ended_meanwhile_opens_nothing_more() -> None:
    governor = Governor(
        Services(
            acquire_lock=lambda _: None, open_checkpoint=lambda _: MadeUpCheckpoint(), observer=Unmeasured()
        )
    )
    governor.opened(1, described(1))
    (run,) = governor.runs
    governor.closed(1, None)
    with pytest.raises(RuntimeError, match="this run of query copy has ended"):
        run.open(Descriptor.parse(described(2)))


@pytest.mark.parametrize(
    ("policy", "kept", "delay"),
    [("min", None, 60.0), ("max", None, 5.0), ("max", True, 60.0), ("min", False, 5.0)],
)
def test_the_checkpoint_says_which_of_several_watermarks_counts(
    policy: str, kept: bool | None, delay: float
) -> None:
    """Spark takes the policy of a checkpoint whatever the session says now, and warns."""
    checkpoint = MadeUpCheckpoint()
    checkpoint.left = Resumption(3, takes_least=kept)
    governor = Governor(
        Services(acquire_lock=lambda _: None, open_checkpoint=lambda _: checkpoint, observer=Unmeasured())
    )
    watermark = "EventTimeWatermark 9f-{}, ts#{}: timestamp, {} seconds"
    plan = "\n".join(watermark.format(number, number, seconds) for number, seconds in enumerate((5, 60)))
    begins(governor, plan=plan, watermarkPolicy=policy)
    governor.opened(1, described(1))
    assert governor.runs[0].watermarks.delay == delay
