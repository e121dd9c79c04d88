"""What a run of chaos from end to end is judged by: each law finds what breaks it, and nothing where all is well."""

from __future__ import annotations

import json
import socket
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.chaos.blows import drawn
from benchmarks.chaos.end_to_end.audit import (
    Audit,
    Ends,
    Limits,
    aligned,
    audit,
    early,
    lost_and_doubled,
    past_limit,
    too_fast,
    two_writers,
)
from benchmarks.chaos.end_to_end.faults import FAULTS
from benchmarks.chaos.end_to_end.feed import CHUNK, FIRST, KEYS, PARTITIONS, SECOND, totals
from benchmarks.chaos.end_to_end.proxy import Proxy
from benchmarks.event_log import PROGRESS, Batch
from support.servers import free_port

LIMITS = Limits(records_per_checkpoint=100, records_per_second=100, burst_seconds=2, drift_ms=2000)
HISTORY = 2 * CHUNK


def both(first: int, second: int = 0) -> Ends:
    """Return where a batch ends that has read so far in each partition of both topics."""
    return {FIRST: dict.fromkeys(range(PARTITIONS), first), SECOND: dict.fromkeys(range(PARTITIONS), second)}


@given(
    st.dictionaries(
        st.sampled_from([FIRST, SECOND]), st.dictionaries(st.integers(0, 3), st.integers(0, 300), min_size=1)
    )
)
def test_what_has_to_be_counted_is_what_counting_finds(ends: Ends) -> None:
    numbers = [
        (topic, number) for topic, every in ends.items() for end in every.values() for number in range(end)
    ]
    counts = Counter((topic, number % KEYS) for topic, number in numbers)
    sums = Counter[tuple[str, int]]()
    for topic, number in numbers:
        sums[topic, number % KEYS] += number
    assert totals(ends) == {key: (counts[key], sums[key]) for key in counts}


@pytest.mark.parametrize(
    ("found", "lost", "doubled"),
    [
        ({1: (2, 130), 2: (1, 2)}, 0, 0),
        ({1: (1, 1), 2: (1, 2)}, 1, 0),
        ({1: (3, 131), 2: (1, 2)}, 0, 1),
        ({1: (2, 131), 2: (1, 2)}, 1, 1),
        ({1: (2, 130)}, 1, 0),
        ({}, 3, 0),
    ],
)
def test_records_are_missed_and_counted_twice(
    found: dict[int, tuple[int, int]], lost: int, doubled: int
) -> None:
    told = {(FIRST, key): each for key, each in found.items()}
    assert lost_and_doubled(told, {(FIRST, 1): (2, 130), (FIRST, 2): (1, 2)}) == (lost, doubled)


def test_a_batch_is_past_the_limit_by_what_it_has_more() -> None:
    first = ({0: 60, 1: 40}, {0: 160, 1: 41}, {0: 160, 1: 80})
    planned = {number: {FIRST: ends, SECOND: {0: number * 100}} for number, ends in enumerate(first)}
    assert list(past_limit(planned, 100)) == [(1, f"batch 1 has 101 records of {FIRST}")]


def test_a_source_is_early_that_is_read_before_the_history_is_over() -> None:
    held = {0: both(HISTORY - 1), 1: both(HISTORY), 2: both(HISTORY, 10)}
    assert list(early(held, HISTORY)) == []
    ((records, told),) = early({0: both(HISTORY - 1), 1: both(HISTORY, 10)}, HISTORY)
    assert records == 10 * PARTITIONS
    assert told.startswith(f"batch 1 has {records} records of {SECOND}")


def test_records_are_past_the_limit_that_are_later_than_the_slowest_and_the_drift() -> None:
    """The second topic begins where the first one's history does; a partition is 100 ms later than the one before."""
    begun = {0: both(HISTORY), 1: both(HISTORY, HISTORY - 2000)}
    within = {**begun, 2: both(HISTORY + 1, HISTORY - 2000)}
    assert aligned(within, HISTORY, 2300, ()) == ([], 2)
    late, _ = aligned({**begun, 2: both(HISTORY + 2, HISTORY - 2000)}, HISTORY, 2300, ())
    assert [records for records, _ in late] == [1]


def test_a_topic_that_has_read_nothing_holds_the_other_but_where_its_answer_may_be_lost() -> None:
    planned = {0: both(HISTORY), 1: both(HISTORY, HISTORY - 2000), 2: both(HISTORY + 500, HISTORY - 2000)}
    late, _ = aligned(planned, HISTORY, 2000, ())
    assert {told.partition(" has")[0] for _, told in late} == {"batch 2"}
    assert aligned(planned, HISTORY, 2000, {2})[0] == []


def test_a_topic_that_waits_for_its_history_holds_nobody() -> None:
    late, _ = aligned({0: both(HISTORY - 1), 1: both(HISTORY)}, HISTORY, 2000, ())
    assert late == []


@pytest.mark.parametrize(
    ("written", "says"),
    [
        (("a offsets 0", "a commits 0", "b offsets 1", "b commits 1"), None),
        (("a commits 0", "b commits 0"), "committed twice"),
        (("a commits 1", "a commits 0"), "out of order"),
        (("a commits 0", "b commits 1", "a commits 2"), "after the one that took its checkpoint"),
        (("a commits 0", "b commits 1", "a offsets 2", "a state 1.delta", "b commits 2"), None),
    ],
)
def test_the_journal_tells_of_two_that_commit(
    tmp_path: Path, written: tuple[str, ...], says: str | None
) -> None:
    journal = tmp_path / "journal"
    journal.write_text("".join(line + "\n" for line in written))
    found = list(two_writers(journal))
    assert (says is None and not found) or (says is not None and says in found[0])


