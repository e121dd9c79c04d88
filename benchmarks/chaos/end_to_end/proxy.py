"""A network between clients and a server of this machine, that can be cut, slow, or drop its connections."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Self

CHUNK_BYTES = 1 << 16
CALL_SECONDS = 30.0
AT_ONCE = struct.pack("ii", 1, 0)


class Proxy:
    """Passes on what comes to one port of the loopback address to another, on a thread of its own.

    Cut, it is as a network that loses each packet: connections stay open, bytes wait in them, and new ones are taken
    and never answered.
    """

    def __init__(self, port: int, server_port: int) -> None:
        """Listen at `port`, for the server at `server_port`."""
        self._port, self._server_port = port, server_port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy")
        self._whole = asyncio.Event()
        self._delay_seconds = 0.0
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        self._do(self._listen())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._do(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def cut(self) -> None:
        """Let nothing through."""
        self._do(self._set(self._whole.clear))

    def delay(self, seconds: float) -> None:
        """Keep every packet for so long."""
        self._delay_seconds = seconds

    def mend(self) -> None:
        """Let everything through at once."""
        self._delay_seconds = 0.0
        self._do(self._set(self._whole.set))

    def reset(self) -> None:
        """Drop every connection."""
        self._do(self._reset())

    def _do(self, what: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(what, self._loop).result(CALL_SECONDS)

    async def _set(self, event: Callable[[], None]) -> None:
        event()

    async def _listen(self) -> None:
        self._whole.set()
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self._port)

    async def _reset(self) -> None:
        for writer in (writer for writer in self._writers if not writer.is_closing()):
            # Closed without lingering, a socket is reset and not ended in order.
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
            writer.transport.abort()

    async def _end(self) -> None:
        if self._server is not None:
            self._server.close()
        await self._reset()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._whole.wait()
            from_server, to_server = await asyncio.open_connection("127.0.0.1", self._server_port)
        except OSError:  # there is no server now, as the client is told
            writer.transport.abort()
            return
        ends = {writer, to_server}
        self._writers |= ends
        try:
            await asyncio.gather(self._pass(reader, to_server), self._pass(from_server, writer))
        except (OSError, asyncio.CancelledError):
            pass  # one of the two has gone, and so does the other, or all of it ends
        finally:
            self._writers -= ends
            for end in ends:
                end.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(CHUNK_BYTES):
            await asyncio.sleep(self._delay_seconds)
            await self._whole.wait()
            writer.write(data)
            await writer.drain()
        raise ConnectionError("one side has closed")
