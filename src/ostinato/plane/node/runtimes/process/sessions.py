"""Exec and attach sessions of a container, served by its keeper."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import socket
import struct
import termios
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from ostinato.plane.node.runtimes import ExecError
from ostinato.world import Clock

_CHUNK: Final = 65536
_READ_AHEAD: Final = 16  # chunks that are buffered before they are read
_HEAD: Final = struct.Struct("!BI")
_CREDENTIALS: Final = struct.Struct("3i")  # pid, uid, gid
_KILLED: Final = 137
_DRAIN: Final = 2.0  # seconds to wait for output after the command's exit, if other processes hold its streams


class KeeperRef(msgspec.Struct, frozen=True):
    """A container's directory, and the process id of its keeper."""

    directory: Path
    keeper: int


async def start_exec(
    keeper_ref: KeeperRef, command: Sequence[str], clock: Clock, *, stdin: bool, tty: bool
) -> ExecSession:
    """Run a command in a container; `ExecError` if it cannot be started.

    The container's keeper forks it into the container's namespaces, control groups and security settings.
    """
    theirs, ours, given = ([], [], None) if tty else _streams(stdin)
    link = None
    try:
        link = _ExecConnection(await _connect(keeper_ref, "exec"))
        await link.send({"command": list(command), "tty": tty}, theirs)
        reply = await link.reply()
        if "error" in reply or (tty and link.received is None):
            raise ExecError(str(reply.get("error", "the command has no terminal")))
    except BaseException as error:
        for each in (*ours, *([] if given is None else [given])):
            os.close(each)
        if link is not None:
            link.close()
        if isinstance(error, OSError | msgspec.DecodeError):
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise ExecError(f"container not running: {reason}") from None
        raise
    finally:
        for each in theirs:
            os.close(each)
    if link.received is not None:
        return ExecSession(link, clock, {link.received: 1}, link.received, link.received)
    return ExecSession(link, clock, {ours[0]: 1, ours[1]: 2}, given, None)


def _streams(stdin: bool) -> tuple[list[int], list[int], int | None]:
    """Return the command's descriptors, our ends of its output and error, and our end of its input (if any)."""
    taken, given = os.pipe() if stdin else (os.open(os.devnull, os.O_RDONLY), None)
    out, out_end = os.pipe()
    errors, errors_end = os.pipe()
    return [taken, out_end, errors_end], [out, errors], given


