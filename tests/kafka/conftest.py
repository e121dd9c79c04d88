"""Fixtures of the tests that run queries on a real broker."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from support.kafka_connector import connector_jars
from support.spark import one_task_a_stage, shared_session

__all__ = ["one_task_a_stage"]


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    """The session that all tests of the run share, with Spark's Kafka source."""
    connector_jars()
    return shared_session()
