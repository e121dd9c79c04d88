"""Every kind of job, unmodified, with every feature: what is governed has the results of what is not.

Per kind one driver runs all features side by side, a query each, and is then told to end while one of them is in
mid-batch. A second one, without the property, goes on from the same checkpoints, and reads everything once more from
the beginning besides, as a job does that never knew of Headgate.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest
from laws.cover import audit_checkpoints
from prometheus_client.samples import Sample

from headgate.reconcile.metric_table import BY_SAMPLE
from headgate_contract import (
    AlignmentControl,
    BatchControl,
    ControlDocument,
    QueryControl,
    RateControl,
    SourceControl,
)
from headgate_contract.receiving import write
from support import looping
from support.kafka import Broker
from support.kafka_records import Record, send
from support.kinds import KINDS, USERS, Connect, Kind, Query, batches, committed, planned, read_by, rows
from support.waiting import wait_until

pytestmark = pytest.mark.spark

START_MS = 1_700_000_000_000
DRIFT_SECONDS = 20
AHEAD_SECONDS = 100
"""How much later than the other topic the second aligned one begins."""
LATER = 10
"""Records of each topic that come while nothing governs."""
RECORDS = {
    "live": 60,
    "backlog": 500,
    "rate": 200,
    "slow": 300,
    "early": 200,
    "late": 200,
    "first": 100,
    "second": 100,
}
TOPICS = {
    "live": ("live",),
    "backlog": ("backlog",),
    "rate": ("rate",),
    "aligned": ("early", "late"),
    "ordered": ("first", "second"),
    "slow": ("slow",),
}
MILLIS_PER_RECORD = {"slow": 30}
WAIT_SECONDS = 300.0
LARGEST_BATCH, LONG_BATCH = 50, 20
"""Records in a batch of the slow query: what it may have, and what takes long enough to be stopped in it."""
STEP = 20
"""Records that the live topic has at first, and gets each time when all before have been committed."""


@dataclass
class Course:
    """What one kind of job has done."""

    kind: Kind
    queries: Mapping[str, Query]
    plain: Mapping[str, Query]
    topics: Mapping[str, str]
    stopped_in: int = -1
    """The batch in which the slow query was when the driver was told to end."""
    after_stop: Mapping[str, tuple[list[int], list[int]]] = field(default_factory=dict)
    """Of each query the planned and the committed batches then."""
    batches: Mapping[str, list[list[tuple[str, int]]]] = field(default_factory=dict)
    """Of each governed query what each batch with data has written: the roles and numbers of the records."""
    governed: Mapping[str, list[tuple[str, str]]] = field(default_factory=dict)
    """Of each query all its rows in the end."""
    ungoverned: Mapping[str, list[tuple[str, str]]] = field(default_factory=dict)
    log: str = ""
    metrics: Sequence[Sample] = ()
    """What was told before the end."""


@pytest.fixture(scope="module", params=KINDS)
def outcome(
    request: pytest.FixtureRequest, kafka: Broker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Course | AssertionError]:
    """What has come of a kind; of one that has failed, why: else each of its tests would try it again."""
    folder = tmp_path_factory.mktemp(request.param)
    kind = KINDS[request.param](folder, kafka.bootstrap)
    topics = {role: kafka.topic(f"{request.param}-{role}") for role in RECORDS}
    for role, count in RECORDS.items():
        grows = role == "live" and not kind.ends_by_itself
        fill(kafka, topics, role, range(STEP if grows else count))
    try:
        yield run(kind, kafka, topics)
    except AssertionError as failure:
        yield failure
    finally:
        kind.kill()


@pytest.fixture
def course(outcome: Course | AssertionError) -> Course:
    if isinstance(outcome, AssertionError):
        raise outcome
    return outcome


def run(kind: Kind, kafka: Broker, topics: Mapping[str, str]) -> Course:
    """Run a kind's job, governed and then not."""
    folder = kind.folder
    queries = {
        name: Query(name, tuple(topics[role] for role in roles), MILLIS_PER_RECORD.get(name, 0), folder)
        for name, roles in TOPICS.items()
    }
    plain = {name: replace(query, name=f"plain_{name}") for name, query in queries.items()}
    course = Course(kind, queries, plain, topics)
    kind.more = {"spark.master": "local[8]"}  # the slow query's task keeps nobody waiting
    control(course, slow=SourceControl(rate_limit=RateControl(records_per_second=1, max_burst_seconds=1)))
    document = {"spark.headgate.control": str(folder / "control.json"), "spark.headgate.metrics.port": "0"}
    kind.start(list(queries.values()), document)
    if not kind.ends_by_itself:
        for so_far in range(STEP, RECORDS["live"], STEP):
            await_rows(course, {"live": so_far})
            fill(kafka, topics, "live", range(so_far, so_far + STEP))
    await_rows(course, {n: sum(RECORDS[role] for role in TOPICS[n]) for n in TOPICS if n != "slow"})
    course.metrics = kind.metrics()
    control(course, slow=at_most(LARGEST_BATCH))
    course.stopped_in = await_mid_batch(course)
    kind.stop()
    course.log = kind.log
    course.after_stop = {
        name: (planned(kind, query), committed(kind, query)) for name, query in queries.items()
    }
    course.batches = {name: written(course, query) for name, query in queries.items()}
    kind.kill()

    for role, count in RECORDS.items():
        fill(kafka, topics, role, range(count, count + LATER))
    kind.start([*queries.values(), *plain.values()], {})
    total = {name: sum(RECORDS[role] + LATER for role in roles) for name, roles in TOPICS.items()}
    await_rows(course, total | {f"plain_{name}": count for name, count in total.items()})
    course.governed = {name: sorted(rows(kind, query)) for name, query in queries.items()}
    course.ungoverned = {name: sorted(rows(kind, query)) for name, query in plain.items()}
    assert audit_checkpoints(kind.folder) >= len(TOPICS)
    return course


