"""History, then live."""

import re
from dataclasses import replace
from pathlib import Path
from zipfile import ZipFile

import pyspark
import pytest

from headgate_spark.planner.hybrid import Hybrid, ReadSoFar
from headgate_spark.planner.model import NOTHING_READ, HybridMemory


def counted(start: int, latest: int | None) -> ReadSoFar:
    return ReadSoFar({"0": start}, None if latest is None else {"0": latest}, exhausted=False)


def uncounted(exhausted: bool) -> ReadSoFar:
    return ReadSoFar(None, None, exhausted)


def a_hybrid(memory: HybridMemory | None = None, **after: str) -> Hybrid:
    return Hybrid(memory or NOTHING_READ, after)


def test_without_a_chain_nothing_waits_and_nothing_is_remembered():
    hybrid = a_hybrid().advanced({"live": counted(0, 10)})
    assert not hybrid.waits("live")
    assert not hybrid.phase("live")
    assert hybrid.memory == NOTHING_READ


def test_a_source_waits_until_its_history_has_been_read():
    hybrid = a_hybrid(live="history")
    hybrid = hybrid.advanced({"history": counted(0, 10), "live": counted(0, 5)})
    assert hybrid.waits("live")
    hybrid = hybrid.advanced({"history": counted(9, 10), "live": counted(0, 5)})
    assert hybrid.waits("live")
    hybrid = hybrid.advanced({"history": counted(10, 10), "live": counted(0, 5)})
    assert not hybrid.waits("live")


def test_both_parts_are_a_phase_until_the_switch():
    hybrid = a_hybrid(live="history")
    assert hybrid.phase("history")
    assert hybrid.phase("live")
    assert not hybrid.phase("other")
    hybrid = hybrid.advanced({"history": counted(0, 0), "live": counted(0, 5)})
    assert not hybrid.phase("history")
    assert not hybrid.phase("live")


def test_the_end_of_a_history_is_fixed_at_the_first_planning():
    hybrid = a_hybrid(live="history")
    hybrid = hybrid.advanced({"history": counted(0, 10), "live": counted(0, 5)})
    hybrid = hybrid.advanced({"history": counted(10, 900), "live": counted(0, 5)})
    assert not hybrid.waits("live")


def test_an_end_that_is_not_known_is_not_reached():
    hybrid = a_hybrid(live="history")
    hybrid = hybrid.advanced({"history": counted(10, None), "live": counted(0, 5)})
    assert hybrid.waits("live")


def test_a_restart_neither_moves_the_end_nor_goes_back():
    before = a_hybrid(live="history").advanced({"history": counted(0, 10), "live": counted(0, 5)})
    restarted = a_hybrid(before.memory, live="history")
    restarted = restarted.advanced({"history": counted(10, 900), "live": counted(0, 5)})
    assert not restarted.waits("live")
    assert not a_hybrid(restarted.memory, live="history").waits("live")


def test_nothing_new_is_nothing_to_remember():
    hybrid = a_hybrid(live="history").advanced({"history": counted(0, 10), "live": counted(0, 5)})
    for start in (3, 6):
        assert hybrid.advanced({"history": counted(start, 10), "live": counted(0, 5)}) == hybrid


def test_a_chain_of_three_is_read_one_after_the_other():
    hybrid = a_hybrid(log="snapshot", live="log")
    hybrid = hybrid.advanced({"snapshot": counted(0, 10), "log": counted(0, 20), "live": counted(0, 5)})
    assert hybrid.waits("log")
    hybrid = hybrid.advanced({"snapshot": counted(10, 10), "log": counted(0, 25), "live": counted(0, 5)})
    assert (hybrid.waits("log"), hybrid.waits("live")) == (False, True)
    hybrid = hybrid.advanced({"snapshot": counted(10, 10), "log": counted(20, 30), "live": counted(0, 5)})
    assert not hybrid.waits("live")


def test_an_empty_link_of_a_chain_does_not_let_the_next_one_pass():
    hybrid = a_hybrid(log="snapshot", live="log")
    hybrid = hybrid.advanced({"snapshot": counted(0, 10), "log": counted(0, 0), "live": counted(0, 5)})
    assert hybrid.waits("live")
    hybrid = hybrid.advanced({"snapshot": counted(10, 10), "log": counted(0, 0), "live": counted(0, 5)})
    assert not hybrid.waits("live")


@pytest.mark.parametrize("after", [{"a": "nowhere"}, {"a": "b", "b": "a"}, {"a": "a"}])
def test_what_can_never_end_is_never_passed(after):
    hybrid = a_hybrid(**after)
    hybrid = hybrid.advanced({"a": counted(10, 10), "b": counted(10, 10)})
    assert hybrid.waits("a")


def test_a_partition_that_is_gone_is_not_waited_for():
    hybrid = a_hybrid(live="history")
    hybrid = hybrid.advanced({"history": ReadSoFar({"0": 0, "1": 0}, {"0": 10, "1": 10}, exhausted=False)})
    hybrid = hybrid.advanced({"history": ReadSoFar({"0": 10, "1": 4}, {"0": 10}, exhausted=False)})
    assert not hybrid.waits("live")


def test_a_history_that_was_created_anew_ends_where_it_is_now():
    hybrid = a_hybrid(HybridMemory({"history": {"0": 1000}}, frozenset()), live="history")
    hybrid = hybrid.advanced({"history": counted(7, 7)})
    assert not hybrid.waits("live")


def test_a_history_that_cannot_be_counted_ends_when_it_has_nothing():
    hybrid = a_hybrid(live="history")
    hybrid = hybrid.advanced({"history": uncounted(exhausted=False)})
    assert hybrid.waits("live")
    hybrid = hybrid.advanced({"history": uncounted(exhausted=True)})
    assert not hybrid.waits("live")
    hybrid = hybrid.advanced({"history": uncounted(exhausted=False)})
    assert not hybrid.waits("live")


def test_a_chain_that_is_no_longer_declared_holds_nobody():
    hybrid = a_hybrid(live="history")
    hybrid = replace(hybrid, after={})
    assert not hybrid.waits("live")
    assert not hybrid.phase("history")


def test_spark_has_no_union_of_its_own_that_reads_one_branch_after_the_other():
    """Where this fails, Spark has a branch wait by itself, which is a `Phase` of it."""
    (jar,) = (Path(pyspark.__file__).parent / "jars").glob("spark-sql_2.13-*.jar")
    with ZipFile(jar) as classes:
        names = [
            n
            for n in classes.namelist()
            if n.endswith(("classic/Dataset.class", "/MicroBatchExecution.class"))
        ]
        assert len(names) == 2
        found = {
            name for name in names if re.search(rb"followedBy|SequentialStreamingUnion", classes.read(name))
        }
    assert found == set()
