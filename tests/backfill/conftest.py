"""Fixtures of the tests that join streams."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from support.spark import shared_session


@pytest.fixture
def spark() -> Iterator[SparkSession]:
    """The session that all tests of the run share, with one task a stage: the rows here are a few dozen."""
    session = shared_session()
    before = session.conf.get("spark.sql.shuffle.partitions")
    session.conf.set("spark.sql.shuffle.partitions", "1")
    yield session
    session.conf.set("spark.sql.shuffle.partitions", before)