def batch(number: int, at: float, records: int) -> Batch:
    return Batch("counts", number, at, at + 0.01, at + 0.1, (0, 0), (50, records), 0)


def test_a_driver_is_too_fast_that_reads_more_than_its_rate_and_a_full_bucket() -> None:
    first = batch(0, 10, 1000)  # may be of the driver before
    steady = [first, batch(1, 20, 200), *(batch(n, 19 + n, 100) for n in range(2, 9))]
    assert list(too_fast({1: steady}, LIMITS)) == []
    (told,) = too_fast({1: steady, 2: [first, batch(1, 20, 200), batch(2, 21, 150)]}, LIMITS)
    assert told.startswith("driver 2 was 4")


class Run:
    """What a run of three batches of 40 records leaves."""

    def __init__(self, root: Path) -> None:
        self.root, self.checkpoint, self.out = root, root / "checkpoint", root / "out"
        for folder in (self.checkpoint / "offsets", self.checkpoint / "commits", self.out, root / "events"):
            folder.mkdir(parents=True)
        self.journal = root / "journal"
        for number in range(3):
            self.plan(number, 40 * (number + 1))
            (self.checkpoint / "commits" / str(number)).write_text("v1\n{}")
            self.answer(number, 40 * (number + 1))
        self.journal.write_text("".join(f"one commits {number}\n" for number in range(3)))

    def plan(self, number: int, end: int) -> None:
        (self.checkpoint / "offsets" / str(number)).write_text(
            "v1\n{}\n" + json.dumps({FIRST: {"0": end}}) + "\n" + json.dumps({SECOND: {"0": 0}})
        )

    def answer(self, number: int, end: int) -> None:
        told = [[*key, *both] for key, both in totals({FIRST: {0: end}}).items()]
        (self.out / f"{number}.json").write_text(json.dumps(told))

    def logged(self, number: int, end: int) -> None:
        progress = {
            "name": "counts",
            "batchId": number,
            "timestamp": "2026-11-25T10:00:00.000Z",
            "durationMs": {"addBatch": 5, "triggerExecution": 10},
            "sources": [
                {"startOffset": None, "endOffset": json.dumps({FIRST: {"0": end}})},
                {"startOffset": None, "endOffset": json.dumps({SECOND: {"0": 0}})},
            ],
            "stateOperators": [],
        }
        line = PROGRESS.decode() + ', "progress": ' + json.dumps(progress) + "}\n"
        (self.root / "events" / "events_1").write_text(line)

    def audit(self, end: int = 120) -> Audit:
        return audit(
            checkpoint=self.checkpoint,
            query="counts",
            out=self.out,
            journal=self.journal,
            events=[self.root / "events"],
            ends={FIRST: {0: end}},
            history=HISTORY,
            unheard=(),
            limits=LIMITS,
        )


@pytest.fixture
def run(tmp_path: Path, logs_change: None) -> Run:
    return Run(tmp_path)


def test_a_run_in_which_all_is_well_is_found_to_be(run: Run) -> None:
    run.logged(2, 120)
    assert run.audit() == Audit(batches=3, lost=0, doubled=0, past_limit=0)


def test_what_was_never_read_is_lost(run: Run) -> None:
    assert run.audit(end=121).lost == 1


def test_a_batch_with_a_wrong_answer_is_named(run: Run) -> None:
    run.answer(1, 79)
    assert [line[:7] for line in run.audit().broken] == ["batch 1"]


def test_a_batch_without_an_answer_is_named(run: Run) -> None:
    (run.out / "1.json").unlink()
    assert run.audit().broken == ["batch 1 was committed and has no output"]


def test_a_driver_that_ran_a_batch_up_to_elsewhere_is_named(run: Run) -> None:
    run.logged(2, 119)
    (told,) = run.audit().broken
    assert told.startswith("driver 1 ran batch 2 up to (119, 0)")


def test_offsets_that_go_back_are_named(run: Run) -> None:
    run.plan(2, 70)
    assert any("goes back from 80 to 70" in line for line in run.audit().broken)


def test_a_stop_that_leaves_a_batch_which_is_planned_is_named(run: Run) -> None:
    run.plan(3, 160)
    assert run.audit().broken == ["a driver that was asked to stop left a batch that it has planned: [3]"]


@given(st.integers(0, 1000), st.integers(1, 100))
def test_a_seed_says_what_happens_and_each_kind_comes_once(seed: int, count: int) -> None:
    blows = drawn(seed, count, FAULTS)
    assert blows == drawn(seed, count, FAULTS)
    assert len(blows) == count
    assert len({blow.fault.name for blow in blows}) >= min(count, len(FAULTS))


def test_a_network_passes_holds_back_delivers_and_drops() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = free_port()
        with Proxy(port, server.getsockname()[1]) as proxy:
            client = socket.create_connection(("127.0.0.1", port), timeout=60)
            accepted, _ = server.accept()
            client.sendall(b"one")
            assert accepted.recv(10) == b"one"
            proxy.cut()
            client.sendall(b"two")
            accepted.settimeout(0.2)
            with pytest.raises(TimeoutError):
                accepted.recv(10)
            proxy.mend()
            accepted.settimeout(60)
            assert accepted.recv(10) == b"two"
            proxy.reset()
            with pytest.raises(ConnectionResetError):
                client.recv(10)
            accepted.close()
            client.close()