class _ExecConnection:
    """A connection to a keeper: carries the exec request, its reply and the exit code."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._buffer = b""
        self.received: int | None = None  # descriptor of the command's terminal

    async def send(self, request: Mapping[str, object], descriptors: Sequence[int]) -> None:
        data = msgspec.json.encode(request) + b"\n"
        sent = socket.send_fds(self._connection, [data], list(descriptors))
        if sent < len(data):  # sending nothing fails if the command has ended and the keeper closed the connection
            await asyncio.get_running_loop().sock_sendall(self._connection, data[sent:])

    async def reply(self) -> dict[str, Any]:
        """Read the next reply; `OSError` if the keeper closed the connection."""
        while b"\n" not in self._buffer:
            await _readable(self._connection.fileno())
            try:
                data, descriptors, _, _ = socket.recv_fds(self._connection, _CHUNK, 1)
            except BlockingIOError:
                continue
            if descriptors:
                self.received = descriptors[0]
            if not data:
                raise ConnectionResetError("keeper exited")
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        return msgspec.json.decode(line, type=dict[str, Any])

    def close(self) -> None:
        self._connection.close()


class ExecSession:
    """A command that runs in a container.

    - `outputs`: descriptors to read from, each with its stream number.
    - `stdin`: the descriptor to write its input to; None without stdin.
    - `terminal`: the descriptor of its terminal; None without a TTY.
    """

    def __init__(
        self, link: _ExecConnection, clock: Clock, outputs: Mapping[int, int], stdin: int | None, terminal: int | None
    ) -> None:
        self._link = link
        self._clock = clock
        self._outputs = dict(outputs)
        self._stdin = stdin
        self._terminal = terminal
        self._chunks: asyncio.Queue[tuple[int, bytes] | None] = asyncio.Queue(_READ_AHEAD)
        for each in {*self._outputs, *([] if stdin is None else [stdin])}:
            os.set_blocking(each, False)
        loop = asyncio.get_running_loop()
        self._ending = loop.create_task(self._end())
        self._reading = loop.create_task(self._read_all())

    async def read(self) -> tuple[int, bytes] | None:
        chunk = await self._chunks.get()
        if chunk is None:
            self._chunks.put_nowait(None)
        return chunk

    async def write(self, data: bytes) -> None:
        with suppress(OSError):
            if self._stdin is not None:
                await _write_all(self._stdin, data)

    async def close_input(self) -> None:
        if self._terminal is not None:
            await self.write(b"\x04")
        elif self._stdin is not None:
            os.close(self._stdin)
            self._stdin = None

    async def resize(self, width: int, height: int) -> None:
        if self._terminal is not None:
            with suppress(OSError):
                fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    async def wait(self) -> int:
        return await asyncio.shield(self._ending)

    async def close(self) -> None:
        self._ending.cancel()
        self._reading.cancel()
        await asyncio.wait([self._ending, self._reading])
        self._link.close()  # the keeper kills the command when the connection closes
        for each in {*self._outputs, *(each for each in (self._stdin, self._terminal) if each is not None)}:
            os.close(each)
        self._outputs, self._stdin, self._terminal = {}, None, None

    async def _end(self) -> int:
        """Return the command's exit code; 137 if its container or keeper ended first."""
        try:
            return int((await self._link.reply())["code"])
        except (OSError, msgspec.DecodeError, KeyError):
            return _KILLED

    async def _read_all(self) -> None:
        async with asyncio.TaskGroup() as group:
            for descriptor, stream in self._outputs.items():
                group.create_task(self._read(descriptor, stream))
        await self._chunks.put(None)

    async def _read(self, descriptor: int, stream: int) -> None:
        while await self._has_more(descriptor):
            try:
                data = os.read(descriptor, _CHUNK)
            except BlockingIOError:
                continue
            except OSError:  # EIO: the other side of the terminal is closed
                return
            if not data:
                return
            await self._chunks.put((stream, data))

    async def _has_more(self, descriptor: int) -> bool:
        """Wait for data; after the command's exit only briefly, as other processes may hold its streams open."""
        readable = asyncio.get_running_loop().create_task(_readable(descriptor))
        try:
            await asyncio.wait([readable, self._ending], return_when=asyncio.FIRST_COMPLETED)
            if not readable.done():
                with suppress(TimeoutError):
                    async with self._clock.timeout(_DRAIN):
                        await asyncio.shield(readable)
            return readable.done()
        finally:
            readable.cancel()


async def start_attach(keeper_ref: KeeperRef) -> AttachSession:
    """Attach to a container; `ExecError` if it is not running."""
    try:
        connection = await _connect(keeper_ref, "attach")
    except OSError as error:
        raise ExecError(f"container not running: {error.strerror or error}") from None
    reader, writer = await asyncio.open_unix_connection(sock=connection)
    return AttachSession(reader, writer)


async def _connect(keeper_ref: KeeperRef, name: str) -> socket.socket:
    """Connect to a socket of a keeper; `OSError` if there is none or the peer is not the keeper."""
    connection = socket.socket(socket.AF_UNIX)
    inside = os.open(keeper_ref.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:  # through the descriptor, because socket paths are limited to 108 bytes
        connection.connect(f"/proc/self/fd/{inside}/{name}")
        if hasattr(socket, "SO_PEERCRED"):
            credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
            pid, uid, _ = _CREDENTIALS.unpack(credentials)
            if (pid, uid) != (keeper_ref.keeper, os.geteuid()):
                raise PermissionError(errno.EPERM, f"process {pid} of user {uid} is not the container's keeper")
    except BaseException:
        connection.close()
        raise
    finally:
        os.close(inside)
    connection.settimeout(0)
    return connection


class AttachSession:
    """A container's own streams, forwarded by its keeper."""

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
