"""Python Data Sources of the three kinds that PySpark has, each with a thousand rows and no more, and a broken one.

Each class is made inside a function, so that it travels to PySpark's workers by value: they cannot import tests.
"""

# ruff: noqa: N802 -- Spark calls these methods by name

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

TOTAL = 1000
"""Rows that each source has; there are no more."""


def limited_reader(spark: SparkSession, *, declares_limit: bool) -> str:
    """A reader with `latestOffset(start, limit)`; returns its format."""
    from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows

    total = TOTAL

    class Reader(DataSourceStreamReader):  # type: ignore[misc]
        def initialOffset(self) -> dict[str, int]:
            return {"row": 0}

        def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
            asked = limit.max_rows if isinstance(limit, ReadMaxRows) else total
            return {"row": min(total, start["row"] + asked)}

        def getDefaultReadLimit(self) -> ReadLimit:
            return ReadMaxRows(1) if declares_limit else ReadAllAvailable()

        def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
            return [InputPartition((start["row"], end["row"]))]

        def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
            yield from ((row,) for row in range(*partition.value))

    class Limited(DataSource):  # type: ignore[misc]
        @classmethod
        def name(cls) -> str:
            return f"limited_{declares_limit}".lower()

        def schema(self) -> str:
            return "row long"

        def streamReader(self, schema: Any) -> Reader:
            return Reader()

    spark.dataSource.register(Limited)
    return Limited.name()


def limited_in_bytes(spark: SparkSession) -> str:
    """A reader whose own limit is 4,000 bytes, of which a row has ten; returns its format."""
    return _limited_in(spark, "bytes", own=4000, rows_in_one=0.1)


def limited_in_files(spark: SparkSession) -> str:
    """A reader whose own limit is one file, and a file has a hundred rows; returns its format."""
    return _limited_in(spark, "files", own=1, rows_in_one=100)


def _limited_in(spark: SparkSession, unit: str, *, own: int, rows_in_one: float) -> str:
    from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
    from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxBytes, ReadMaxFiles

    total = TOTAL

    class Reader(DataSourceStreamReader):  # type: ignore[misc]
        def initialOffset(self) -> dict[str, int]:
            return {"row": 0}

        def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
            units = getattr(limit, f"max_{unit}", total)  # another unit is none
            return {"row": min(total, start["row"] + int(units * rows_in_one))}

        def getDefaultReadLimit(self) -> ReadLimit:
            return ReadMaxBytes(own) if unit == "bytes" else ReadMaxFiles(own)

        def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
            return [InputPartition((start["row"], end["row"]))]

        def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
            yield from ((row,) for row in range(*partition.value))

    class Limited(DataSource):  # type: ignore[misc]
        @classmethod
        def name(cls) -> str:
            return f"limited_in_{unit}"

        def schema(self) -> str:
            return "row long"

        def streamReader(self, schema: Any) -> Reader:
            return Reader()

    spark.dataSource.register(Limited)
    return Limited.name()


def unlimited_reader(spark: SparkSession) -> str:
    """A reader of the first kind, which has only `latestOffset()`; returns its format.

    It begins at "now": each time it is asked for its beginning, that is one row later.
    """
    from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

    total = TOTAL

    class Reader(DataSourceStreamReader):  # type: ignore[misc]
        now = -1

        def initialOffset(self) -> dict[str, int]:
            self.now += 1
            return {"row": self.now}

        def latestOffset(self) -> dict[str, int]:
            return {"row": total}

        def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
            return [InputPartition((start["row"], end["row"]))]

        def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
            yield from ((row,) for row in range(*partition.value))

    class Unlimited(DataSource):  # type: ignore[misc]
        @classmethod
        def name(cls) -> str:
            return "unlimited"

        def schema(self) -> str:
            return "row long"

        def streamReader(self, schema: Any) -> Reader:
            return Reader()

    spark.dataSource.register(Unlimited)
    return Unlimited.name()


def counted_reader(spark: SparkSession, looks: Path) -> str:
    """Register a reader of one row, which adds a byte to a file whenever it is asked how far it goes."""
    from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

    class Reader(DataSourceStreamReader):  # type: ignore[misc]
        def initialOffset(self) -> dict[str, int]:
            return {"row": 0}

        def latestOffset(self) -> dict[str, int]:
            with looks.open("ab") as file:
                file.write(b".")
            return {"row": 1}

        def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
            return [InputPartition(range(start["row"], end["row"]))]

        def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
            return ((row,) for row in partition.value)

    class Counted(DataSource):  # type: ignore[misc]
        @classmethod
        def name(cls) -> str:
            return "counted"

        def schema(self) -> str:
            return "id bigint"

        def streamReader(self, schema: Any) -> Reader:
            return Reader()

    spark.dataSource.register(Counted)
    return "counted"


def broken_reader(spark: SparkSession) -> str:
    """A reader that cannot tell its latest offset; returns its format."""
    from pyspark.sql.datasource import DataSource, DataSourceStreamReader

    class Reader(DataSourceStreamReader):  # type: ignore[misc]
        def initialOffset(self) -> dict[str, int]:
            return {"row": 0}

        def latestOffset(self) -> dict[str, int]:
            raise ValueError("there is no such table")

        def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[Any]:
            return []

        def read(self, partition: Any) -> Iterator[tuple[int]]:
            return iter([])

    class Broken(DataSource):  # type: ignore[misc]
        @classmethod
        def name(cls) -> str:
            return "broken"

        def schema(self) -> str:
            return "row long"

        def streamReader(self, schema: Any) -> Reader:
            return Reader()

    spark.dataSource.register(Broken)
    return Broken.name()


def simple_reader(spark: SparkSession) -> str:
    """A reader that reads and tells how far it came in one; returns its format."""
    from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader

    total = TOTAL

    class Reader(SimpleDataSourceStreamReader):  # type: ignore[misc]
        def initialOffset(self) -> dict[str, int]:
            return {"row": 0}

        def read(self, start: dict[str, int]) -> tuple[Iterator[tuple[int]], dict[str, int]]:
            end = min(total, start["row"] + 400)
            return iter([(row,) for row in range(start["row"], end)]), {"row": end}

        def readBetweenOffsets(self, start: dict[str, int], end: dict[str, int]) -> Iterator[tuple[int]]:
            return iter([(row,) for row in range(start["row"], end["row"])])

    class Simple(DataSource):  # type: ignore[misc]
        @classmethod
        def name(cls) -> str:
            return "simple"

        def schema(self) -> str:
            return "row long"

        def simpleStreamReader(self, schema: Any) -> Reader:
            return Reader()

    spark.dataSource.register(Simple)
    return Simple.name()


def limited_with_default(spark: SparkSession) -> str:
    return limited_reader(spark, declares_limit=True)


def limited_without_default(spark: SparkSession) -> str:
    return limited_reader(spark, declares_limit=False)
