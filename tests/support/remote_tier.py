"""A broker whose records are in remote storage, as Kafka 3.6 and 3.7 read it: in front of the real one of tests.

Such a broker takes the time that a client lets it wait for records (`fetch.max.wait.ms`) for the time that a read may
take, gives none when that is over, and begins anew when it is asked again (`DelayedRemoteFetch` before KIP-1018).
"""

from __future__ import annotations

import itertools
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from support.kafka import Broker

READ_MILLIS = 200
"""What a read takes: more than a client waits that is in a hurry, less than others do."""
_FETCH = 1
_HEADER = struct.Struct(">hhih")
"""The kind of a request, its version, its number, and the length of the client's name."""
_AFTER_TOPICS = 21
"""Where the topics of a request of version 15 or newer are, which has one partition; behind the client's name."""


@contextmanager
def remote_tier(broker: Broker, end: int) -> Iterator[str]:
    """Return where clients find the broker; `end` is that of the one partition that is read."""
    reached, behind = broker.far
    listener = socket.create_server(("127.0.0.1", reached))
    open_: list[socket.socket] = [listener]

    def accept() -> None:
        with suppress(OSError):
            for _ in itertools.count():
                client, _address = listener.accept()
                server = socket.create_connection(("127.0.0.1", behind))
                open_.extend((client, server))
                for work, *of in ((_requests, client, server, end), (_bytes, server, client)):
                    threading.Thread(target=work, args=of, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"127.0.0.1:{reached}"
    finally:
        for each in open_:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


def _bytes(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while part := source.recv(65_536):
            target.sendall(part)


def _requests(client: socket.socket, broker: socket.socket, end: int) -> None:
    with suppress(OSError), client.makefile("rb") as stream:
        while len(size := stream.read(4)) == 4:
            request = bytearray(stream.read(struct.unpack(">i", size)[0]))
            _hold_back(request, end)
            broker.sendall(size + request)


def _hold_back(request: bytearray, end: int) -> None:
    """Where a read has no time, have the broker look for records where there are none."""
    kind, version, _, name = _HEADER.unpack_from(request)
    if kind != _FETCH:
        return
    assert version >= 15, "a version of the request that is read here"
    body = _HEADER.size + name + 1
    (wait,) = struct.unpack_from(">i", request, body)
    topics = body + _AFTER_TOPICS
    has_partition = request[topics] > 1  # else it is the one that was asked for before
    if wait < READ_MILLIS and has_partition:
        place = topics + 1 + 16 + 1 + 4 + 4
        struct.pack_into(">q", request, place, end)
