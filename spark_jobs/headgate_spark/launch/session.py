"""The public methods of PySpark that are wrapped, so that the script needs no changed line.

`Builder.getOrCreate`: Spark Connect is refused with a reason; the planner is registered with the JVM.
`DataStreamWriter.trigger`: a processing-time trigger becomes a short base, at which the planner is asked; the
interval that the job asked for is kept and becomes the gate. `DataStreamWriter.start` and `toTable`: the
planner is told the query's trigger (and registered, for a session that was made without the builder).
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any

import structlog

from headgate_spark.engine import shim
from headgate_spark.engine.governor import Governor
from headgate_spark.engine.run import PySparkQuery, Started
from headgate_spark.engine.watermarks import smallest_delay, watermarks, watermarks_below_union
from headgate_spark.launch import garbage
from headgate_spark.launch.environment import refuse_connect, require_java
from headgate_spark.launch.unfinished import Unfinished
from headgate_spark.planner.model import Trigger, TriggerKind

log = structlog.get_logger("headgate")

BASE = "100 milliseconds"
"""How often the planner is asked; also the shortest interval that a query can have."""

FALLING_BEHIND = (
    "org.apache.spark.sql.execution.streaming.ProcessingTimeExecutor",  # Spark 4.0
    "org.apache.spark.sql.execution.streaming.runtime.ProcessingTimeExecutor",
)
"""Loggers that warn of each trigger that takes longer than its interval: under the short base, of every batch."""

_ATTRIBUTE = "_headgate_trigger"

Register = Callable[[Any], None]
Surround = Callable[[], AbstractContextManager[None]]


def wrap_pyspark(
    governor: Governor, register: Register, no_leaving: Surround, unfinished: Unfinished
) -> None:
    """Wrap PySpark's classes for the life of this process.

    `register` is given the SparkContext; `no_leaving` surrounds the start of the JVM; `unfinished` knows which runs a
    stop has cut short.
    """
    from pyspark.core import context
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery, StreamingQueryManager
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    launch_gateway = context.launch_gateway

    @functools.wraps(launch_gateway)
    def launched(*args: Any, **kwargs: Any) -> Any:
        require_java(os.environ)
        with no_leaving():
            return launch_gateway(*args, **kwargs)

    context.launch_gateway = launched
    _wrap(SparkSession.Builder, "getOrCreate", functools.partial(_get_or_create, register))
    original_trigger = DataStreamWriter.trigger
    _wrap(DataStreamWriter, "trigger", _trigger)
    for name in ("start", "toTable"):
        _wrap(DataStreamWriter, name, functools.partial(_start, governor, register, original_trigger))
        _wrap(DataStreamWriter, name, functools.partial(_unless_stopping, governor, unfinished))
    _wrap(StreamingQuery, "awaitTermination", functools.partial(_await_termination, unfinished))
    _wrap(StreamingQueryManager, "awaitAnyTermination", functools.partial(_await_any, unfinished))


def _wrap(owner: type, name: str, around: Callable[..., Any]) -> None:
    original = getattr(owner, name)

    @functools.wraps(original)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        return around(original, self, *args, **kwargs)

    setattr(owner, name, wrapper)


def _get_or_create(register: Register, original: Callable[..., Any], builder: Any) -> Any:
    refuse_connect(builder._options)
    session = original(builder)
    register(session.sparkContext)
    return session


def _trigger(original: Callable[..., Any], writer: Any, **asked: Any) -> Any:
    original(writer, **asked)  # Spark's own checks first
    given = {key: value for key, value in asked.items() if value is not None}
    if "processingTime" in given:
        setattr(
            writer,
            _ATTRIBUTE,
            Trigger(TriggerKind.PROCESSING_TIME, _seconds(writer, given["processingTime"])),
        )
        _silence(writer._spark._sc._jvm, FALLING_BEHIND)
        return original(writer, processingTime=BASE)
    if "availableNow" in given:
        setattr(writer, _ATTRIBUTE, Trigger(TriggerKind.AVAILABLE_NOW))
    elif "once" in given:
        setattr(writer, _ATTRIBUTE, Trigger(TriggerKind.ONCE))
    else:
        setattr(writer, _ATTRIBUTE, next(iter(given)))  # `continuous`, `realTime`: Spark plans no batches
    return writer


def _await_termination(
    unfinished: Unfinished, original: Callable[..., Any], query: Any, *args: Any, **kwargs: Any
) -> Any:
    """Wait as Spark does; what a stop has cut short does not return, since the script would take it for complete."""
    ended = original(query, *args, **kwargs)
    if unfinished.is_cut(query.runId):
        raise unfinished.end()
    return ended


def _await_any(
    unfinished: Unfinished, original: Callable[..., Any], queries: Any, *args: Any, **kwargs: Any
) -> Any:
    """Wait as Spark does; where a stop has cut one short, none has come to its end."""
    ended = original(queries, *args, **kwargs)
    if unfinished:
        raise unfinished.end()
    return ended


def _silence(jvm: Any, loggers: Iterable[str]) -> None:
    """Let loggers of the JVM speak of errors only; where that is not Log4j, they go on as they are."""
    try:
        for name in loggers:
            jvm.org.apache.logging.log4j.core.config.Configurator.setLevel(
                name, jvm.org.apache.logging.log4j.Level.ERROR
            )
    except Exception as error:
        log.debug("Spark's warnings of long triggers stay on", error=str(error))


def _seconds(writer: Any, interval: str) -> float:
    trigger = getattr(writer._spark._sc._jvm, "org.apache.spark.sql.streaming.Trigger")
    return float(trigger.ProcessingTime(interval.strip()).intervalMs()) / 1000


def _unless_stopping(
    governor: Governor,
    unfinished: Unfinished,
    original: Callable[..., Any],
    writer: Any,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Start a query, or end the script where a stop was asked for: the query would start only to be held."""
    if not governor.stopping:
        return original(writer, *args, **kwargs)
    asked = getattr(writer, _ATTRIBUTE, None)
    if isinstance(asked, Trigger) and asked.kind is not TriggerKind.PROCESSING_TIME:
        unfinished.cut_script()
    raise unfinished.end() if unfinished else SystemExit(0)


def _start(
    governor: Governor,
    register: Register,
    set_trigger: Callable[..., Any],
    original: Callable[..., Any],
    writer: Any,
    *args: Any,
    **kwargs: Any,
) -> Any:
    register(writer._spark.sparkContext)
    if not hasattr(writer, _ATTRIBUTE):
        _silence(writer._spark._sc._jvm, FALLING_BEHIND)
        set_trigger(writer, processingTime=BASE)
    asked: Trigger | str = getattr(writer, _ATTRIBUTE, Trigger())
    trigger = asked if isinstance(asked, Trigger) else None
    with governor.start_of_query() as started:
        query = original(writer, *args, **kwargs)
        try:
            started(query.runId, _described(writer, query, trigger))
        except BaseException:
            query.stop()  # it would run, and nobody would govern it
            raise
    governor.begins(query.name or query.id, unplanned_by=asked if isinstance(asked, str) else None)
    garbage.set_aside_soon()
    return query


def _described(writer: Any, query: Any, trigger: Trigger | None) -> Started:
    """Return what is to be known of a query that has started; `None`: with its trigger, Spark plans no batches."""
    plan = writer._df._jdf.queryExecution().analyzed().toString()
    return Started(
        trigger or Trigger(),
        trigger is not None,
        PySparkQuery(query, shim.progress(writer._spark.sparkContext)),
        smallest_delay(plan),
        watermarks_below_union(plan),
        watermarks(plan),
        query.name or query.id,
    )
