"""What the operator assumes of `spark.sql.streaming.checkpointLocation` when it compares applications."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PROPERTY = "spark.sql.streaming.checkpointLocation"


def test_each_query_has_a_checkpoint_of_its_own_name_below_the_folder(
    spark: SparkSession, tmp_path: Path
) -> None:
    session = spark.newSession()
    session.conf.set(PROPERTY, str(tmp_path))
    for name in ("delays", "totals"):
        rows = session.readStream.format("rate").load()
        query = rows.writeStream.queryName(name).format("noop").trigger(availableNow=True).start()
        query.awaitTermination()
    assert sorted(path.parent.name for path in tmp_path.glob("*/offsets")) == ["delays", "totals"]
