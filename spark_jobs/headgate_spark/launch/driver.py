"""The driver under `headgate-run`, seen from the process that runs the script."""

from __future__ import annotations

import functools
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from subprocess import Popen, TimeoutExpired
from typing import Any

import structlog

from headgate_spark import event_time
from headgate_spark.engine.oom_kills import OomKills
from headgate_spark.engine.shim import DriverJvm, require_protocol
from headgate_spark.launch.environment import refuse_connect, require_java
from headgate_spark.launch.planner import PlannerProcess
from headgate_spark.launch.stopping import Stopper
from headgate_spark.runtime.answers import End, read

log = structlog.get_logger("headgate")

GONE = (OSError, EOFError, RuntimeError)
"""What asking raises where the planner's process is gone, or fails."""
NEXT_SECONDS = 30.0
"""How long a stop waits for the next one."""
AGAIN_SECONDS = 0.5


class LaunchedDriver:
    """The script's side of it: what the planner's process is asked, and what only this process can see."""

    def __init__(self, planner: PlannerProcess) -> None:
        self._planner = planner
        self._context: Any = None
        self._oom_kills: OomKills | None = None
        self.stopper = Stopper(self._step_of_stop)

    def start(self) -> None:
        """Take over signals, and what the script does with PySpark."""
        wrap_pyspark(self._register, self.stopper.no_leaving)
        event_time.send_by(self._planner.decode)
        self.stopper.install()
        self.stopper.start()
        threading.Thread(target=self._await_wish, name="headgate-wish", daemon=True).start()

    def end(self) -> End:
        """Finish what goes on behind the script's back, and return what to say; called when it has ended.

        Threads of the script may still go on, and queries with them: those are governed to the very end.
        """
        wants = ran_out_of_memory(self._context, self._oom_kills) if self._context is not None else False
        try:
            answer = self._planner.ask("end", {True: "yes", False: "no", None: "unknown"}[wants])
        except GONE as error:
            log.warning("nothing is known of how the queries have ended", error=str(error))
            return End(has_seen_query=True)
        return read(End, answer)

    def _step_of_stop(self, step: str) -> str | None:
        """Ask for a step of a stop. Where the planner's process dies over it, ask the next one, once that knows all
        queries and has come as far. Raises what asking raises where that goes on."""
        until = time.monotonic() + NEXT_SECONDS
        while True:
            try:
                return self._planner.ask(step)
            except GONE as error:
                if time.monotonic() >= until:
                    raise
                log.warning("the planner's process has failed in a stop; it is asked again", error=str(error))
            time.sleep(AGAIN_SECONDS)
            try:
                self._take_up()
            except Exception as error:  # the planner's process, or the JVM, which is ending perhaps
                log.debug("the next planner's process does not know all queries yet", error=str(error))

    def _take_up(self) -> None:
        """Have a planner's process that has come after another one do what that one has done of the stop."""
        if self._context is not None:
            DriverJvm.of(self._context).attach_anew()
        self._planner.ask("stop_planning")
        self._planner.ask("await_boundaries")

    def _await_wish(self) -> None:
        """Stop when the planner's process wants it: another try of a batch would only repeat a failure."""
        while True:
            try:
                self._planner.ask("await_wish")
            except GONE:
                time.sleep(AGAIN_SECONDS)  # there will be another one
            else:
                self.stopper.ask()
                return

    def _register(self, context: Any) -> None:
        """The script has a context. Raises `ShimError` where its queries could not be governed."""
        require_protocol(int(DriverJvm.of(context).shim("Shim").protocol()))
        self._context = context
        process = _process(context)
        self._oom_kills = None if process is None else OomKills(process.pid)
        self.stopper.install()


SPARK_OUT_OF_MEMORY = 52
"""Spark's own `SparkExitCode.OOM`."""
END_SECONDS = 30.0
"""How long a JVM that is ending may take for it: without memory its shutdown is slow."""


def ran_out_of_memory(spark_context: Any, kills: OomKills | None) -> bool | None:
    """Tell whether the JVM of a context has ended for want of memory; False while it lives.

    `None`: it was killed, and nothing tells why.

    A task that finds no memory where the driver does the work takes the whole JVM with it, and nobody is left in
    there to say why. Its exit code does: Spark ends it with 52, the kernel, where a container has no more to give,
    with SIGKILL. People and nodes send that signal as well; the kernel's own count tells which it was.
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


def wrap_pyspark(
    register: Callable[[Any], None], no_leaving: Callable[[], AbstractContextManager[None]]
) -> None:
    """Wrap PySpark's classes for the life of this process.

    `register` is given each SparkContext that is made; `no_leaving` surrounds the start of the JVM.

    Queries are governed in the JVM, whatever has started them. Here it is only the process that counts: Spark Connect
    is refused with a reason; the start of a JVM is not cut off by a stop; PySpark takes SIGINT for itself with each
    context, and gives it back; and how the JVM ends is watched from its start.
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
