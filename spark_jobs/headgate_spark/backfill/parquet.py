"""Results of a backfill as Parquet: which columns it cannot keep, what was written, and whether it is still there."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from pyspark.sql import DataFrame, SparkSession

from headgate_spark.engine.directory import HadoopDirectory


def unwritable(rows: DataFrame) -> list[str]:
    """Return the columns whose types Parquet does not have, such as an interval of months and days."""
    parquet = rows.sparkSession._jvm.org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat()
    fields = rows._jdf.schema().fields()
    return [field.name() for field in fields if not parquet.supportDataType(field.dataType())]


def write(rows: DataFrame, root: str, table: str, **options: int) -> list[str]:
    """Write a table of a directory, over what is there of it, and return its files as `table/name`."""
    rows.write.mode("overwrite").options(**options).parquet(f"{root}/{table}")
    return [f"{table}/{name}" for name in _files(rows.sparkSession, root, table)]


def gone(spark: SparkSession, root: str, written: Iterable[str]) -> str | None:
    """Return the path of a file that was written and is not there any more; `None`: all are."""
    for table, files in groupby(written, lambda file: file.partition("/")[0]):
        there = {f"{table}/{name}" for name in _files(spark, root, table)}
        for file in files:
            if file not in there:
                return f"{root}/{file}"
    return None


def _files(spark: SparkSession, root: str, table: str) -> list[str]:
    names = directory(spark, f"{root}/{table}").names()
    return sorted(name for name in names if not name.startswith(("_", ".")))


def directory(spark: SparkSession, uri: str) -> HadoopDirectory:
    """Return a directory of any file system that Spark knows."""
    return HadoopDirectory(spark._jvm, lambda path: path.getFileSystem(spark._jsc.hadoopConfiguration()), uri)
