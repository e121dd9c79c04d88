"""The start and the end of the planner's process.

It is started by the driver's JVM, or by `headgate-run` before there is one. One line on standard input says how it is
to run, one on standard output where it listens or why it cannot; after that standard output is as standard error. It
ends when its standard input does, that is, with whoever has started it, and by no signal: a stop that is sent to all
of a driver's processes must not take the planner away from batches that are to be ended.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from typing import NoReturn, TextIO

from headgate_spark.engine import garbage
from headgate_spark.engine.questions import Questions
from headgate_spark.runtime.driver import Runtime
from headgate_spark.runtime.logs import configure
from headgate_spark.runtime.settings import ProcessSettings

SWITCH_SECONDS = 0.0005
"""How long a thread that computes may keep the interpreter's lock from another: a query asks and waits, while the
planning of a larger one takes milliseconds. By default ten times as long."""


def _refuse(answers: TextIO, reason: str) -> NoReturn:
    """Tell whoever has started it why it cannot run, and end."""
    print(json.dumps({"error": reason}), file=answers, flush=True)
    sys.exit(1)


def main() -> None:
    """Run until standard input ends; ends the process."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    sys.setswitchinterval(SWITCH_SECONDS)
    garbage.look_rarely()
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    configure()
    try:
        settings = ProcessSettings.parse(sys.stdin.readline())
    except ValueError as error:
        _refuse(answers, str(error))
    runtime = Runtime(settings)
    try:
        metrics_port = runtime.start()
    except (OSError, OverflowError) as error:  # the last: all ports from the one given on are taken
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        _refuse(answers, settings.without_metrics(reason))
    listening = None if settings.listening is None else socket.socket(fileno=settings.listening)
    questions = Questions(runtime.verbs(), settings.token, listening)
    questions.start()
    print(json.dumps({"port": questions.port, "metricsPort": metrics_port}), file=answers, flush=True)
    sys.stdin.read()
    questions.close()
    runtime.governor.table.strangers.tell_at_end()
    if settings.follows_jvm:
        runtime.jvm_is_gone()
    os._exit(0)  # threads may wait for brokers and for disks