def at_most(records: int) -> SourceControl:
    """Return a source's limit in one batch."""
    return SourceControl(rate_limit=RateControl(records_per_checkpoint=records))


def control(course: Course, slow: SourceControl) -> None:
    """Write the control document; `slow` is for the source of the slow query."""
    fast = QueryControl(interval_seconds=0.5)
    aligned = SourceControl(
        alignment=AlignmentControl(group="all", max_drift_seconds=DRIFT_SECONDS, idle_after_seconds=0)
    )
    small = BatchControl(initial_records=60, max_records=60)
    tenth = BatchControl(
        initial_records=40, max_records=40
    )  # ten batches or more, however quick the machine is
    topics = course.topics
    controls = {
        "live": replace(fast, batch=BatchControl(initial_records=STEP, max_records=STEP)),
        "backlog": replace(
            fast, backlog=True, interval_during_backlog_seconds=0, batch=BatchControl(initial_records=50)
        ),
        "rate": replace(
            fast, sources={topics["rate"]: SourceControl(rate_limit=RateControl(records_per_checkpoint=40))}
        ),
        "aligned": replace(fast, batch=tenth, sources={topics["early"]: aligned, topics["late"]: aligned}),
        "ordered": replace(
            fast, batch=small, sources={topics["second"]: SourceControl(after=topics["first"])}
        ),
        "slow": replace(fast, interval_seconds=2, sources={topics["slow"]: slow}),
    }
    path = course.kind.folder / "control.json"
    generation = json.loads(path.read_text())["generation"] + 1 if path.exists() else 1
    named = {course.kind.named(name): query for name, query in controls.items()}
    new = path.with_suffix(".new")
    new.write_text(write(ControlDocument(generation=generation, grace_period_seconds=60, queries=named)))
    new.replace(path)


def fill(kafka: Broker, topics: Mapping[str, str], role: str, numbers: range) -> None:
    """Send the records of these numbers, one a second in event time."""
    ahead = AHEAD_SECONDS if role == "late" else 0
    send(
        kafka.bootstrap, topics[role],
        [Record(0, START_MS + (ahead + number) * 1000, f"{role}-{number}".encode()) for number in numbers],
    )  # fmt: skip


def await_rows(course: Course, expected: Mapping[str, int]) -> None:
    """Wait until the queries have written so many rows."""
    every = {query.name: query for query in (*course.queries.values(), *course.plain.values())}

    def counts() -> dict[str, int]:
        return {name: len(rows(course.kind, every[name])) for name in expected}

    def are_there() -> bool:
        assert not course.kind.has_failed, course.kind.log[-4000:]
        return all(count >= expected[name] for name, count in counts().items())

    wait_until(
        are_there,
        f"{expected} rows",
        WAIT_SECONDS,
        seen=lambda: f"{counts()}\n{course.kind.log[-4000:]}",
    )


def await_mid_batch(course: Course) -> int:
    """Wait for the beginning of a batch of the slow query that takes long, and return it."""
    kind, query = course.kind, course.queries["slow"]

    def begun() -> int | None:
        last = max(planned(kind, query))
        is_long = last > 1 and read_by(kind, query, last) - read_by(kind, query, last - 1) >= LONG_BATCH
        return last if is_long and last not in committed(kind, query) else None

    return wait_until(begun, "a batch of the slow query", WAIT_SECONDS, seen=lambda: kind.log[-4000:])


