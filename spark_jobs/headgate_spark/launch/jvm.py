"""How the JVM that a script started has ended.

A task that finds no memory where the driver does the work takes the whole JVM with it, and nobody is left in there to
say why. Its exit code does: Spark ends it with 52, the kernel, where a container has no more to give, with SIGKILL.
"""

from __future__ import annotations

import signal
from subprocess import TimeoutExpired
from typing import Any

SPARK_OUT_OF_MEMORY = 52
"""Spark's own `SparkExitCode.OOM`."""
END_SECONDS = 15.0
"""How long a JVM that no longer answers may take to end: without memory its shutdown is slow."""


def ran_out_of_memory(spark_context: Any) -> bool:
    """Tell whether the JVM of a context has ended for want of memory; False while it lives."""
    process = getattr(getattr(spark_context, "_gateway", None), "proc", None)
    if process is None or _answers(spark_context):
        return False
    try:
        code = process.wait(END_SECONDS)
    except TimeoutExpired:
        return False
    return code in (SPARK_OUT_OF_MEMORY, -signal.SIGKILL)


def _answers(spark_context: Any) -> bool:
    try:
        return bool(spark_context._jvm.java.lang.System.nanoTime())
    except Exception:  # a JVM that is ending fails in many ways
        return False
