"""Results of a backfill as Parquet: which columns it cannot keep, asked of the Spark that is to write them."""

from __future__ import annotations

from pyspark.sql import DataFrame


def unwritable(rows: DataFrame) -> list[str]:
    """Return the columns whose types Parquet does not have, such as an interval of months and days."""
    parquet = rows.sparkSession._jvm.org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat()
    fields = rows._jdf.schema().fields()
    return [field.name() for field in fields if not parquet.supportDataType(field.dataType())]
