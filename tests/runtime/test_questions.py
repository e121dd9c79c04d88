"""How the shim's questions come over a socket: whole, from nobody else, and none behind another."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headgate_spark.engine import questions as module
from headgate_spark.engine.questions import (
    AT_ONCE,
    Buffered,
    Questions,
    StrangerError,
    Verb,
    ask,
    receive,
    send,
)

TOKEN = "wer dies kennt, darf fragen ✓"
SECONDS = 60.0
FIELDS = st.lists(st.none() | st.text(), max_size=8)


@given(FIELDS)
@example([])
@example([None])
@example(["", None, "Ω 漢字 \U0001f6a6 \0"])
def test_a_frame_comes_as_it_was_sent(fields: list[str | None]) -> None:
    here, there = socket.socketpair()
    with here, there:
        send(here, fields)
        send(here, ["next"])
        assert receive(there) == fields
        assert receive(there) == ["next"]


class Counted:
    """A socket whose calls are counted."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.calls = 0

    def recv_into(self, view: memoryview, /) -> int:
        self.calls += 1
        return self._connection.recv_into(view)


@pytest.mark.parametrize(("size", "calls"), [(10, 1), (AT_ONCE - 100, 1), (3 * AT_ONCE, 3)])
def test_frames_that_have_come_are_taken_off_a_connection_at_once(size: int, calls: int) -> None:
    here, there = socket.socketpair()
    counted = Counted(there)
    with here, there:
        buffered = Buffered(counted)
        for _ in range(2):
            send(here, ["admit", "x" * size, None])
        here.shutdown(socket.SHUT_WR)
        assert [receive(buffered) for _ in range(2)] == [["admit", "x" * size, None]] * 2
        assert counted.calls <= 2 * calls
        with pytest.raises(EOFError):
            receive(buffered)


def test_a_frame_that_no_buffer_holds_comes_whole() -> None:
    fields = [None, "ä" * 5_000_000, "end"]
    here, there = socket.socketpair()
    with here, there, ThreadPoolExecutor(1) as threads:
        sent = threads.submit(send, here, fields)
        assert receive(there) == fields
        sent.result(SECONDS)


def test_half_a_character_is_sent_as_a_question_mark() -> None:
    here, there = socket.socketpair()
    with here, there:
        send(here, ["a\ud83db"])
        assert receive(there) == ["a?b"]


NUMBER = struct.Struct(">i")


def numbers(*values: int) -> bytes:
    return b"".join(map(NUMBER.pack, values))


@pytest.mark.parametrize(
    "sent",
    [
        numbers(3),
        numbers(-1),
        numbers(module.MOST_BYTES + 1),
        numbers(4, 1),
        numbers(8, 1, 5),
        numbers(8, 2**31 - 1, -1),
        numbers(8, 1, 1) + b"\xff",
        numbers(9, 1, 1) + b"\xff",
    ],
    ids=[
        "no room for a count",
        "a negative length",
        "too long",
        "a field is missing",
        "a field is cut",
        "more fields than bytes",
        "a byte is missing",
        "no UTF-8",
    ],
)
def test_what_is_no_frame_is_told_as_such(sent: bytes) -> None:
    here, there = socket.socketpair()
    with here, there:
        here.sendall(sent)
        here.shutdown(socket.SHUT_WR)
        with pytest.raises((ValueError, EOFError)):
            receive(there)


class Asked:
    """Whoever answers, and how to ask."""

    def __init__(self, **verbs: Verb) -> None:
        self.questions = Questions(verbs, TOKEN)
        self.questions.start()
        self._port = self.questions.port

    def connected(self) -> socket.socket:
        """A connection on which nothing has been said."""
        return socket.create_connection(("127.0.0.1", self._port), timeout=SECONDS)

    def connection(self, token: str = TOKEN) -> socket.socket:
        """A connection of somebody who says this for a token."""
        connection = self.connected()
        send(connection, [token])
        return connection


Answering = Callable[..., Asked]


