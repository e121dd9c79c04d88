"""Fixtures of the tests that run real queries."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from headgate_spark.engine import shim
from support.spark import ScriptedPlanner, governed, shared_session


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    """The session that all tests of the run share."""
    return shared_session()


@pytest.fixture
def planner(spark: SparkSession) -> Iterator[ScriptedPlanner]:
    """A planner that holds everything until it is told otherwise, in charge of all streams."""
    scripted = ScriptedPlanner()
    shim.set_patience(spark.sparkContext, call_budget_seconds=5, patience_seconds=60)
    with governed(spark, scripted):
        yield scripted
