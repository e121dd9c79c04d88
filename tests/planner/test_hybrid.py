"""History, then live."""

import pytest

from headgate_spark.planner.hybrid import Hybrid, Progress
from headgate_spark.planner.model import HybridMemory


def counted(start: int, latest: int | None) -> Progress:
    return Progress({"0": start}, None if latest is None else {"0": latest}, exhausted=False)


def uncounted(exhausted: bool) -> Progress:
    return Progress(None, None, exhausted)


class Kept:
    """Where the memory is kept; what was saved last is what a restart finds."""

    def __init__(self, memory: HybridMemory | None = None) -> None:
        self.memory = memory or HybridMemory()
        self.saves = 0

    def save(self, memory: HybridMemory) -> None:
        self.memory = memory
        self.saves += 1


def a_hybrid(kept: Kept | None = None, **after: str) -> Hybrid:
    kept = kept or Kept()
    hybrid = Hybrid(kept.memory, kept.save)
    hybrid.follow(after)
    return hybrid


def test_without_a_chain_nothing_waits_and_nothing_is_remembered():
    kept = Kept()
    hybrid = a_hybrid(kept)
    hybrid.advance({"live": counted(0, 10)})
    assert not hybrid.waits("live")
    assert not hybrid.phase("live")
    assert kept.saves == 0


def test_a_source_waits_until_its_history_has_been_read():
    hybrid = a_hybrid(live="history")
    hybrid.advance({"history": counted(0, 10), "live": counted(0, 5)})
    assert hybrid.waits("live")
    hybrid.advance({"history": counted(9, 10), "live": counted(0, 5)})
    assert hybrid.waits("live")
    hybrid.advance({"history": counted(10, 10), "live": counted(0, 5)})
    assert not hybrid.waits("live")


def test_both_parts_are_a_phase_until_the_switch():
    hybrid = a_hybrid(live="history")
    assert hybrid.phase("history")
    assert hybrid.phase("live")
    assert not hybrid.phase("other")
    hybrid.advance({"history": counted(0, 0), "live": counted(0, 5)})
    assert not hybrid.phase("history")
    assert not hybrid.phase("live")


def test_the_end_of_a_history_is_fixed_at_the_first_planning():
    hybrid = a_hybrid(live="history")
    hybrid.advance({"history": counted(0, 10), "live": counted(0, 5)})
    hybrid.advance({"history": counted(10, 900), "live": counted(0, 5)})
    assert not hybrid.waits("live")


def test_an_end_that_is_not_known_is_not_reached():
    hybrid = a_hybrid(live="history")
    hybrid.advance({"history": counted(10, None), "live": counted(0, 5)})
    assert hybrid.waits("live")


def test_a_restart_neither_moves_the_end_nor_goes_back():
    kept = Kept()
    a_hybrid(kept, live="history").advance({"history": counted(0, 10), "live": counted(0, 5)})
    restarted = a_hybrid(kept, live="history")
    restarted.advance({"history": counted(10, 900), "live": counted(0, 5)})
    assert not restarted.waits("live")
    assert not a_hybrid(kept, live="history").waits("live")


def test_what_is_remembered_is_saved_before_it_is_acted_on():
    def fail(memory: HybridMemory) -> None:
        raise OSError("disk full")

    hybrid = Hybrid(HybridMemory(), fail)
    hybrid.follow({"live": "history"})
    with pytest.raises(OSError, match="disk full"):
        hybrid.advance({"history": counted(10, 10), "live": counted(0, 5)})
    assert hybrid.waits("live")


def test_nothing_new_is_not_saved_again():
    kept = Kept()
    hybrid = a_hybrid(kept, live="history")
    for start in (0, 3, 6):
        hybrid.advance({"history": counted(start, 10), "live": counted(0, 5)})
    assert kept.saves == 1


def test_a_chain_of_three_is_read_one_after_the_other():
    hybrid = a_hybrid(log="snapshot", live="log")
    hybrid.advance({"snapshot": counted(0, 10), "log": counted(0, 20), "live": counted(0, 5)})
    assert hybrid.waits("log")
    hybrid.advance({"snapshot": counted(10, 10), "log": counted(0, 25), "live": counted(0, 5)})
    assert (hybrid.waits("log"), hybrid.waits("live")) == (False, True)
    hybrid.advance({"snapshot": counted(10, 10), "log": counted(20, 30), "live": counted(0, 5)})
    assert not hybrid.waits("live")


def test_an_empty_link_of_a_chain_does_not_let_the_next_one_pass():
    hybrid = a_hybrid(log="snapshot", live="log")
    hybrid.advance({"snapshot": counted(0, 10), "log": counted(0, 0), "live": counted(0, 5)})
    assert hybrid.waits("live")
    hybrid.advance({"snapshot": counted(10, 10), "log": counted(0, 0), "live": counted(0, 5)})
    assert not hybrid.waits("live")


@pytest.mark.parametrize("after", [{"a": "nowhere"}, {"a": "b", "b": "a"}, {"a": "a"}])
def test_what_can_never_end_is_never_passed(after):
    hybrid = a_hybrid(**after)
    hybrid.advance({"a": counted(10, 10), "b": counted(10, 10)})
    assert hybrid.waits("a")


def test_a_split_that_is_gone_is_not_waited_for():
    hybrid = a_hybrid(live="history")
    hybrid.advance({"history": Progress({"0": 0, "1": 0}, {"0": 10, "1": 10}, exhausted=False)})
    hybrid.advance({"history": Progress({"0": 10, "1": 4}, {"0": 10}, exhausted=False)})
    assert not hybrid.waits("live")


def test_a_history_that_was_created_anew_ends_where_it_is_now():
    hybrid = a_hybrid(Kept(HybridMemory({"history": {"0": 1000}})), live="history")
    hybrid.advance({"history": counted(7, 7)})
    assert not hybrid.waits("live")


def test_a_history_that_cannot_be_counted_ends_when_it_has_nothing():
    hybrid = a_hybrid(live="history")
    hybrid.advance({"history": uncounted(exhausted=False)})
    assert hybrid.waits("live")
    hybrid.advance({"history": uncounted(exhausted=True)})
    assert not hybrid.waits("live")
    hybrid.advance({"history": uncounted(exhausted=False)})
    assert not hybrid.waits("live")


def test_a_chain_that_is_no_longer_declared_holds_nobody():
    hybrid = a_hybrid(live="history")
    hybrid.follow({})
    assert not hybrid.waits("live")
    assert not hybrid.phase("history")
