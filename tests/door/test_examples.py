"""The streaming examples that PySpark ships run governed, with one property and the jar, as they are."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from support.kafka import Broker
from support.kafka_records import Record, send
from support.kinds import SPARK, Kind, Query
from support.waiting import wait_until

pytestmark = pytest.mark.spark

EXAMPLES = SPARK / "examples" / "src" / "main" / "python" / "sql" / "streaming"
WAIT_SECONDS = 300.0
WORD = "sluice"

OF_A_SOCKET = {
    "structured_network_wordcount.py": (),
    "structured_network_wordcount_session_window.py": (),
    "structured_network_wordcount_windowed.py": ("10", "5"),
}
"""Those that read lines from a server of a person's, and their arguments after its address."""
KAFKA, OF_ITS_OWN = "structured_kafka_wordcount.py", "structured_blockchain_admission_control.py"

REFUSED = "structured_sessionization.py"
"""Spark 4.3 itself refuses its output mode."""


class Example(Kind):
    """One script of PySpark's, by `spark-submit`."""

    script = ""
    arguments: Sequence[str] = ()

    def begin(self, queries: Sequence[Query], conf: Mapping[str, str]) -> None:
        """Start it."""
        self.popen(SPARK / "bin" / "spark-submit", EXAMPLES / self.script, *self.arguments, conf=conf)

    def run(self, script: str, *arguments: str) -> None:
        """Start an example that is governed: batches at most once a second."""
        self.script, self.arguments = script, arguments
        self.start([], {"spark.headgate.interval": "1s", "spark.headgate.metrics.port": "0"})

    def await_governed_batch(self) -> None:
        """Wait until a batch with data has ended that was planned here, at the interval of the property."""
        wait_until(
            lambda: "metrics are served" in self.log and self.of("headgate_query_batches_total", "data"),
            "a batch",
            WAIT_SECONDS,
            seen=lambda: self.log[-4000:],
        )
        assert self.of("headgate_query_interval_seconds") == 1.0
        assert "Traceback" not in self.log

    def of(self, metric: str, kind: str | None = None) -> float:
        """Return a metric of its one query; 0 where it is not told."""
        found = [s.value for s in self.metrics() if s.name == metric and s.labels.get("kind") == kind]
        return sum(found)


@pytest.fixture
def example(kafka: Broker, tmp_path: Path) -> Iterator[Example]:
    with Example(tmp_path, kafka.bootstrap) as kind:
        yield kind


@contextmanager
def lines(text: str) -> Iterator[int]:
    """Serve each caller lines of a text until it goes away, as `nc -lk` does. Gives the port."""
    over = threading.Event()

    def serve() -> None:
        with suppress(OSError):
            while True:
                caller, _ = listening.accept()
                threading.Thread(target=talk, args=(caller,), daemon=True).start()

    def talk(caller: socket.socket) -> None:
        with caller, suppress(OSError):
            while not over.wait(0.2):
                caller.sendall(f"{text}\n".encode())

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=serve, daemon=True).start()
        try:
            yield int(listening.getsockname()[1])
        finally:
            over.set()
            with suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)


def test_there_are_no_other_examples():
    assert {file.name for file in EXAMPLES.glob("*.py")} == {*OF_A_SOCKET, KAFKA, OF_ITS_OWN, REFUSED}


@pytest.mark.parametrize("script", OF_A_SOCKET)
def test_an_example_that_reads_a_socket_is_governed(example: Example, script: str):
    with lines(f"{WORD} {WORD}") as port:
        example.run(script, "127.0.0.1", str(port), *OF_A_SOCKET[script])
        example.await_governed_batch()
        if "session_window" not in script:  # that one writes of a word when it has not come for a while
            wait_until(
                lambda: WORD in example.log, "its output", WAIT_SECONDS, seen=lambda: example.log[-4000:]
            )


def test_an_example_that_spark_refuses_is_refused_in_its_words(example: Example):
    with lines(WORD) as port:
        example.run(REFUSED, "127.0.0.1", str(port))
        assert example.await_end() != 0
        assert "[STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION]" in example.log
        assert "headgate_spark" not in example.log.split("Traceback")[1]


def test_the_example_that_reads_kafka_is_governed(example: Example, kafka: Broker):
    topic = kafka.topic()
    example.run(KAFKA, kafka.bootstrap, "subscribe", topic)
    wait_until(
        lambda: "source opened" in example.log, "its source", WAIT_SECONDS, seen=lambda: example.log[-4000:]
    )
    wait_until(
        lambda: example.of("headgate_query_interval_seconds"), "its first trigger", WAIT_SECONDS
    )  # it begins at what comes then
    send(kafka.bootstrap, topic, [Record(0, 1_700_000_000_000 + n, WORD.encode()) for n in range(7)])
    example.await_governed_batch()
    wait_until(lambda: WORD in example.log, "its output", WAIT_SECONDS, seen=lambda: example.log[-4000:])


def test_the_example_with_a_limit_of_its_own_is_governed_and_ends_by_itself(example: Example):
    example.run(OF_ITS_OWN)
    example.await_governed_batch()
    assert example.await_end() == 0
    assert "Query stopped" in example.log
