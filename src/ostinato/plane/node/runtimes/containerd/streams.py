"""Exec, attach and port-forward streams of the CRI: SPDY connections to the URL that the runtime returns."""

from __future__ import annotations

import contextlib
from typing import Final
from urllib.parse import urlsplit

from ostinato.http.byte_stream import ByteStream, PlainStream
from ostinato.http.encoding import request_head
from ostinato.http.exchange import read_response
from ostinato.http.status import status_line
from ostinato.plane.node.runtimes import ExecError
from ostinato.streams.ports import PROTOCOL as PORTS
from ostinato.streams.ports import SpdyLink
from ostinato.streams.session import Command, SessionError
from ostinato.streams.spdy import SpdyConnection, SpdyStream
from ostinato.streams.spdy_command import PROTOCOLS, SPDY, SpdySession
from ostinato.world import Clock

_TIMEOUT: Final = 30.0  # seconds for the runtime to respond
_CHUNK: Final = 32 * 1024
_EXEC_FAILED: Final = "Internal error occurred: error executing command in container: "
_ATTACH_FAILED: Final = "Internal error occurred: error attaching to container: "


class CommandError(ExecError, SessionError):
    """A command could not be run; reported by the runtime after the streams are open."""


class CriSession(SpdySession):
    """An exec or attach session."""

    _socket: UpgradedSocket

    @classmethod
    async def to(cls, url: str, clock: Clock, *, stdin: bool, tty: bool) -> CriSession:
        socket = await UpgradedSocket.open(url, PROTOCOLS[0], clock)
        command = Command(open=_nothing, what="", stdin=stdin, stdout=True, stderr=True, tty=tty)
        try:
            session = await cls.begin(socket, command)
        except SessionError as error:
            socket.close()
            raise ExecError(str(error)) from None
        assert isinstance(session, CriSession)
        session._socket = socket
        return session

    async def wait(self) -> int:
        try:
            return await super().wait()
        except SessionError as error:
            raise CommandError(str(error).removeprefix(_EXEC_FAILED).removeprefix(_ATTACH_FAILED)) from None

    async def close(self) -> None:
        await super().close()
        self._socket.close()


class CriLink(SpdyLink):
    """A connection to a port in a Pod's network."""

    def __init__(self, socket: UpgradedSocket, connection: SpdyConnection, data: SpdyStream, error: SpdyStream) -> None:
        super().__init__(data, error)
        self._socket = socket
        self._connection = connection
        self._failure_text = b""  # message of the error stream

    @classmethod
    async def to(cls, url: str, port: int, clock: Clock) -> CriLink:
        """Connect; OSError on failure. A port without a listener is reported by `failure` later."""
        try:
            socket = await UpgradedSocket.open(url, PORTS, clock)
        except ExecError as error:
            raise ConnectionError(str(error)) from None
        connection = await SpdyConnection(socket, server=False).__aenter__()
        about = {"port": str(port), "requestid": "0"}
        failures = await connection.open({"streamtype": "error", **about})
        await failures.close()
        data = await connection.open({"streamtype": "data", **about})
        return cls(socket, connection, data, failures)

    async def read(self) -> bytes | None:
        data = await super().read()
        if data is None:
            self._failure_text += await super().failure()  # before the connection is closed
        return data

    async def failure(self) -> bytes:
        return self._failure_text

    async def close(self) -> None:
        await self._connection.__aexit__()
        self._socket.close()


class UpgradedSocket:
    """An HTTP connection after a protocol upgrade."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream

    @classmethod
    async def open(cls, url: str, protocol: str, clock: Clock) -> UpgradedSocket:
        """Request an upgrade to SPDY with a subprotocol; `ExecError` if it is rejected."""
        parts = urlsplit(url)
        target = f"{parts.path}?{parts.query}" if parts.query else parts.path
        upgrade = [("Connection", "Upgrade"), ("Upgrade", SPDY), ("X-Stream-Protocol-Version", protocol)]
        head = request_head("POST", target, [("Host", parts.netloc), ("Content-Length", "0"), *upgrade])
        stream: ByteStream | None = None
        try:
            async with clock.timeout(_TIMEOUT):
                stream = await PlainStream.to(parts.hostname or "", parts.port or 80)
                await stream.write(head)
                response = await read_response(stream, accepts_upgrade=True)
        except (OSError, TimeoutError) as error:
            if stream is not None:
                stream.close()
            raise ExecError(f"cannot connect to the runtime's streaming server: {str(error) or 'timed out'}") from None
        if response.status != 101:
            stream.close()
            raise ExecError(f"the runtime rejected the stream: {status_line(response.status)}")
        return cls(stream)

    async def send(self, data: bytes) -> None:
        with contextlib.suppress(OSError):
            await self._stream.write(data)

    async def receive(self) -> bytes | None:
        try:
            return await self._stream.read(_CHUNK) or None
        except OSError:
            return None

    def close(self) -> None:
        self._stream.close()


async def _nothing() -> SpdySession:
    raise AssertionError("the command is opened by the runtime")
