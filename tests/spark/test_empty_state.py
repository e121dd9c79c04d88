"""The first batch of an aggregation looks nothing up in its state, which is empty; all that follow do."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 -- as PySpark's own documentation has it
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

from support.spark import ScriptedPlanner, batch_sizes, once, progress, running, unregister, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("one_task_a_stage")]

ROWS, KEYS = 100, 7
COUNTED = ["string(count(*))", "string(sum(value))"]
LISTED = ["array_join(sort_array(collect_list(value)), ',')"]
"""An aggregate whose buffer is an object, which is written out after each merge."""


class Totals:
    """What a query counts by key, over all of its runs."""

    def __init__(self, spark: SparkSession, columns: list[str]) -> None:
        numbers = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS).load()
        self._rows = numbers.groupBy(F.expr(f"value % {KEYS} AS key")).agg(*map(F.expr, columns))
        self.found: dict[int, list[str]] = {}

    @property
    def writer(self) -> DataStreamWriter:
        return self._rows.writeStream.outputMode("update").foreachBatch(self._keep)

    def _keep(self, batch: DataFrame, _id: int) -> None:
        self.found.update({key: values for key, *values in batch.collect()})


def looks_up(query: StreamingQuery) -> bool:
    """Whether the last batch of a query has looked its groups up."""
    return "StateStoreRestore" in query._jsq.explainInternal(False)


def expected(columns: list[str], batches: int) -> dict[int, list[str]]:
    """What the keys of so many batches come to."""
    values = {key: range(key, batches * ROWS, KEYS) for key in range(KEYS)}
    if columns is COUNTED:
        return {key: [str(len(each)), str(sum(each))] for key, each in values.items()}
    return {key: [",".join(map(str, each))] for key, each in values.items()}


@pytest.mark.parametrize("columns", [COUNTED, LISTED], ids=["hashed", "objects"])
def test_the_first_batch_alone_looks_nothing_up_and_plain_spark_goes_on_with_what_it_leaves(
    spark: SparkSession, planner: ScriptedPlanner, tmp_path: Path, columns: list[str]
) -> None:
    totals = Totals(spark, columns)
    with running(totals.writer, tmp_path) as query:
        for batch in (1, 2):
            planner.answer = once("all")
            wait_until(lambda n=batch: len(batch_sizes(query)) == n or query.exception(), "a batch")
            assert totals.found == expected(columns, batch)
            assert looks_up(query) == (batch > 1)
        states = [state for report in progress(query) for state in report["stateOperators"]]
    assert [(state["numRowsTotal"], state["numRowsUpdated"]) for state in states] == [(KEYS, KEYS)] * 2
    unregister(spark)
    with running(totals.writer.trigger(availableNow=True), tmp_path) as query:
        assert query.awaitTermination(60)
        assert looks_up(query)
    assert totals.found == expected(columns, 3)


def test_the_first_batch_of_a_query_that_nobody_plans_is_planned_as_spark_does(
    spark: SparkSession, tmp_path: Path
) -> None:
    with running(Totals(spark, COUNTED).writer.trigger(availableNow=True), tmp_path) as query:
        assert query.awaitTermination(60)
        assert looks_up(query)
