"""Where our jar cannot govern: on a Spark that it is not for, or in a session that was there before it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import UnsupportedOperationException
from pyspark.sql import SparkSession

from headgate_spark.engine.shim import jar_path

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    ("version", "is_taken"),
    [("3.5.6", False), ("2.4.8", False), ("4.0.0", True), ("4.4.0-SNAPSHOT", True), ("10.0.1", True)],
)
def test_a_spark_that_is_older_than_what_the_jar_is_for_is_named_with_the_remedy(
    spark: SparkSession, version: str, is_taken: bool
) -> None:
    problem = spark._jvm.dev.headgate.spark.OtherSpark.problem(version)
    assert (problem is None) == is_taken
    assert is_taken or f"this is {version}; take the jar off" in problem


LIMIT = {"spark.headgate.rateLimit.recordsPerSecond": "5"}
OF_ONE = {"spark.headgate.queries.copy.sources.orders.alignment.group": "all"}


@pytest.mark.parametrize(
    ("properties", "of_driver", "ends"),
    [
        ({}, {}, False),
        ({"spark.headgate.interval": "5s"}, {}, False),
        (LIMIT, {}, True),
        (OF_ONE, {}, True),
        ({}, {"spark.headgate.control": "paused"}, True),
        ({}, {"spark.headgate.control": "paced"}, False),
        ({}, {"spark.headgate.onFailure": "fail"}, True),
        ({}, {"spark.headgate.onFailure": "contiune"}, True),
        ({}, {"spark.headgate.planner.address": "of headgate-run"}, True),
        (LIMIT, {"spark.headgate.onFailure": "continue"}, False),
        (LIMIT, {"spark.headgate.enabled": "false"}, False),
    ],
)
def test_where_a_session_has_no_extension_those_streams_end_that_would_end_without_a_planner(
    spark: SparkSession, tmp_path: Path, properties: dict[str, str], of_driver: dict[str, str], ends: bool
) -> None:
    """What is not there is a name of a query: any that is protected counts."""
    for name, member in (("paused", "paused"), ("paced", "backlog")):
        document = {"queries": {"copy": {"sources": {"orders": {member: True}}}}}
        (tmp_path / name).write_text(json.dumps(document))
    conf = spark._jvm.org.apache.spark.SparkConf(False)
    for key, value in of_driver.items():
        conf.set(key, str(tmp_path / value) if key.endswith("control") else value)
    end = spark._jvm.dev.headgate.spark.LateJar.whyAStreamEnds(conf, properties)
    assert (end is not None) == ends
    assert not ends or end.startswith("it ends, ")


@pytest.mark.parametrize(
    ("said", "value", "protects"),
    [
        ("rateLimit.recordsPerSecond", "5", True),
        ("queries.copy.sources.orders.alignment.group", "all", True),
        ("queries.copy.eu.sources.orders.after", "that", False),
        ("paused", "true", True),
        ("paused", "false", False),
        ("interval", "1s", False),
    ],
)
def test_a_query_is_protected_by_what_is_said_of_all_and_of_itself(
    spark: SparkSession, said: str, value: str, protects: bool
) -> None:
    properties = spark._jvm.java.util.HashMap()
    properties.put(f"spark.headgate.{said}", value)
    assert (
        asked(spark, "Protection.byProperties", ("java.util.Map", properties), (STRING, "copy")) is protects
    )


STRING, CONF = "java.lang.String", "org.apache.spark.SparkConf"


def asked(spark: SparkSession, method: str, *arguments: tuple[str, object]) -> Any:
    """What a static method of ours returns, whoever may call it; an argument is a class and a value."""
    jvm, new_array = spark._jvm, spark.sparkContext._gateway.new_array
    find, (owner, name) = jvm.java.lang.Class.forName, method.split(".")
    types = new_array(jvm.java.lang.Class, len(arguments))
    values = new_array(jvm.java.lang.Object, len(arguments))
    for number, (kind, value) in enumerate(arguments):
        types[number], values[number] = find(kind), value
    found = find(f"dev.headgate.spark.{owner}").getDeclaredMethod(name, types)
    found.setAccessible(True)
    return found.invoke(None, values)


def test_what_is_no_python_and_a_word_for_failures_that_is_none_are_named_with_the_remedy(
    spark: SparkSession, tmp_path: Path
) -> None:
    conf = spark._jvm.org.apache.spark.SparkConf(False)
    conf.set("spark.headgate.python", str(tmp_path / "no-python"))
    conf.set("spark.headgate.onFailure", "contiune")
    with pytest.raises(Py4JJavaError) as failed:
        asked(spark, "PlannerProgram.start", (CONF, conf))
    remedy = "spark.headgate.python names it; if it is not there, name a Python 3.9 or newer in spark.headgate.python"
    assert remedy in str(failed.value)
    printed = asked(spark, "PlannerProgram.isNone", (CONF, conf), (STRING, "-u -c " + 100 * "x"))
    assert printed.startswith(
        f"spark.headgate.python names {tmp_path}/no-python, which is no Python that starts"
    )
    assert printed.endswith('xxx…"; name a Python 3.9 or newer in spark.headgate.python')
    named = asked(spark, "OnFailure.problemIn", (CONF, conf))
    assert named == 'spark.headgate.onFailure is "contiune"; write continue or fail, or leave it out'


def test_threads_of_the_planners_process_have_their_memory_from_one_heap(
    spark: SparkSession, tmp_path: Path
) -> None:
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\nprintf "%s" "$MALLOC_ARENA_MAX"\n')
    python.chmod(0o755)
    conf = spark._jvm.org.apache.spark.SparkConf(False)
    conf.set("spark.headgate.python", str(python))
    started = asked(spark, "PlannerProgram.start", (CONF, conf))
    assert started.getInputStream().readAllBytes() == b"1"


LACKING = """
public class Lacking extends java.net.URLClassLoader {
  private final java.util.List lacked;

