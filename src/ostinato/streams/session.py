"""Sessions: connect a command in a container, or the container itself, with its client.

The client is a `Peer`, over any protocol; the command is a `Session`, on this machine or another. `run` copies data in
both directions until the command exits, and sends the exit status to the client.
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
    """A running command with its streams; the same as `ostinato.plane.node.runtimes.Session`."""

    async def read(self) -> tuple[int, bytes] | None: ...

    async def write(self, data: bytes) -> None: ...

    async def close_input(self) -> None: ...

    async def resize(self, width: int, height: int) -> None: ...

    async def wait(self) -> int: ...

    async def close(self) -> None: ...


class SessionError(Exception):
    """The session could not be opened, or its exit status is unknown.

    `status`: the Status to send to the client, if another server has returned one.
    """

    def __init__(self, message: str, status: Status | None = None) -> None:
        super().__init__(message)
        self.status = status


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """A command that a client requests.

    - `open`: opens the session; raises `SessionError` on failure.
    - `what`: for messages: "executing command in", "attaching to".
    - `tty`: allocate a terminal, which writes to stream 1 only and can be resized.
    """

    open: Callable[[], Awaitable[Session]]
    what: str
    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False

    def wants(self, stream: int) -> bool:
        """Whether the client reads an output stream."""
        return self.stdout if stream == 1 else self.stderr and not self.tty


class Size(msgspec.Struct, frozen=True):
    """Size of a terminal, in characters."""

    width: int = msgspec.field(name="Width")
    height: int = msgspec.field(name="Height")

    @staticmethod
    def parse(data: bytes) -> Size | None:
        """Parse a client's resize message; None if it is invalid, which is ignored."""
        try:
            size = msgspec.json.decode(data, type=Size)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
        return size if 0 < size.width < 1 << 16 and 0 < size.height < 1 << 16 else None


class EndOfInput:
    """The client has closed stdin."""


Input = bytes | EndOfInput | Size


class Peer(Protocol):
    """A client of a command."""

    async def next(self) -> Input | None:
        """Return the next input; None when the client has disconnected."""

    async def output(self, stream: int, data: bytes) -> None:
        """Send output of stream 1 (stdout) or 2 (stderr)."""

    async def ended(self, status: Status) -> None:
        """Send the exit status, as the last message."""


async def run(command: Command, peer: Peer) -> None:
    """Run a command until it exits or the client disconnects."""
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
    """Copy the client's input to the session until the client disconnects."""
    while (what := await peer.next()) is not None:
        if isinstance(what, bytes):
            await session.write(what)
        elif isinstance(what, Size):
            await session.resize(what.width, what.height)
        else:
            await session.close_input()


async def _drain(command: Command, session: Session, peer: Peer) -> Status:
    """Copy the output to the client; return the exit status."""
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
    """The Status of an exit code."""
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