def written(course: Course, query: Query) -> list[list[tuple[str, int]]]:
    """Return what each batch with data has written: the roles and numbers of the records."""
    found = []
    for _, batch in sorted(batches(course.kind, query)):
        pairs = [value.split("-") for _, value in batch]
        found += [[(role, int(number)) for role, number in pairs]] if pairs else []
    return found


# The features --------------------------------------------------------------------------------


def live(course: Course) -> None:
    """A job with a trigger of an hour commits each half a second."""
    sizes = [len(batch) for batch in course.batches["live"]]
    assert sum(sizes) == RECORDS["live"]
    assert len(sizes) >= RECORDS["live"] / STEP
    assert max(sizes) <= STEP


def backlog(course: Course) -> None:
    """A backlog is one batch, however small the first batch would else be."""
    assert [len(batch) for batch in course.batches["backlog"]] == [RECORDS["backlog"]]


def rate(course: Course) -> None:
    """No batch has more than the limit allows."""
    sizes = [len(batch) for batch in course.batches["rate"]]
    assert sum(sizes) == RECORDS["rate"]
    assert max(sizes) <= 40


def alignment(course: Course) -> None:
    """No record is later than the slower topic and the drift."""
    positions = {"early": 0, "late": 0}
    begin = {"early": 0, "late": AHEAD_SECONDS}
    for batch in course.batches["aligned"]:
        active = [role for role in positions if positions[role] < RECORDS[role]]
        for role, _ in batch:
            positions[role] += 1
        floor = min(begin[role] + min(positions[role], RECORDS[role] - 1) for role in active)
        assert max(begin[role] + number for role, number in batch) <= floor + DRIFT_SECONDS
    assert len(course.batches["aligned"]) >= 10


def after(course: Course) -> None:
    """Nothing of the second topic is read before the first is at its end."""
    of_first = 0
    for batch in course.batches["ordered"]:
        if any(role == "second" for role, _ in batch):
            assert of_first == RECORDS["first"]
        of_first += sum(role == "first" for role, _ in batch)
    assert len(course.batches["ordered"]) >= 4


def boundary(course: Course) -> None:
    """A driver that is told to end finishes the batches that run, and begins none."""
    for name, (begun, ended) in course.after_stop.items():
        assert begun == ended, name
    assert course.after_stop["slow"][0][-1] == course.stopped_in
    assert "mid-batch" not in course.log
    read = sum(len(batch) for batch in course.batches["slow"])
    assert read < RECORDS["slow"], "it was stopped before it had read everything"


def leaving(course: Course) -> None:
    """Without the property the same checkpoints go on, and every record is there once."""
    for name, roles in TOPICS.items():
        expected = sorted(
            (course.topics[role], f"{role}-{number}")
            for role in roles
            for number in range(RECORDS[role] + LATER)
        )
        assert course.governed[name] == expected, name
        assert (
            course.ungoverned[f"plain_{name}" if f"plain_{name}" in course.ungoverned else name] == expected
        )


FEATURES: Sequence[tuple[Callable[[Course], None], str]] = [
    (live, "live"),
    (backlog, "backlog"),
    (rate, "rate"),
    (alignment, "aligned"),
    (after, "ordered"),
    (boundary, "slow"),
    (leaving, "live"),
]


@pytest.mark.parametrize(("feature", "query"), FEATURES, ids=lambda value: getattr(value, "__name__", ""))
def test_an_unmodified_job_is_governed_and_has_the_results_of_a_plain_one(
    course: Course, feature: Callable[[Course], None], query: str
):
    feature(course)
    assert course.governed[query] == course.ungoverned[query]


def test_what_is_told_of_a_query_is_under_its_name_and_of_a_connected_one_with_its_user(course: Course):
    """In the metrics, and in the status that the operator makes of them."""
    told = {sample.labels["query"] for sample in course.metrics if sample.name == "headgate_query_active"}
    assert told >= {course.kind.named("slow")}
    owners = {
        sample.labels["query"]: sample.labels["user"]
        for sample in course.metrics
        if sample.name == "headgate_query_owner"
    }
    connected = {course.kind.named(name): USERS[number % 2] for number, name in enumerate(TOPICS)}
    assert owners == (connected if isinstance(course.kind, Connect) else {})

    declared = [looping.query(name=course.kind.named(name)) for name in TOPICS]
    loop = looping.Loop(declared=looping.application(queries=declared))
    loop.run_until_running()
    loop.world.metrics.values = [
        (one.name, one.labels, one.value) for one in course.metrics if one.name in BY_SAMPLE
    ]
    loop.reconcile()
    assert loop.memory.status is not None
    shown = {one.name: one.owner for one in loop.memory.status.queries if one.owner is not None}
    assert shown == owners
