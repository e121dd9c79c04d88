"""The questions of the shim, as they come over a socket, and the way back of the answers.

Each query has a connection of its own, and each connection a thread here: none waits for another's answer. A frame is
its length and the number of its fields, and of each field its length and its UTF-8 bytes; -1 stands for a field that
is `None`. All numbers have four bytes. The first frame of a connection is a token: whoever does not know it is not
answered. What is asked `governor.verbs` says, `Link.java` is the other end.
"""

from __future__ import annotations

import hmac
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Optional

Field = Optional[str]
Verb = Callable[..., Optional[str]]
"""Takes the fields of a question, and returns what is answered. What it raises is answered as a failed call."""

OK, FAILED, STRANGER = "ok", "failed", "stranger"
MOST_BYTES = 256 * 2**20
TOKEN_SECONDS = 10.0
"""How long a connection may take to say who calls."""
TOKEN_BYTES = 1024
"""Of the frame in which it does: for somebody who is not known yet no more room is made."""

AT_ONCE = 8192
"""Bytes that are taken off a connection at once, where they have come: more than most questions have."""

_NUMBER = struct.Struct(">i")
_HEAD = struct.Struct(">ii")


class Buffered:
    """Takes whatever has come off a socket at once.

    Each call of a socket gives the interpreter's lock away, and where other queries plan just then it takes some
    milliseconds to get it back. With the length of a frame and the frame itself in two calls, that was twice.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._taken = memoryview(bytearray(AT_ONCE))
        self._at = self._end = 0

    def recv_into(self, view: memoryview, /) -> int:
        """Return how many bytes were put into `view`. Raises OSError."""
        if self._at == self._end:
            if len(view) >= AT_ONCE:
                return self._connection.recv_into(view)
            self._at, self._end = 0, self._connection.recv_into(self._taken)
        count = min(len(view), self._end - self._at)
        view[:count] = self._taken[self._at : self._at + count]
        self._at += count
        return count


class StrangerError(Exception):
    """Whoever asks has not told of the driver yet, or has told another process of it."""


class Questions:
    """Answers at a port of this machine, from `start` to `close`."""

    def __init__(self, verbs: Mapping[str, Verb], token: str, listening: socket.socket | None = None) -> None:
        """`listening` is a socket that listens already, at an address that outlives this process."""
        self._verbs = verbs
        self._token = token.encode()
        self._listening = listening or socket.create_server(("127.0.0.1", 0))
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._is_closed = False

    @property
    def port(self) -> int:
        return int(self._listening.getsockname()[1])

    def start(self) -> None:
        """Answer on daemon threads from now on."""
        threading.Thread(target=self._accept, name="headgate-questions", daemon=True).start()

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            left, self._open = self._open, set()
        for connection in (self._listening, *left):
            _shut(connection)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            with self._lock:
                if self._is_closed:
                    _shut(connection)
                    return
                self._open.add(connection)
            threading.Thread(
                target=self._serve, args=(connection,), name="headgate-question", daemon=True
            ).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.settimeout(TOKEN_SECONDS)
            asked = Buffered(connection)
            token = receive(asked, TOKEN_BYTES)
            if len(token) != 1 or not hmac.compare_digest((token[0] or "").encode(), self._token):
                return
            connection.settimeout(None)
            while True:
                send(connection, self._answer(receive(asked)))
        except (OSError, EOFError, ValueError):
            return  # it was closed, or it is none of ours
        finally:
            with self._lock:
                self._open.discard(connection)
            _shut(connection)

    def _answer(self, question: Sequence[Field]) -> tuple[str, Field]:
        verb, *fields = question
        answered = self._verbs.get(verb or "")
        if answered is None:
            return FAILED, f"unknown question {verb!r}"
        try:
            return OK, answered(*fields)
        except StrangerError:
            return STRANGER, None
        except Exception as error:  # whatever it is, it must reach whoever has asked
            return FAILED, f"{type(error).__name__}: {error}"


def ask(connection: socket.socket, *question: Field) -> str | None:
    """Ask, and return the answer. Raises RuntimeError with the words of a failed call, OSError and EOFError."""
    send(connection, question)
    status, answer = receive(connection)
    if status != OK:
        raise RuntimeError(answer or status)
    return answer


def send(connection: socket.socket, fields: Sequence[Field]) -> None:
    """Send a frame. Half a surrogate pair becomes a question mark, as in Java. Raises OSError."""
    parts = [b""]
    for field in fields:
        encoded = None if field is None else field.encode(errors="replace")
        parts += [_NUMBER.pack(-1)] if encoded is None else [_NUMBER.pack(len(encoded)), encoded]
    length = _NUMBER.size + sum(map(len, parts))
    parts[0] = _HEAD.pack(length, len(fields))
    connection.sendall(b"".join(parts))


def receive(connection: socket.socket | Buffered, most_bytes: int = MOST_BYTES) -> list[Field]:
    """Return the fields of the next frame. Raises OSError, EOFError at the end, ValueError for what is none."""
    (length,) = _NUMBER.unpack(_bytes(connection, _NUMBER.size))
    if not _NUMBER.size <= length <= most_bytes:
        raise ValueError(f"a frame of {length} bytes")
    try:
        return list(_fields(memoryview(_bytes(connection, length))))
    except struct.error:
        raise ValueError("a frame that ends before its last field") from None


def _fields(frame: memoryview) -> Iterator[Field]:
    (count,) = _NUMBER.unpack_from(frame)
    at = _NUMBER.size
    for _ in range(count):
        (size,) = _NUMBER.unpack_from(frame, at)
        at += _NUMBER.size
        if size > len(frame) - at:
            raise ValueError("a frame that ends within a field")
        yield None if size < 0 else str(frame[at : at + size], "utf-8")
        at += max(0, size)


def _bytes(connection: socket.socket | Buffered, length: int) -> bytearray:
    buffer = bytearray(length)
    view, read = memoryview(buffer), 0
    while read < length:
        got = connection.recv_into(view[read:])
        if got == 0:
            raise EOFError
        read += got
    return buffer


def _shut(connection: socket.socket) -> None:
    with suppress(OSError):  # it is not connected
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
