"""Sessions: commands that are run beside a container's own, and containers that are attached to."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import struct
import termios
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from ostinato.plane.node.runtimes import ExecError

_CHUNK: Final = 65536
_AHEAD: Final = 16  # chunks that are read before somebody wants them
_HEAD: Final = struct.Struct("!BI")


class Command(msgspec.Struct, frozen=True):
    """What to run, and how to get where the container is."""

    arguments: Sequence[str]
    environment: Mapping[str, str]
    directory: str
    tty: bool
    stdin: bool


async def run(command: Command) -> ExecSession:
    """An `ExecError` if it cannot be started."""
    if command.tty:
        mine, theirs = os.openpty()
        streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
    else:
        mine = theirs = -1
        pipe = asyncio.subprocess.PIPE
        streams = {"stdin": pipe if command.stdin else asyncio.subprocess.DEVNULL, "stdout": pipe, "stderr": pipe}
    try:
        process = await asyncio.create_subprocess_exec(
            *command.arguments,
            stdin=streams["stdin"],
            stdout=streams["stdout"],
            stderr=streams["stderr"],
            cwd=command.directory,
            env=dict(command.environment),
            start_new_session=not command.tty,  # with a terminal, `setsid` does it
        )
    except OSError as error:
        if mine >= 0:
            os.close(mine)
        raise ExecError(f"{command.arguments[0]}: {error.strerror or error}") from None
    finally:
        if theirs >= 0:
            os.close(theirs)
    return ExecSession(process, mine)


class ExecSession:
    """A command of its own. `terminal` is the descriptor of its terminal, -1 if it has none."""

    def __init__(self, process: asyncio.subprocess.Process, terminal: int) -> None:
        self._process = process
        self._terminal = terminal
        self._chunks: asyncio.Queue[tuple[int, bytes] | None] = asyncio.Queue(_AHEAD)
        self._reading = asyncio.get_running_loop().create_task(self._read_all())

    async def read(self) -> tuple[int, bytes] | None:
        chunk = await self._chunks.get()
        if chunk is None:
            self._chunks.put_nowait(None)
        return chunk

    async def write(self, data: bytes) -> None:
        with suppress(OSError):
            if self._terminal >= 0:
                await _write_all(self._terminal, data)
            elif self._process.stdin is not None:
                self._process.stdin.write(data)
                await self._process.stdin.drain()

    async def close_input(self) -> None:
        if self._terminal >= 0:
            await self.write(b"\x04")
        elif self._process.stdin is not None:
            self._process.stdin.close()

    async def resize(self, width: int, height: int) -> None:
        if self._terminal >= 0:
            with suppress(OSError):
                fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    async def wait(self) -> int:
        code = await self._process.wait()
        return code if code >= 0 else 128 - code

    async def close(self) -> None:
        if self._process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
        self._reading.cancel()
        await asyncio.wait([self._reading])
        if self._terminal >= 0:
            os.close(self._terminal)
            self._terminal = -1

    async def _read_all(self) -> None:
        if self._terminal >= 0:
            await self._read_terminal()
        else:
            assert self._process.stdout is not None
            assert self._process.stderr is not None
            await asyncio.gather(self._read(1, self._process.stdout), self._read(2, self._process.stderr))
        await self._chunks.put(None)

    async def _read(self, stream: int, reader: asyncio.StreamReader) -> None:
        while data := await reader.read(_CHUNK):
            await self._chunks.put((stream, data))

    async def _read_terminal(self) -> None:
        os.set_blocking(self._terminal, False)
        while True:
            await _readable(self._terminal)
            try:
                data = os.read(self._terminal, _CHUNK)
            except BlockingIOError:
                continue
            except OSError:  # nobody has its other end open any more
                return
            if not data:
                return
            await self._chunks.put((1, data))


async def attach(directory: Path) -> AttachSession:
    """To the container of a directory; an `ExecError` if it does not run."""
    inside = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:  # the way through the descriptor is short, as the name of a socket must be
        reader, writer = await asyncio.open_unix_connection(f"/proc/self/fd/{inside}/attach")
    except OSError as error:
        raise ExecError(f"container not running: {error.strerror or error}") from None
    finally:
        os.close(inside)
    return AttachSession(reader, writer)


class AttachSession:
    """A container's own streams, by way of its keeper."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._ended = asyncio.Event()

    async def read(self) -> tuple[int, bytes] | None:
        try:
            stream, length = _HEAD.unpack(await self._reader.readexactly(_HEAD.size))
            return stream, await self._reader.readexactly(length)
        except (asyncio.IncompleteReadError, OSError):
            self._ended.set()
            return None

    async def write(self, data: bytes) -> None:
        for start in range(0, len(data), _CHUNK):
            await self._send(0, data[start : start + _CHUNK])

    async def close_input(self) -> None:
        await self._send(3, b"")

    async def resize(self, width: int, height: int) -> None:
        await self._send(4, struct.pack("!HH", width, height))

    async def wait(self) -> int:
        await self._ended.wait()
        return 0

    async def close(self) -> None:
        self._ended.set()
        self._writer.close()

    async def _send(self, what: int, data: bytes) -> None:
        with suppress(OSError):
            self._writer.write(_HEAD.pack(what, len(data)) + data)
            await self._writer.drain()


async def _readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_reader(descriptor, _done, ready)
    try:
        await ready
    finally:
        loop.remove_reader(descriptor)


async def _write_all(descriptor: int, data: bytes) -> None:
    loop = asyncio.get_running_loop()
    while data:
        try:
            data = data[os.write(descriptor, data) :]
        except BlockingIOError:
            ready: asyncio.Future[None] = loop.create_future()
            loop.add_writer(descriptor, _done, ready)
            try:
                await ready
            finally:
                loop.remove_writer(descriptor)


def _done(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)
