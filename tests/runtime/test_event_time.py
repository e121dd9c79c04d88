"""Up to which event time a query has been read, by what Spark says of its batches."""

import pytest

from headgate_spark.engine.batches import Progress, ReachedEventTime

HOUR = 3600.0
NOW = 1_000_000.0


def batch(watermark, newest):
    return Progress(1, 0.5, (10,), watermark, newest, None)


def reached(*batches, delay=60.0, single=True):
    followed = ReachedEventTime("orders", delay, single)
    for watermark, newest in batches:
        followed.batch_ended(batch(watermark, newest), NOW, HOUR)
    return followed.reached


@pytest.mark.parametrize(
    ("batches", "single", "seconds"),
    [
        ([(None, None)], True, None),
        ([(None, 500.0)], True, 500.0),
        ([(None, 500.0)], False, None),
        ([(440.0, 900.0)], True, 900.0),
        ([(440.0, 900.0)], False, 500.0),
        ([(440.0, 900.0), (840.0, None)], True, 900.0),
        ([(440.0, 900.0), (840.0, 700.0)], True, 900.0),
    ],
    ids=["nothing", "at once", "of which source?", "ahead", "several", "no data", "late records"],
)
def test_the_newest_event_time_tells_at_once_where_the_plan_has_one_watermark(batches, single, seconds):
    assert reached(*batches, single=single) == seconds


POISON = NOW + HOUR + 1


@pytest.mark.parametrize(
    ("batches", "single", "seconds"),
    [
        ([(None, NOW + HOUR)], True, NOW + HOUR),
        ([(None, POISON)], True, None),
        ([(440.0, 600.0), (540.0, POISON)], True, 600.0),
        ([(440.0, 600.0), (540.0, POISON), (POISON, 700.0)], True, 700.0),
        ([(440.0, 600.0), (540.0, POISON), (POISON, POISON)], True, None),
        ([(440.0, 600.0), (POISON, 700.0)], False, None),
    ],
    ids=["in bounds", "only poison", "stands", "goes on", "nothing to believe", "several"],
)
def test_event_times_beyond_max_future_do_not_count(batches, single, seconds):
    assert reached(*batches, single=single) == seconds


def test_the_lag_of_a_batch_does_not_believe_them_either():
    followed = ReachedEventTime("orders", 60.0, True)
    followed.batch_ended(batch(None, 500.0), NOW, HOUR)
    assert followed.of_last_batch == 500.0
    followed.batch_ended(batch(None, POISON), NOW, HOUR)
    assert followed.of_last_batch is None


def test_batches_with_records_from_the_future_are_counted():
    followed = ReachedEventTime("orders", 60.0, True)
    for newest in (500.0, POISON, None, POISON, NOW + HOUR):
        followed.batch_ended(batch(None, newest), NOW, HOUR)
    assert followed.future_batches == 2
