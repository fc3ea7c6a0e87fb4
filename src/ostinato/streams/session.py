"""Sessions: connect a command in a container, or the container itself, with its client.

The client is a `Peer`, over whatever protocol; what runs is a `Session`, on this machine or another. `run` copies both
ways until the command has ended, and tells the client how.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec

from ostinato.api.errors import InternalError
from ostinato.api.status import Status, StatusCause, StatusDetails

SUCCESS = Status(status="Success")


class Session(Protocol):
    """What runs, with its streams. See `ostinato.plane.node.runtimes.Session`, which is the same."""

    async def read(self) -> tuple[int, bytes] | None: ...

    async def write(self, data: bytes) -> None: ...

    async def close_input(self) -> None: ...

    async def resize(self, width: int, height: int) -> None: ...

    async def wait(self) -> int: ...

    async def close(self) -> None: ...


class SessionError(Exception):
    """It could not be begun, or how it ended is not known; the message says why.

    `status`: what the client is to be told, if somebody else has put that into words.
    """

    def __init__(self, message: str, status: Status | None = None) -> None:
        super().__init__(message)
        self.status = status


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """What a client asks for.

    - `open`: begins it; a `SessionError` if that cannot be.
    - `what`: for messages: "executing command in", "attaching to".
    - `tty`: it has a terminal, which writes to stream 1 alone and can be resized.
    """

    open: Callable[[], Awaitable[Session]]
    what: str
    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False

    def wants(self, stream: int) -> bool:
        """Whether the client reads one of the streams that are written."""
        return self.stdout if stream == 1 else self.stderr and not self.tty


class Size(msgspec.Struct, frozen=True):
    """Of a terminal, in characters."""

    width: int = msgspec.field(name="Width")
    height: int = msgspec.field(name="Height")

    @staticmethod
    def parse(data: bytes) -> Size | None:
        """As clients send it; None for nonsense, which is ignored."""
        try:
            size = msgspec.json.decode(data, type=Size)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
        return size if 0 < size.width < 1 << 16 and 0 < size.height < 1 << 16 else None


class EndOfInput:
    """The client writes no more."""


Input = bytes | EndOfInput | Size


class Peer(Protocol):
    """A client of a command."""

    async def next(self) -> Input | None:
        """What it sends next; None when it has gone."""

    async def output(self, stream: int, data: bytes) -> None:
        """What stream 1 or 2 of the command wrote."""

    async def ended(self, status: Status) -> None:
        """How it ended. The last that is said."""


async def run(command: Command, peer: Peer) -> None:
    """From the beginning to the end of what a client asks for; until the client goes if that is sooner."""
    try:
        session = await command.open()
    except SessionError as error:
        await peer.ended(_failure(command, error))
        return
    loop = asyncio.get_running_loop()
    feeding = loop.create_task(_feed(peer, session))
    ending = loop.create_task(_drain(command, session, peer))
    try:
        await asyncio.wait([feeding, ending], return_when=asyncio.FIRST_COMPLETED)
        if ending.done():
            await peer.ended(ending.result())
    finally:
        for task in (feeding, ending):
            task.cancel()
        await session.close()
        for task in (feeding, ending):
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await task


async def _feed(peer: Peer, session: Session) -> None:
    """Returns when the client has gone."""
    while (what := await peer.next()) is not None:
        if isinstance(what, bytes):
            await session.write(what)
        elif isinstance(what, Size):
            await session.resize(what.width, what.height)
        else:
            await session.close_input()


async def _drain(command: Command, session: Session, peer: Peer) -> Status:
    """Hand over the output; how the command ended."""
    while (output := await session.read()) is not None:
        stream, data = output
        if data and command.wants(stream):
            await peer.output(stream, data)
    try:
        code = await session.wait()
    except SessionError as error:
        return _failure(command, error)
    return exit_status(code)


def exit_status(code: int) -> Status:
    """A command that has ended."""
    if code == 0:
        return SUCCESS
    return Status(
        status="Failure",
        message=f"command terminated with non-zero exit code: command terminated with exit code {code}",
        reason="NonZeroExitCode",
        details=StatusDetails(causes=(StatusCause(reason="ExitCode", message=str(code)),)),
    )


def _failure(command: Command, error: SessionError) -> Status:
    return error.status or InternalError.of(f"error {command.what} container: {error}").status
