"""Fixtures of the tests that run real queries."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from support.spark import ScriptedPlanner, be_patient, governed, one_task_a_stage, shared_session

__all__ = ["one_task_a_stage"]


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    """The session that all tests of the run share."""
    return shared_session()


@pytest.fixture
def planner(spark: SparkSession) -> Iterator[ScriptedPlanner]:
    """A planner that holds everything until it is told otherwise, in charge of all streams."""
    scripted = ScriptedPlanner()
    be_patient(spark)
    with governed(spark, scripted):
        yield scripted
