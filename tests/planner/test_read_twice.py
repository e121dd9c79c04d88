"""Batches that a job goes over more than once, as a `foreachBatch` with two writes does."""

import pytest

from headgate_contract import BatchControl, QueryControl, RateControl, SourceControl
from support.scripted_spark import ScriptedSpark, Stream


@pytest.mark.parametrize("times", [1.01, 2, 3, 5])
def test_a_rate_limit_counts_each_record_once(times: float) -> None:
    topic = Stream("orders", {"0": 10_000_000}, density=times)
    limited = SourceControl(rate_limit=RateControl(records_per_second=1000))
    spark = ScriptedSpark(topic, control=QueryControl(interval_seconds=1, sources={"orders": limited}))
    spark.run_for(300)
    assert topic.start["0"] == pytest.approx(300 * 1000, rel=0.05)
    assert spark.source("orders").planned_records_total == topic.start["0"]
    assert spark.source("orders").processed_records_total == topic.start["0"]


@pytest.mark.parametrize("times", [1.01, 2, 3, 5])
@pytest.mark.parametrize("during", [10, 60])
def test_batches_take_the_interval_of_the_backlog(times: float, during: float) -> None:
    topic = Stream("orders", {"0": 1_000_000_000}, density=times)
    query = QueryControl(
        interval_seconds=1, interval_during_backlog_seconds=during, backlog=True, batch=BatchControl()
    )
    spark = ScriptedSpark(topic, control=query, fixed_seconds=0.5)
    spark.run_for(30 * during)
    assert max(batch.seconds for batch in spark.batches[1:]) < 1.1 * during
    assert spark.batches[-1].seconds == pytest.approx(during, rel=0.1)
