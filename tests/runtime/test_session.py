"""The three things that PySpark is surrounded with in the script's process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pyspark.core import context
from pyspark.sql import SparkSession

from headgate_spark.launch.driver import wrap_pyspark
from headgate_spark.launch.environment import UnsupportedSessionError


class Spark:
    """PySpark with nothing behind it: what is called, in which order, with what put off meanwhile."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.registered: list[object] = []

    @contextmanager
    def no_leaving(self) -> Iterator[None]:
        self.told.append("no leaving")
        yield
        self.told.append("leaving again")

    def called(self, name: str) -> str:
        self.told.append(name)
        return name


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch) -> Spark:
    spark = Spark()
    monkeypatch.setattr(context, "launch_gateway", lambda *_, **__: spark.called("gateway"))
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", lambda _: spark.called("session"))
    monkeypatch.setattr(context.SparkContext, "_do_init", lambda *_, **__: spark.called("context"))

    def register(made: object) -> None:
        spark.called("registered")
        spark.registered.append(made)

    wrap_pyspark(register, spark.no_leaving)
    return spark


def test_a_stop_does_not_cut_off_the_start_of_a_jvm(spark: Spark) -> None:
    assert context.launch_gateway(conf=None) == "gateway"
    assert spark.told == ["no leaving", "gateway", "leaving again"]


def test_no_jvm_is_started_where_there_is_no_java(spark: Spark, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/none")
    with pytest.raises(UnsupportedSessionError, match="Spark needs Java: JAVA_HOME is /none"):
        context.launch_gateway()
    assert spark.told == []


def test_a_session_of_a_server_elsewhere_is_refused_before_it_is_made(spark: Spark) -> None:
    builder = SparkSession.Builder().config("spark.remote", "sc://127.0.0.1:1")
    with pytest.raises(UnsupportedSessionError, match="asks for a Spark Connect session"):
        builder.getOrCreate()
    assert spark.told == []
    assert SparkSession.Builder().getOrCreate() == "session"


def test_each_context_is_known_once_it_is_whole_whoever_makes_it(spark: Spark) -> None:
    made = [object.__new__(context.SparkContext) for _ in range(2)]
    for one in made:
        one._do_init("local[1]", "flights")
    assert spark.registered == made
    assert spark.told == ["context", "registered"] * 2
