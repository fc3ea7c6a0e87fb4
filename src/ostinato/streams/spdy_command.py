"""Commands over SPDY: a stream each for stdin, stdout and stderr, one for terminal resizes, one for the exit status.

Older clients use this protocol with the API server, and API servers with node agents. `SpdyPeer` is the client of a
command that runs here; `SpdySession` is a command that runs on another machine.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Sequence
from typing import Final, Self

import msgspec

from ostinato.api.errors import from_stream
from ostinato.api.status import Status
from ostinato.streams.session import Command, EndOfInput, Input, SessionError, Size, run
from ostinato.streams.spdy import SpdyConnection, SpdyStream
from ostinato.streams.upgrade import Socket, Upgrade
from ostinato.world import Clock

SPDY: Final = "SPDY/3.1"
PROTOCOLS: Final = ("v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io")
CREATION_SECONDS: Final = 30.0  # for a client to open its streams
_TYPE: Final = "streamtype"
_WAITING: Final = 16  # buffered pieces of input or output


def command_upgrade(command: Command, protocol: str, clock: Clock) -> Upgrade:
    """Return the upgrade for a command over SPDY; `protocol` is one of `PROTOCOLS`."""

    async def serve(socket: Socket) -> None:
        async with SpdyConnection(socket, server=True) as connection:
            try:
                async with clock.timeout(CREATION_SECONDS):
                    streams = await _accept(connection, _names(command, protocol))
            except TimeoutError:
                return
            if streams is None:
                return
            async with SpdyPeer(connection, streams, protocol) as peer:
                await run(command, peer)

    return Upgrade(serve, SPDY, protocol)


def _names(command: Command, protocol: str) -> set[str]:
    """Return the types of the streams that a client opens."""
    wanted = {
        "error": True,
        "stdin": command.stdin,
        "stdout": command.stdout,
        "stderr": command.wants(2),
        "resize": command.tty and protocol in PROTOCOLS[:2],
    }
    return {name for name, is_wanted in wanted.items() if is_wanted}


async def _accept(connection: SpdyConnection, names: set[str]) -> dict[str, SpdyStream] | None:
    """Accept the streams of a command; None if the client disconnects first."""
    streams: dict[str, SpdyStream] = {}
    while names - streams.keys():
        stream = await connection.accept()
        if stream is None:
            return None
        name = stream.headers.get(_TYPE, "")
        if name in names and name not in streams:
            streams[name] = stream
        else:
            await stream.reset()
    return streams


class SpdyPeer:
    """A `Peer` over SPDY; an asynchronous context manager, which reads from it."""

    def __init__(self, connection: SpdyConnection, streams: dict[str, SpdyStream], protocol: str) -> None:
        self._connection = connection
        self._streams = streams
        self._protocol = protocol
        self._inputs: asyncio.Queue[Input | None] = asyncio.Queue(_WAITING)
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        listening: list[Awaitable[None]] = [self._wait_for_end()]
        if "stdin" in self._streams:
            listening.append(self._read_input(self._streams["stdin"]))
        if "resize" in self._streams:
            listening.append(self._read_sizes(self._streams["resize"]))
        self._tasks = [asyncio.ensure_future(each) for each in listening]
        return self

    async def __aexit__(self, *_: object) -> None:
        await _cancel(self._tasks)
        for stream in self._streams.values():
            stream.drop()
            await stream.close()

    async def next(self) -> Input | None:
        return await self._inputs.get()

    async def output(self, stream: int, data: bytes) -> None:
        await self._streams["stdout" if stream == 1 else "stderr"].write(data)

    async def ended(self, status: Status) -> None:
        if self._protocol == PROTOCOLS[0]:
            await self._streams["error"].write(msgspec.json.encode(status.to_dict()))
        elif status.status != "Success":
            await self._streams["error"].write(status.message.encode())

    async def _read_input(self, stream: SpdyStream) -> None:
        while (data := await stream.read()) is not None:
            await self._inputs.put(data)
        await self._inputs.put(EndOfInput())

    async def _read_sizes(self, stream: SpdyStream) -> None:
        rest = b""
        while (data := await stream.read()) is not None:
            *lines, rest = (rest + data).split(b"\n")
            rest = rest[:1024]  # longer than any valid size
            for size in map(Size.parse, lines):
                if size is not None:
                    await self._inputs.put(size)

    async def _wait_for_end(self) -> None:
        while (stream := await self._connection.accept()) is not None:
            await stream.reset()  # not a stream of a command
        await self._inputs.put(None)


class SpdySession:
    """A `Session` that runs on another machine."""

    def __init__(self, connection: SpdyConnection, streams: dict[str, SpdyStream]) -> None:
        self._connection = connection
        self._streams = streams
        self._outputs: asyncio.Queue[tuple[int, bytes] | None] = asyncio.Queue(_WAITING)
        self._task = asyncio.ensure_future(self._read_all())

    @classmethod
    async def begin(cls, socket: Socket, command: Command) -> SpdySession:
        """Open the streams over an upgraded connection."""
        connection = await SpdyConnection(socket, server=False).__aenter__()
        streams: dict[str, SpdyStream] = {}
        try:
            for name in sorted(_names(command, PROTOCOLS[0])):
                streams[name] = await connection.open({_TYPE: name})
        except ConnectionError as error:
            await connection.__aexit__()
            raise SessionError(str(error)) from None
        await streams["error"].close()
        return cls(connection, streams)

    async def read(self) -> tuple[int, bytes] | None:
        return await self._outputs.get()

    async def write(self, data: bytes) -> None:
        if "stdin" in self._streams:
            await self._streams["stdin"].write(data)

    async def close_input(self) -> None:
        if "stdin" in self._streams:
            await self._streams["stdin"].close()

    async def resize(self, width: int, height: int) -> None:
        if "resize" in self._streams:
            await self._streams["resize"].write(msgspec.json.encode(Size(width, height)) + b"\n")

    async def wait(self) -> int:
        said = b""
        while (data := await self._streams["error"].read()) is not None:
            said += data
        if not said:
            raise SessionError("the connection to the node ended before the command did")
        return _code(said)

    async def close(self) -> None:
        await _cancel([self._task])
        await self._connection.__aexit__()

    async def _read_all(self) -> None:
        pairs = [(1, "stdout"), (2, "stderr")]
        await asyncio.gather(*(self._read(n, self._streams[name]) for n, name in pairs if name in self._streams))
        await self._outputs.put(None)

    async def _read(self, number: int, stream: SpdyStream) -> None:
        while (data := await stream.read()) is not None:
            await self._outputs.put((number, data))


def _code(said: bytes) -> int:
    """Return the exit code in a Status. Raises SessionError for other failures."""
    status = from_stream(said).status
    if status.status == "Success":
        return 0
    causes = status.details.causes if status.details is not None else ()
    for cause in causes if status.reason == "NonZeroExitCode" else ():
        if cause.reason == "ExitCode" and cause.message.isdecimal():
            return int(cause.message)
    raise SessionError(status.message, status)


async def _cancel(tasks: Sequence[asyncio.Future[None]]) -> None:
    for task in tasks:
        task.cancel()
    for task in tasks:
        with contextlib.suppress(asyncio.CancelledError):
            await task
