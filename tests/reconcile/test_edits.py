"""What a person is told after changing a resource."""

from __future__ import annotations

from headgate.api.status import SparkApplicationStatus
from headgate.reconcile.events import edit
from support.looping import application, query

NOW = 1_700_000_000.0


def message(before: object, after: object, status: object = None) -> str | None:
    event = edit(before, after, status, NOW)  # type: ignore[arg-type]
    return None if event is None else event.message


def test_each_change_is_told_with_what_it_does_the_dearest_first() -> None:
    after = application(2, queries=[query(checkpoint={"interval": "7s"})], driver={"memory": "2g"})
    assert message(application(), after) == (
        "the resource has changed: spec.driver.memory: 1g -> 2g (the driver is stopped at the end of its batch and "
        "started anew); spec.queries[delays].checkpoint.interval: 5s -> 7s, "
        "spec.queries[delays].checkpoint.intervalDuringBacklog: 2m -> not set (in force when the next batch is "
        "planned)"
    )


def test_the_same_again_is_not_told() -> None:
    assert message(application(), application(2)) is None


def test_the_same_in_other_words_is_not_told() -> None:
    assert (
        message(application(stop={"gracePeriod": "2m"}), application(2, stop={"gracePeriod": "120s"})) is None
    )


def test_an_application_that_is_new_has_not_changed() -> None:
    assert message(None, application()) is None
    assert message(None, application(), SparkApplicationStatus()) is None


def test_an_operator_that_comes_later_says_that_something_has_changed() -> None:
    assert message(None, application(5), SparkApplicationStatus(observed_generation=3)) == (
        "the resource has changed while no operator was looking: generation 3 was acted on last, and it is 5 now"
    )
    assert message(None, application(5), SparkApplicationStatus(observed_generation=5)) is None
