"""The order of generations has no end, and a driver takes whatever comes next."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headgate_contract import ControlDocument
from headgate_contract.codec import LARGEST_WHOLE
from headgate_contract.generations import following, is_later, latest
from headgate_contract.receiving import Inbox, write

GENERATIONS = (
    st.integers(0, LARGEST_WHOLE) | st.integers(LARGEST_WHOLE - 3, LARGEST_WHOLE) | st.integers(0, 3)
)


@given(GENERATIONS)
def test_there_is_always_a_next_one_and_a_driver_takes_it(generation: int) -> None:
    coming = following(generation)
    assert is_later(coming, generation)
    assert not is_later(generation, coming)
    inbox = Inbox().receive(write(ControlDocument(generation=generation)))
    assert inbox.document is not None
    taken = inbox.receive(write(ControlDocument(generation=coming)))
    assert taken.refusal is None
    assert taken.document is not None
    assert taken.document.generation == coming
    assert taken.receive(write(ControlDocument(generation=generation))).refusal is not None


@given(GENERATIONS, GENERATIONS)
def test_of_two_at_most_one_is_later(one: int, other: int) -> None:
    assert not (is_later(one, other) and is_later(other, one))
    assert latest(one, other) in (one, other)
    assert not is_later(other, latest(one, other))


@given(st.integers(0, 2**52 - 2), st.integers(0, 2**52 - 2))
def test_numbers_that_have_not_gone_round_are_in_their_usual_order(one: int, other: int) -> None:
    assert is_later(one, other) is (one > other)
    assert latest(one, other) == max(one, other)
