"""A partition that appears is planned once it is known where it begins."""

import threading
import time

import structlog

from headgate_spark.engine.changed_logs import TRIES, Beginnings

START, LATEST = {"orders/0": 5}, {"orders/0": 9, "orders/1": 40}


PATIENT = time.monotonic() + 86_400
"""Whoever answers is waited for, however busy the machine is."""


def test_partitions_that_are_known_are_settled_without_a_question():
    def find(partitions):
        raise AssertionError("nothing is new")

    assert Beginnings("orders", find).are_settled(START, {"orders/0": 9}, PATIENT)


def test_a_new_partition_begins_where_its_source_says():
    asked = []

    def find(partitions):
        asked.append(set(partitions))
        return {"orders/1": 30}

    found = Beginnings("orders", find)
    assert not found.are_settled(START, LATEST, PATIENT), (
        "in the round in which it appears its place is not in the plan yet"
    )
    assert found.completed(START) == {"orders/0": 5, "orders/1": 30}
    assert found.are_settled(START, LATEST, PATIENT)
    assert asked == [{"orders/1"}]


def test_where_the_source_is_counts_more_than_where_a_partition_began():
    found = Beginnings("orders", lambda partitions: dict.fromkeys(partitions, 30))
    found.are_settled(START, LATEST, PATIENT)
    assert found.completed({"orders/0": 5, "orders/1": 35}) == {"orders/0": 5, "orders/1": 35}


def test_a_slow_answer_is_waited_for_over_several_rounds_and_in_none_beyond_its_deadline():
    answered = threading.Event()
    calls = []

    def find(partitions):
        calls.append(partitions)
        answered.wait(240)
        return dict.fromkeys(partitions, 30)

    found = Beginnings("orders", find)
    for _ in range(2):
        assert not found.are_settled(START, LATEST, deadline=time.monotonic())
    answered.set()
    assert not found.are_settled(START, LATEST, PATIENT)
    assert found.are_settled(START, LATEST, PATIENT)
    assert len(calls) == 1


def test_a_partition_whose_beginning_cannot_be_found_is_never_planned_and_said_once():
    def find(partitions):
        raise ConnectionError("the broker is gone")

    found = Beginnings("orders", find)
    with structlog.testing.capture_logs() as logged:
        for _ in range(3 * TRIES):
            assert not found.are_settled(START, LATEST, PATIENT)
    assert found.completed(START) == START
    assert [(line["source"], line["error"]) for line in logged] == [("orders", "the broker is gone")]


def test_a_broker_that_is_away_for_a_moment_is_asked_again():
    answers = iter([ConnectionError("the broker is gone"), {"orders/1": 30}])

    def find(partitions):
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    found = Beginnings("orders", find)
    assert not found.are_settled(START, LATEST, PATIENT)
    assert not found.are_settled(START, LATEST, PATIENT)
    assert found.are_settled(START, LATEST, PATIENT)
    assert found.completed(START) == {"orders/0": 5, "orders/1": 30}


def test_a_partition_that_comes_back_begins_where_it_does_then():
    answers = iter([30, 7])
    found = Beginnings("orders", lambda partitions: dict.fromkeys(partitions, next(answers)))
    assert not found.are_settled(START, LATEST, PATIENT)
    assert found.are_settled(START, {"orders/0": 9}, PATIENT)
    assert found.completed(START) == START
    assert not found.are_settled(START, LATEST, PATIENT)
    assert found.completed(START) == {"orders/0": 5, "orders/1": 7}


def test_where_a_partition_began_is_forgotten_once_the_source_says_where_it_is():
    answers = iter([30, 7])
    found = Beginnings("orders", lambda partitions: dict.fromkeys(partitions, next(answers)))
    assert not found.are_settled(START, LATEST, PATIENT)
    assert found.are_settled({**START, "orders/1": 35}, LATEST, PATIENT)
    assert not found.are_settled(START, LATEST, PATIENT)
    assert found.completed(START) == {"orders/0": 5, "orders/1": 7}


def test_a_partition_that_nobody_could_tell_of_is_looked_up_until_somebody_can():
    answers = iter([*[ConnectionError("the broker is gone")] * (TRIES + 1), {"orders/1": 7}])

    def find(partitions):
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    found = Beginnings("orders", find)
    for _ in range(TRIES + 2):
        assert not found.are_settled(START, LATEST, PATIENT)
    assert found.are_settled(START, LATEST, PATIENT)
    assert found.completed(START) == {"orders/0": 5, "orders/1": 7}
