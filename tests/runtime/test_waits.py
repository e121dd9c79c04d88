"""What a batch took is told without the time that its trigger waited."""

from headgate_spark.engine.waits import Waits


def test_a_wait_counts_to_the_trigger_that_it_was_in():
    waits = Waits()
    assert not waits.ended(0.0)
    waits.trigger_begins()
    waits.begin(1.0)
    assert waits.ended(1.25)
    waits.begin(1.25)
    assert waits.ended(2.0)
    assert waits.before == 0.0
    assert not waits.ended(3.0)
    waits.trigger_begins()
    assert waits.before == 1.0
    waits.trigger_begins()
    assert waits.before == 0.0
