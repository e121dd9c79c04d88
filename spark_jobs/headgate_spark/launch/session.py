"""The starts of sessions in the script: what is refused there, and what this process has to do beside them.

Queries are governed in the JVM, whatever has started them. Here it is only the process that counts: Spark Connect is
refused with a reason; the start of a JVM is not cut off by a stop; PySpark takes SIGINT for itself with each context,
and gives it back; and how the JVM ends is watched from its start.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from headgate_spark.launch.environment import refuse_connect, require_java

Register = Callable[[Any], None]
Surround = Callable[[], AbstractContextManager[None]]


def wrap_pyspark(register: Register, no_leaving: Surround) -> None:
    """Wrap PySpark's classes for the life of this process.

    `register` is given each SparkContext that is made; `no_leaving` surrounds the start of the JVM.
    """
    from pyspark.core import context
    from pyspark.sql import SparkSession

    launch_gateway = context.launch_gateway
    get_or_create = SparkSession.Builder.getOrCreate
    do_init = context.SparkContext._do_init

    @functools.wraps(launch_gateway)
    def launched(*args: Any, **kwargs: Any) -> Any:
        require_java(os.environ)
        with no_leaving():
            return launch_gateway(*args, **kwargs)

    @functools.wraps(get_or_create)
    def got_or_created(builder: Any) -> Any:
        refuse_connect(builder._options)
        return get_or_create(builder)

    @functools.wraps(do_init)
    def initialized(spark_context: Any, *args: Any, **kwargs: Any) -> None:
        do_init(spark_context, *args, **kwargs)
        register(spark_context)

    context.launch_gateway = launched
    SparkSession.Builder.getOrCreate = got_or_created
    context.SparkContext._do_init = initialized
