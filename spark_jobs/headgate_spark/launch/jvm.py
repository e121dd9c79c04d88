"""How the JVM that a script started has ended.

A task that finds no memory where the driver does the work takes the whole JVM with it, and nobody is left in there to
say why. Its exit code does: Spark ends it with 52, the kernel, where a container has no more to give, with SIGKILL.
People and nodes send that signal as well; the kernel's own count tells which it was.
"""

from __future__ import annotations

import signal
from subprocess import Popen, TimeoutExpired
from typing import Any

import structlog

from headgate_spark.engine.oom_kills import OomKills

log = structlog.get_logger("headgate")

SPARK_OUT_OF_MEMORY = 52
"""Spark's own `SparkExitCode.OOM`."""
END_SECONDS = 30.0
"""How long a JVM that is ending may take for it: without memory its shutdown is slow."""


def oom_kills(spark_context: Any) -> OomKills | None:
    """Begin to count what the kernel kills in the JVM's control group; `None` where the JVM is not ours."""
    process = _process(spark_context)
    return None if process is None else OomKills(process.pid)


def ran_out_of_memory(spark_context: Any, kills: OomKills | None) -> bool | None:
    """Tell whether the JVM of a context has ended for want of memory; False while it lives.

    `None`: it was killed, and nothing tells why.
    """
    process = _process(spark_context)
    if process is None or _goes_on(spark_context):
        return False
    try:
        code = process.wait(END_SECONDS)
    except TimeoutExpired:
        return False
    if code != -signal.SIGKILL:
        return code == SPARK_OUT_OF_MEMORY
    killed = None if kills is None else kills.tell()
    if killed is False:
        log.error(
            "the driver's JVM was killed, and not for want of memory: the kernel counts no such kill. Its batch runs "
            "again as it is"
        )
    return killed


def _process(spark_context: Any) -> Popen[bytes] | None:
    """Return the JVM that a context was started in; `None`: somebody else has started it."""
    return getattr(getattr(spark_context, "_gateway", None), "proc", None)


def _goes_on(spark_context: Any) -> bool:
    """Tell whether the JVM is not ending. One that is still answers for a while, but its own hook has stopped Spark.

    PySpark lets go of a context that the script itself has stopped.
    """
    try:
        answers = bool(spark_context._jvm.java.lang.System.nanoTime())
        java_context = getattr(spark_context, "_jsc", None)
        return answers and (java_context is None or not java_context.sc().isStopped())
    except Exception:  # a JVM that is ending fails in many ways
        return False
