"""Connections to the JVM: a few are kept, however many there were at once, and one that ends is no news."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from py4j.protocol import ERROR, ERROR_ON_RECEIVE, Py4JNetworkError

from headgate_spark.runtime.gateway import MOST_IDLE, Client, connect

AT_ONCE = 3 * MOST_IDLE
WAIT_SECONDS = 60.0


class Connection:
    """One that answers when all others have been asked, too."""

    together = Barrier(AT_ONCE)
    is_open = True

    def send_command(self, command: str) -> str:
        self.together.wait(WAIT_SECONDS)
        return command

    def close(self) -> None:
        self.is_open = False


def test_of_connections_that_nobody_uses_any_more_a_few_are_kept():
    made: list[Connection] = []

    class Ours(Client):
        def _create_connection(self) -> Connection:
            made.append(Connection())
            return made[-1]

    client = Ours()
    for _ in range(2):
        with ThreadPoolExecutor(AT_ONCE) as threads:
            assert list(threads.map(client.send_command, "x" * AT_ONCE)) == ["x"] * AT_ONCE
        assert sum(connection.is_open for connection in made) == MOST_IDLE
    assert len(made) == 2 * AT_ONCE - MOST_IDLE, "those that were kept are used again"


def test_a_jvm_that_ends_in_the_middle_of_a_call_leaves_no_traceback_in_the_log(
    caplog: pytest.LogCaptureFixture,
):
    class Ended(Connection):
        def send_command(self, command: str) -> str:
            raise Py4JNetworkError("Error while receiving", when=ERROR_ON_RECEIVE)

        def close(self, reset: bool = False) -> None:
            self.is_open = not reset

    class Ours(Client):
        def _create_connection(self) -> Connection:
            return Ended()

    connect(1, "a token")
    assert Ours().send_command("x") == ERROR, "the caller is told"
    assert caplog.records == []
