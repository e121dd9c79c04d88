"""What a batch took is told without the time that its trigger waited."""

from headgate_spark.engine.batches import Waits


def test_a_wait_counts_to_the_trigger_that_it_was_in():
    waits = Waits()
    waits.trigger_begins()
    waits.ended(0.5)
    waits.begin(1.0)
    waits.ended(1.25)
    waits.begin(1.25)
    waits.ended(2.0)
    assert waits.before == 0.0
    waits.ended(3.0)
    waits.trigger_begins()
    assert waits.before == 1.0
    waits.trigger_begins()
    assert waits.before == 0.0


def test_a_wait_after_which_the_source_was_not_asked_again_is_none():
    waits = Waits()
    waits.trigger_begins()
    waits.begin(1.0)
    waits.trigger_begins()
    waits.ended(5.0)
    waits.trigger_begins()
    assert waits.before == 0.0