@pytest.fixture
def answering() -> Iterator[Answering]:
    made: list[Asked] = []

    def make(**verbs: Verb) -> Asked:
        made.append(Asked(**verbs))
        return made[-1]

    yield make
    for asked in made:
        asked.questions.close()


def is_cut(connection: socket.socket) -> bool:
    """Wait for what comes, which is the end and nothing else."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def test_a_question_is_answered_with_what_its_verb_returns(answering: Answering) -> None:
    asked = answering(admit=lambda handle, start: f"{handle} from {start}", told=lambda: None)
    with asked.connection() as connection:
        assert ask(connection, "admit", "1", None) == "1 from None"
        assert ask(connection, "told") is None
        assert ask(connection, "admit", "Ω", "") == "Ω from "


@pytest.mark.parametrize("first", [["wrong"], [TOKEN[:-1]], [None], [], [TOKEN, TOKEN], [TOKEN, "begins"]])
def test_whoever_does_not_know_the_token_is_never_answered(
    answering: Answering, first: list[str | None]
) -> None:
    heard: list[str] = []
    asked = answering(begins=heard.append)
    with asked.connected() as connection:
        send(connection, first)
        with suppress(ConnectionError):
            send(connection, ["begins", "query"])
        assert is_cut(connection)
    assert heard == []


def test_nobody_makes_room_for_a_token_as_long_as_a_stranger_says(
    answering: Answering, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TOKEN_SECONDS", 3600)  # it is cut for its length
    with answering().connected() as connection:
        connection.sendall(numbers(module.MOST_BYTES))
        assert is_cut(connection)


def test_a_connection_on_which_nobody_says_who_calls_is_cut(
    answering: Answering, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TOKEN_SECONDS", 0.01)
    with answering().connected() as connection:
        assert is_cut(connection)


def test_one_that_has_said_who_calls_may_be_silent_for_long(
    answering: Answering, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TOKEN_SECONDS", 0.5)
    asked = answering(told=lambda: "yes")
    with asked.connection() as connection, asked.connected() as silent:
        assert ask(connection, "told") == "yes"
        assert is_cut(silent)
        assert ask(connection, "told") == "yes"


def test_what_a_verb_raises_is_a_failed_call_and_the_connection_goes_on(answering: Answering) -> None:
    def admit(handle: str) -> str:
        raise OSError(f"no room for {handle}")

    asked = answering(admit=admit, told=lambda: "yes")
    with asked.connection() as connection:
        with pytest.raises(RuntimeError, match=r"^OSError: no room for 7$"):
            ask(connection, "admit", "7")
        with pytest.raises(RuntimeError, match=r"^TypeError: .*argument"):
            ask(connection, "admit", "7", "8")
        with pytest.raises(RuntimeError, match=r"^unknown question 'marry'$"):
            ask(connection, "marry")
        assert ask(connection, "told") == "yes"


def test_a_stranger_is_told_so_and_that_is_no_failure(answering: Answering) -> None:
    def begins(query: str) -> None:
        raise StrangerError

    with answering(begins=begins).connection() as connection:
        send(connection, ["begins", "query"])
        assert receive(connection) == ["stranger", None]


def test_no_connection_waits_for_the_answer_of_another(answering: Answering) -> None:
    begun, may_end = threading.Event(), threading.Event()

    def slow() -> str:
        begun.set()
        assert may_end.wait(SECONDS)
        return "at last"

    asked = answering(slow=slow, quick=lambda: "at once")
    with asked.connection() as one, asked.connection() as other, ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(ask, one, "slow")
        assert begun.wait(SECONDS)
        assert ask(other, "quick") == "at once"
        assert not waiting.done()
        may_end.set()
        assert waiting.result(SECONDS) == "at last"


def test_one_that_is_closed_answers_nobody_any_more(answering: Answering) -> None:
    asked = answering(told=lambda: "yes")
    with asked.connection() as connection, asked.connected() as silent:
        assert ask(connection, "told") == "yes"
        asked.questions.close()
        assert is_cut(connection)
        assert is_cut(silent)
        with pytest.raises(ConnectionError):
            asked.connected()