  public Lacking(java.net.URL[] jars, ClassLoader parent, java.util.List lacked) {
    super(jars, parent);
    this.lacked = lacked;
  }

  protected Class loadClass(String name, boolean resolve) throws ClassNotFoundException {
    if (lacked.contains(name)) {
      throw new ClassNotFoundException(name);
    }
    if (!name.startsWith("dev.headgate.")) {
      return super.loadClass(name, resolve);
    }
    Class known = findLoadedClass(name);
    return known != null ? known : findClass(name);
  }
}
"""
"""Loads our jar anew, and has it miss classes."""

NOT_IN_3_5 = [
    "org.apache.spark.sql.artifact.ArtifactManager",
    "org.apache.spark.sql.catalyst.plans.logical.UnresolvedDataSource",
    "org.apache.spark.sql.classic.Dataset",
    "org.apache.spark.sql.classic.RuntimeConfig",
    "org.apache.spark.sql.classic.SparkSession",
    "org.apache.spark.sql.connector.read.streaming.ReadMaxBytes",
    "org.apache.spark.sql.execution.streaming.runtime.StreamExecution",
    "scala.collection.IterableOnce",
    "scala.collection.immutable.MapOps",
    "scala.jdk.javaapi.CollectionConverters",
]
"""All that our classes name of Spark and Scala and Spark 3.5.6 does not have: it is of Scala 2.12."""


@contextmanager
def lacking(spark: SparkSession) -> Iterator[None]:
    """Within, this thread finds sources by our jar's classes, loaded anew as on Spark 3.5. Py4J finds no others."""
    jvm, new_array = spark._jvm, spark.sparkContext._gateway.new_array
    thread = jvm.java.lang.Thread.currentThread()
    before = thread.getContextClassLoader()
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.cook(LACKING)
    jars, values = new_array(jvm.java.net.URL, 1), new_array(jvm.java.lang.Object, 3)
    jars[0] = jvm.java.net.URL(jar_path().as_uri())
    values[0], values[1], values[2] = jars, before, jvm.java.util.ArrayList(NOT_IN_3_5)
    loader = compiler.getClassLoader().loadClass("Lacking").getConstructors()[0].newInstance(values)
    thread.setContextClassLoader(loader)
    try:
        yield
    finally:
        thread.setContextClassLoader(before)
        loader.close()


def test_a_job_with_the_jar_on_spark_3_5_runs_on_but_for_a_stream_that_is_protected(
    spark: SparkSession, tmp_path: Path
) -> None:
    """What is missing there must not be noticed before the sentence is said."""
    rows = str(tmp_path / "rows")
    spark.range(3).write.parquet(rows)
    batch, stream = spark.read.schema("id LONG"), spark.readStream.schema("id LONG")
    with lacking(spark):
        assert stream.parquet(rows).isStreaming
    [(limit, value)] = LIMIT.items()
    of_driver = spark.sparkContext._jsc.sc().conf()
    spark.conf.set(limit, value)
    of_driver.set("spark.headgate.enabled", "true")  # which the session of these tests is not
    try:
        with lacking(spark):
            with pytest.raises(UnsupportedOperationException) as ended:
                stream.parquet(rows)
            assert batch.parquet(rows).count() == 3
    finally:
        of_driver.set("spark.headgate.enabled", "false")
        spark.conf.unset(limit)
    assert str(ended.value).startswith("Headgate cannot govern this query: its jar ")
