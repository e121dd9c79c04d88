"""Results that are written as files, by this job or by another engine, and what they come to.

They are counted and hashed like results that are dropped, but after the run: one that another engine has written
gets the same two numbers by the same code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (as everybody writes it)
from pyspark.sql.types import ArrayType, StructType
from workloads import Result

COLUMNS = {
    "aggregation": "key long, records long, total long",
    "outage": "key long, records long, total long",
    "marked": "key long, records long, total long",
    "cogroup": "key long, `left` array<long>, `right` array<long>",
    "cogroup_100": "key long, `left` array<long>, `right` array<long>",
    "join": "key long, `left` long, left_at timestamp, `right` long, right_at timestamp",
    "windows": "start timestamp, key long, records long, total long",
    "deduplication": "key long, slot long",
}
"""What identifies the rows of a workload, as `Result.identity` has it."""
TIMES = "times"
"""How often a row counts."""


def short_hash(identity: Sequence[str]) -> Column:
    """Return 32 bits of the hash of a row, so that the sum over all of them is a number of 64."""
    return F.xxhash64(*identity).bitwiseAND(F.lit(0xFFFFFFFF))


def whole_rows(result: Result) -> DataFrame:
    """Return the rows of a result that count."""
    rows = result.rows if result.is_whole is None else result.rows.where(result.is_whole)
    return rows.select(*result.identity)


def to_files(directory: str) -> Callable[[DataFrame, int], None]:
    """Return the sink that adds each batch of a stream to the files of a directory."""

    def add(batch: DataFrame, number: int) -> None:  # noqa: ARG001 -- no batch comes twice here
        batch.write.mode("append").json(directory)

    return add


def of_files(spark: SparkSession, workload: str, directory: str) -> dict[str, int]:
    """Return what a result comes to that this job has written."""
    columns = StructType.fromDDL(COLUMNS[workload])
    rows = spark.read.schema(columns).json(directory)
    return counted(rows.withColumn(TIMES, F.lit(1)), columns.names)


def of_changelog(spark: SparkSession, workload: str, directory: str) -> dict[str, int]:
    """Return what a result comes to that is a changelog in Debezium's JSON: rows that came, less those taken back.

    The order in a list does not count.
    """
    columns = StructType.fromDDL(COLUMNS[workload])
    schema = StructType().add("before", columns).add("after", columns).add("op", "string")
    lines = spark.read.schema(schema).json(directory)
    times = F.when(F.col("op") == "d", -1).otherwise(1).alias(TIMES)
    lists = {each.name: F.sort_array(each.name) for each in columns if isinstance(each.dataType, ArrayType)}
    rows = lines.select(F.coalesce("after", "before").alias("row"), times).select("row.*", TIMES)
    rows = rows.withColumns(lists) if lists else rows
    return counted(rows, columns.names)


def counted(rows: DataFrame, identity: Sequence[str]) -> dict[str, int]:
    """Return the number of rows and the sum of their hashes; the sum over no rows is 0."""
    found = rows.agg(
        F.sum(TIMES).alias("rows"), F.sum(short_hash(identity) * F.col(TIMES)).alias("hash")
    ).first()
    return {name: found[name] or 0 for name in ("rows", "hash")}
