"""Fixtures of the tests that run queries on a real broker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from headgate_contract import QueryControl
from support.columnar import PROPERTY
from support.governed import Driver, driver_in
from support.kafka_connector import connector_jars
from support.spark import one_task_a_stage, shared_session

__all__ = ["one_task_a_stage"]


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    """The session that all tests of the run share, with Spark's Kafka source."""
    connector_jars()
    return shared_session()


@pytest.fixture
def driver(spark: SparkSession) -> Iterator[Driver]:
    """A driver whose one query has no settings, in a session that says nothing of how Kafka is read."""
    with driver_in(spark) as started:
        started.control(QueryControl())
        yield started
    spark.conf.unset(PROPERTY)
