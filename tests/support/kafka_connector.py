"""Spark's Kafka source for the Spark that is installed: which jars it takes, and how a session is told of them."""

from __future__ import annotations

from pathlib import Path

from support.maven import JarsMissingError, jars
from support.requirements import missing

CONNECTOR = "spark-kafka"


def connector_jars() -> tuple[Path, ...]:
    """Return the jars; where they cannot be had the test is skipped, and in CI fails."""
    try:
        return jars(CONNECTOR)
    except JarsMissingError as error:
        missing(str(error))


def connector_conf() -> dict[str, str]:
    """Return the Spark settings that load the jars as `--packages` would; none where they cannot be had."""
    try:
        return {"spark.jars": ",".join(str(jar) for jar in jars(CONNECTOR))}
    except JarsMissingError:
        return {}
