"""A round trip with nothing in it: what the machine takes to wake up one process and then another.

A process answers questions as the planner's process does, but with nothing to compute, and this one asks it as often
as a query plans. Beside what is measured it tells how much of it is the machine's: on a busy one, most of the rare
long ones.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from benchmarks.local.statistics import percentile
from headgate_spark.engine.questions import Questions, ask, send

TOKEN = "bare"
EVERY_SECONDS = 0.1


@contextmanager
def round_trips() -> Iterator[list[float]]:
    """Ask while the block runs; the list that is given grows by the seconds of each round trip."""
    command = [sys.executable, "-m", __name__]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        seconds: list[float] = []
        port, ended = int(process.stdout.readline()), threading.Event()
        asking = threading.Thread(target=_ask, args=(port, ended, seconds))
        asking.start()
        try:
            yield seconds
        finally:
            ended.set()
            asking.join()
            process.stdin.close()


def in_details(seconds: Sequence[float]) -> dict[str, float]:
    """Return what is said of round trips beside a figure."""
    return {f"bare_p{percent}_seconds": percentile(seconds, percent) for percent in (50, 99)}


def _ask(port: int, ended: threading.Event, seconds: list[float]) -> None:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        send(connection, [TOKEN])
        while not ended.wait(EVERY_SECONDS):
            began = time.perf_counter()
            ask(connection, "bare", "a question of no meaning")
            seconds.append(time.perf_counter() - began)


def main() -> None:
    """Answer until standard input ends."""
    questions = Questions({"bare": lambda question: question}, TOKEN)
    questions.start()
    print(questions.port, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
