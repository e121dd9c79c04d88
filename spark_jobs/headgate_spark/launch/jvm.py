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
END_SECONDS = 30.0
"""How long a JVM that is ending may take for it: without memory its shutdown is slow."""


def ran_out_of_memory(spark_context: Any) -> bool:
    """Tell whether the JVM of a context has ended for want of memory; False while it lives."""
    process = getattr(getattr(spark_context, "_gateway", None), "proc", None)
    if process is None or _goes_on(spark_context):
        return False
    try:
        code = process.wait(END_SECONDS)
    except TimeoutExpired:
        return False
    return code in (SPARK_OUT_OF_MEMORY, -signal.SIGKILL)


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
