"""Topics that are deleted and created anew under their names: known by their ids, whatever their offsets are."""

from __future__ import annotations

import json
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Future
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest
from structlog.testing import capture_logs

from headgate_contract import QueryControl, SourceControl
from headgate_spark.engine import run as run_module
from headgate_spark.engine import topics as module
from headgate_spark.engine.changed_logs import PATIENCE_SECONDS
from headgate_spark.engine.queries import Started
from headgate_spark.engine.resumption import Resumption
from headgate_spark.engine.sources import Descriptor
from headgate_spark.engine.topics import EVERY_SECONDS, EVERY_SECONDS_PER_TOPIC
from headgate_spark.planner.model import Trigger, TriggerKind
from support.asked import admit, plan
from support.engine import a_run

QUERY = {"id": "11-22", "runId": "33-44", "name": "delays"}


class AtOnce:
    """A thread that has done what it is given before it is given more; or does nothing, while it is `stuck`."""

    stuck = False
    late: ClassVar[list[Callable[[], None]]] = []
    """What it was given while it was stuck."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def submit(self, work: Callable[[], object]) -> Future[Any]:
        done: Future[Any] = Future()

        def do() -> None:
            try:
                done.set_result(work())
            except Exception as error:
                done.set_exception(error)

        self.late.append(do) if self.stuck else do()
        return done

    def shutdown(self, **_: object) -> None:
        pass


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[AtOnce]]:
    monkeypatch.setattr(module, "ThreadPoolExecutor", AtOnce)
    monkeypatch.setattr(run_module, "BUDGET_SECONDS", 0.0)
    yield AtOnce
    AtOnce.stuck = False
    AtOnce.late.clear()


class FakeStore:
    def __init__(self) -> None:
        self.value: Any = None
        self.saves = 0

    def load(self) -> Any:
        return self.value

    def save(self, value: Any) -> None:
        self.value, self.saves = deepcopy(value), self.saves + 1


@dataclass
class FakeCheckpoint:
    hybrid: FakeStore = field(default_factory=FakeStore)
    batches: FakeStore = field(default_factory=FakeStore)
    topics: FakeStore = field(default_factory=FakeStore)
    batch: int | None = None

    def resumption(self) -> Resumption:
        return Resumption(self.batch)


class Kafka:
    """A cluster: the ids of its topics, and how often it was asked for them."""

    def __init__(self, **ids: str) -> None:
        self.ids_now = ids
        self.cluster = "c1"
        self.questions = 0
        self.open = 0
        self.fails = False

    def connect(self, _: Mapping[str, str]) -> Kafka:
        self.open += 1
        return self

    def ids(self, topics: Collection[str]) -> dict[str, tuple[str, str]]:
        self.questions += 1
        if self.fails:
            raise OSError("not authorized")
        return {topic: (self.cluster, self.ids_now[topic]) for topic in topics if topic in self.ids_now}

    def close(self) -> None:
        self.open -= 1


class Query:
    """A query of topics, asked as Spark would at times in seconds."""

    def __init__(
        self,
        kafka: Kafka,
        checkpoint: FakeCheckpoint,
        *,
        paused: bool = False,
        trigger: TriggerKind = TriggerKind.PROCESSING_TIME,
        **options: str,
    ) -> None:
        self.now = 0.0
        started = Started(Trigger(trigger), True)
        self.run = a_run(
            "delays", checkpoint, started=started, clock=lambda: self.now, open_topic_ids=kafka.connect
        )
        self.run.state.resume(None, with_topics=True)
        sources = {"orders": SourceControl(paused=paused)}
        self.run.take_control(QueryControl(interval_seconds=0, sources=sources))
        self.run.open(descriptor(1, subscribe="orders", **options))

    def ask(self, at: float, start: Mapping[str, int], latest: Mapping[str, int] | None) -> str:
        """Return the answer; offsets are those of `orders/0` and the like, `None`: the broker does not answer."""
        self.now = at
        answer = admit(self.run, 1, _json(start))
        told = None if latest is None else _json(latest)
        return plan(self.run, 1, {"1": told}) if answer == "survey:1" else answer


def descriptor(handle: int, **options: str) -> Descriptor:
    members = {"handle": handle, "query": QUERY, "checkpoint": "file:/ck", "api": "v2", "format": "kafka"}
    return Descriptor.parse(json.dumps({**members, "options": options}))


def _json(position: Mapping[str, int]) -> str:
    nested: dict[str, dict[str, int]] = {}
    for partition, offset in position.items():
        topic, _, number = partition.partition("/")
        nested.setdefault(topic, {})[number] = offset
    return json.dumps(nested, separators=(",", ":"))


def orders(offset: int) -> dict[str, int]:
    return {"orders/0": offset}


def offset(end: int) -> str:
    return "offset:" + _json(orders(end))


ANEW = (
    "fail:query delays: source orders: orders/0 ends at offset {end} and was read up to 100: topic orders was "
    "created anew; start from a new checkpoint, or let the job go on from there (option failOnDataLoss=false)"
)


@pytest.fixture
def kafka() -> Kafka:
    return Kafka(orders="a")


@pytest.fixture
def checkpoint(kafka: Kafka) -> FakeCheckpoint:
    """One in which a run has read 100 records of the topic."""
    checkpoint = FakeCheckpoint()
    assert Query(kafka, checkpoint).ask(0, orders(0), orders(100)) == offset(100)
    checkpoint.batch = 0
    return checkpoint


def test_a_topic_that_is_another_since_the_last_run_ends_the_query_however_far_it_has_grown(
    kafka: Kafka, checkpoint: FakeCheckpoint
):
    kafka.ids_now["orders"] = "b"
    assert Query(kafka, checkpoint).ask(0, orders(100), orders(150)) == ANEW.format(end=150)
    assert Query(kafka, checkpoint).ask(0, orders(100), orders(100)) == ANEW.format(end=100)
    assert Query(kafka, checkpoint).ask(0, orders(100), orders(40)) == ANEW.format(end=40)


def test_one_that_is_the_same_is_read_on(kafka: Kafka, checkpoint: FakeCheckpoint):
    assert Query(kafka, checkpoint).ask(0, orders(100), orders(150)) == offset(150)
    assert checkpoint.topics.saves == 1


def test_it_is_noticed_within_seconds_while_the_query_runs(kafka: Kafka, checkpoint: FakeCheckpoint):
    query = Query(kafka, checkpoint)
    assert query.ask(0, orders(100), orders(110)) == offset(110)
    kafka.ids_now["orders"] = "b"
    assert query.ask(EVERY_SECONDS - 0.1, orders(110), orders(150)) == offset(150)
    assert "topic orders was created anew" in query.ask(EVERY_SECONDS, orders(150), orders(160))
    assert kafka.questions == 3


def test_it_is_noticed_at_once_when_the_source_could_not_be_asked_meanwhile(
    kafka: Kafka, checkpoint: FakeCheckpoint
):
    query = Query(kafka, checkpoint)
    query.ask(0, orders(100), orders(100))
    query.ask(1, orders(100), None)
    kafka.ids_now["orders"] = "b"
    assert query.ask(2, orders(100), orders(150)) == ANEW.format(end=150)


@pytest.mark.parametrize("failure", ["", "UnknownTopicOrPartitionException: This server does not host it"])
def test_it_is_noticed_at_once_when_it_was_out_of_reach_between_two_plannings(
    kafka: Kafka, checkpoint: FakeCheckpoint, failure: str
):
    """The shim looks at an idle source by itself, and tells that it cannot be asked, or says nothing for long."""
    query = Query(kafka, checkpoint)
    query.ask(0, orders(100), orders(100))
    query.run.sources[1].outage("delays", failure)
    kafka.ids_now["orders"] = "b"
    query.run.sources[1].outage("delays", None)
    assert query.ask(2, orders(100), orders(150)) == ANEW.format(end=150)


def test_it_is_noticed_at_once_when_the_topic_was_gone_meanwhile(kafka: Kafka, checkpoint: FakeCheckpoint):
    kafka.ids_now["refunds"] = "r"
    query = Query(kafka, checkpoint)
    both, one = {**orders(100), "refunds/0": 0}, {"refunds/0": 0}
    query.ask(0, both, both)
    query.ask(1, both, one)
    kafka.ids_now["orders"] = "b"
    assert query.ask(2, both, {**one, **orders(150)}) == ANEW.format(end=150)


def test_a_run_that_ends_by_itself_fails_too(kafka: Kafka, checkpoint: FakeCheckpoint):
    kafka.ids_now["orders"] = "b"
    query = Query(kafka, checkpoint, trigger=TriggerKind.AVAILABLE_NOW)
    assert query.ask(0, orders(100), orders(150)) == ANEW.format(end=150)


def test_a_job_that_does_not_fail_on_data_loss_is_told_once_and_goes_on_where_it_was(
    kafka: Kafka, checkpoint: FakeCheckpoint
):
    kafka.ids_now["orders"] = "b"
    query = Query(kafka, checkpoint, failOnDataLoss="false")
    with capture_logs() as told:
        assert query.ask(0, orders(100), orders(150)) == offset(150)
        assert query.ask(1, orders(150), orders(160)) == offset(160)
        assert Query(kafka, checkpoint).ask(0, orders(160), orders(170)) == offset(170)
    assert ["topic orders was created anew" in line["problem"] for line in told if "problem" in line] == [
        True
    ]


def test_it_goes_on_from_the_end_at_once_where_the_new_topic_is_shorter(
    kafka: Kafka, checkpoint: FakeCheckpoint
):
    kafka.ids_now["orders"] = "b"
    query = Query(kafka, checkpoint, failOnDataLoss="false")
    assert query.ask(0, orders(100), orders(40)) == offset(40)
    assert query.ask(1, orders(40), orders(50)) == offset(50)


def test_of_what_was_never_read_nothing_can_be_lost(kafka: Kafka, checkpoint: FakeCheckpoint):
    kafka.ids_now["orders"] = "b"
    query = Query(kafka, checkpoint)
    assert query.ask(0, orders(0), orders(150)) == offset(150)
    assert Query(kafka, checkpoint).ask(0, orders(150), orders(160)) == offset(160)


def test_a_topic_of_another_cluster_is_no_topic_that_was_created_anew(
    kafka: Kafka, checkpoint: FakeCheckpoint
):
    """Who moves a topic with its offsets goes on with the same checkpoint."""
    kafka.ids_now["orders"], kafka.cluster = "b", "c2"
    assert Query(kafka, checkpoint).ask(0, orders(100), orders(150)) == offset(150)


def test_what_is_kept_of_another_checkpoint_in_the_same_place_does_not_count(
    kafka: Kafka, checkpoint: FakeCheckpoint
):
    kafka.ids_now["orders"], checkpoint.batch = "b", None
    assert Query(kafka, checkpoint).ask(0, orders(100), orders(150)) == offset(150)


def test_a_paused_source_is_left_alone(kafka: Kafka, checkpoint: FakeCheckpoint):
    kafka.ids_now["orders"] = "b"
    query = Query(kafka, checkpoint, paused=True)
    assert not query.ask(0, orders(100), orders(150)).startswith("fail:")


def test_topics_that_come_and_grow_are_no_others(kafka: Kafka, checkpoint: FakeCheckpoint):
    query = Query(kafka, checkpoint)
    query.ask(0, orders(100), orders(100))
    kafka.ids_now["refunds"] = "r"
    latest = {**orders(100), "orders/1": 5, "refunds/0": 5}
    assert not query.ask(1, orders(100), latest).startswith("fail:")
    assert checkpoint.topics.load() == {"orders": {"orders": ("c1", "a"), "refunds": ("c1", "r")}}


class Alignment:
    """Notes of which sources the event times are forgotten; all are members of a group."""

    def __init__(self) -> None:
        self.forgotten: list[str] = []
        self.part = self

    def is_member(self, _: str) -> bool:
        return True

    def forget(self, source: str) -> None:
        self.forgotten.append(source)


def test_event_times_of_a_topic_that_is_another_are_forgotten_though_nothing_of_it_was_read(kafka: Kafka):
    query, alignment = Query(kafka, FakeCheckpoint()), Alignment()
    query.ask(0, orders(0), orders(150))
    query.run.records = query.run.sources.records = alignment  # type: ignore[assignment]
    query.ask(EVERY_SECONDS, orders(0), orders(150))
    assert alignment.forgotten == []
    kafka.ids_now["orders"] = "b"
    query.ask(2 * EVERY_SECONDS, orders(0), orders(150))
    query.ask(2 * EVERY_SECONDS + 1, orders(0), orders(150))
    assert alignment.forgotten == ["orders"]


@pytest.mark.parametrize(("aligned", "end"), [(False, 80), (True, 50)])
def test_a_member_of_a_group_only_goes_back_where_its_end_was_found_in_the_old_log(aligned: bool, end: int):
    query = Query(Kafka(), FakeCheckpoint(), failOnDataLoss="false")
    start = {"orders/0": 100, "orders/1": 50}
    query.ask(0, start, {"orders/0": 40, "orders/1": 50})
    if aligned:
        query.run.records = query.run.sources.records = Alignment()  # type: ignore[assignment]
    answer = query.ask(PATIENCE_SECONDS, start, {"orders/0": 40, "orders/1": 80})
    assert answer == "offset:" + _json({"orders/0": 40, "orders/1": end})


def test_what_all_sources_wait_for_in_one_planning_ends_at_one_moment():
    query = Query(Kafka(), FakeCheckpoint())
    query.run.open(descriptor(2, subscribe="returns"))
    deadlines: list[float] = []

    class Awaited:
        """Does not know yet where partitions begin."""

        def completed(self, start: Mapping[str, int]) -> Mapping[str, int]:
            return start

        def are_settled(self, start: object, latest: object, deadline: float) -> bool:
            deadlines.append(deadline)
            return False

    for opened in query.run.sources:
        opened.beginnings = Awaited()  # type: ignore[assignment]
    for handle in (1, 2):
        admit(query.run, handle, _json({"orders/0": 0}))
    plan(query.run, 2, {"1": _json({"orders/0": 5}), "2": _json({"orders/0": 5})})
    assert len(deadlines) == 2
    assert len(set(deadlines)) == 1


class Begun:
    """Knows that `orders/2` begins at 7."""

    def completed(self, start: Mapping[str, int]) -> dict[str, int]:
        return {"orders/2": 7, **start}

    def are_settled(self, *_: object) -> bool:
        return True


def test_and_a_partition_that_has_just_appeared_is_not_taken_whole_for_it():
    query = Query(Kafka(), FakeCheckpoint(), failOnDataLoss="false")
    query.run.sources[1].beginnings = Begun()  # type: ignore[assignment]
    start, latest = {"orders/0": 100, "orders/1": 50}, {"orders/0": 40, "orders/1": 80, "orders/2": 30}
    query.ask(0, start, {"orders/0": 40, "orders/1": 50})
    query.run.records = query.run.sources.records = Alignment()  # type: ignore[assignment]
    assert query.ask(PATIENCE_SECONDS, start, latest) == "offset:" + _json(
        {**start, "orders/0": 40, "orders/2": 7}
    )


@pytest.mark.parametrize("unknown", ["it has none", "it fails", "it is late"])
def test_an_id_that_is_not_known_changes_nothing(
    kafka: Kafka, checkpoint: FakeCheckpoint, at_once: type[AtOnce], unknown: str
):
    ids, kafka.ids_now = {"orders": "b"}, {"orders": "b"}
    match unknown:
        case "it has none":
            kafka.ids_now = {}
        case "it fails":
            kafka.fails = True
        case _:
            at_once.stuck = True
    query = Query(kafka, checkpoint)
    assert query.ask(0, orders(100), orders(150)) == offset(150)
    assert checkpoint.topics.load() == {"orders": {"orders": ("c1", "a")}}
    kafka.ids_now, kafka.fails, at_once.stuck = ids, False, False
    query.run.sources[1].topics.lost_sight()  # type: ignore[union-attr]
    assert "was created anew" in query.ask(1, orders(150), orders(160))


def test_ids_that_nobody_waits_for_are_kept_while_the_first_batch_runs(
    kafka: Kafka, at_once: type[AtOnce], monkeypatch: pytest.MonkeyPatch
):
    def nobody_waits(*_: object) -> None:
        raise AssertionError("a planning waits though there is nothing to compare")

    at_once.stuck, checkpoint = True, FakeCheckpoint()
    with monkeypatch.context() as patched:
        patched.setattr(module, "wait", nobody_waits)
        assert Query(kafka, checkpoint).ask(0, orders(0), orders(100)) == offset(100)
    assert checkpoint.topics.load() is None
    for work in at_once.late:
        work()
    assert checkpoint.topics.load() == {"orders": {"orders": ("c1", "a")}}
    checkpoint.batch, kafka.ids_now["orders"], at_once.stuck = 0, "b", False
    assert Query(kafka, checkpoint).ask(0, orders(100), orders(150)) == ANEW.format(end=150)


def test_ids_that_come_when_the_run_has_ended_are_not_kept(kafka: Kafka, at_once: type[AtOnce]):
    at_once.stuck, checkpoint = True, FakeCheckpoint()
    query = Query(kafka, checkpoint)
    query.ask(0, orders(0), orders(100))
    query.run.close()
    for work in at_once.late:
        work()
    assert checkpoint.topics.saves == 0


def test_many_topics_are_asked_about_less_often():
    kafka = Kafka(**{f"orders{n}": "a" for n in range(200)})
    query = Query(kafka, FakeCheckpoint())
    many = {f"orders{n}/0": 0 for n in range(200)}
    for second in range(round(200 * EVERY_SECONDS_PER_TOPIC)):
        query.ask(second, many, many)
    assert kafka.questions == 1


def test_a_store_that_fails_does_not_keep_the_query_from_running(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch
):
    def fail(_: object) -> None:
        raise OSError("no space")

    checkpoint = FakeCheckpoint()
    monkeypatch.setattr(checkpoint.topics, "save", fail)
    with capture_logs() as told:
        assert Query(kafka, checkpoint).ask(0, orders(0), orders(100)) == offset(100)
    (line,) = told
    assert "(no space)" in line["problem"]


def test_a_run_that_ends_gives_its_client_back(kafka: Kafka, checkpoint: FakeCheckpoint):
    query = Query(kafka, checkpoint)
    before = kafka.open
    query.ask(0, orders(100), orders(100))
    assert kafka.open == before + 1
    query.run.close()
    assert kafka.open == before


def test_a_client_that_was_given_back_is_held_no_longer_though_its_run_is_kept(
    kafka: Kafka, checkpoint: FakeCheckpoint
):
    clients: list[weakref.ref[Kafka]] = []

    def connect(_: Mapping[str, str]) -> Kafka:
        client = Kafka(orders="a")
        clients.append(weakref.ref(client))
        return client

    kafka.connect = connect  # type: ignore[method-assign]
    query = Query(kafka, checkpoint)
    query.ask(0, orders(100), orders(100))
    assert [client() is None for client in clients] == [False]
    query.run.close()
    assert query.run is not None
    assert [client() is None for client in clients] == [True]
