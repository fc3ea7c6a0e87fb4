"""A connection for direct requests: one request at a time, and the answer that is awaited on it."""

from __future__ import annotations

import asyncio
import socket
from typing import Any, cast

from ostinato.client.http_answer import closed_by_server
from ostinato.client.http_message import Message, MessageReader, NotHttp
from ostinato.client.transport import AnswerTooLarge
from ostinato.world import Clock


class Connection(asyncio.Protocol):
    """Made by a loop, which tells it what comes."""

    def __init__(self) -> None:
        self.is_open = False
        self._transport: asyncio.Transport | None = None
        self._reader: MessageReader | None = None  # while an answer is awaited
        self._answer: asyncio.Future[Message] | None = None
        self._silence: _Silence | None = None  # is watched for meanwhile

    @property
    def has_begun(self) -> bool:
        return self._reader is not None and self._reader.has_begun

    async def exchange(self, data: bytes, reader: MessageReader, clock: Clock, silence: float | None) -> Message:
        """Send a request; its answer. Afterwards the connection is as good as before only if that has come."""
        if self._transport is None or not self.is_open:
            raise closed_by_server()
        self._reader = reader
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._answer = answer
        watch = None if silence is None else _Silence(clock, silence, answer)
        self._silence = watch
        try:
            self._transport.write(data)
            return await answer
        finally:
            self._answer = self._silence = None
            if watch is not None:
                watch.end()

    def abort(self) -> None:
        """Close it without a farewell, for which TLS would wait: the other side may be dead, and the loop may end."""
        self.is_open = False
        if self._transport is not None:
            self._transport.abort()

    # Told by the loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self.is_open = True

    def data_received(self, data: bytes) -> None:
        if self._answer is None or self._answer.done() or self._reader is None:
            self.abort()  # nobody has asked
            return
        if self._silence is not None:
            self._silence.broken = True
        try:
            message = self._reader.feed(data)
        except (NotHttp, AnswerTooLarge) as error:
            self._answer.set_exception(error)
            return
        if message is not None:
            self._answer.set_result(message)

    def eof_received(self) -> bool:
        self.is_open = False
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self.is_open = False
        if self._answer is None or self._answer.done() or self._reader is None:
            return
        message = self._reader.end() if error is None else None
        if message is not None:
            self._answer.set_result(message)
        else:
            self._answer.set_exception(error if isinstance(error, OSError) else closed_by_server())


class _Silence:
    """Ends the wait for an answer if nothing comes for so long."""

    def __init__(self, clock: Clock, seconds: float, answer: asyncio.Future[Message]) -> None:
        self.broken = False  # something came since the last look
        self._clock = clock
        self._seconds = seconds
        self._answer = answer
        self._timer = clock.timer(seconds, self._look)

    def end(self) -> None:
        self._timer.cancel()

    def _look(self) -> None:
        if self.broken:
            self.broken = False
            self._timer = self._clock.timer(self._seconds, self._look)
        elif not self._answer.done():
            self._answer.set_exception(TimeoutError())


def living_socket(address: tuple[Any, ...]) -> socket.socket:
    """A socket whose peer is asked for signs of life."""
    family, kind, protocol, *_ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, seconds in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), seconds)
    return made
