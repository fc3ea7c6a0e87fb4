"""The agent's side of the shim launcher: one process per runtime, from which the keepers of all containers are forked.

The channel is a socket pair, whose other end no container gets: the launcher is started with no other descriptor, and
closes every one before anything else. What comes back is believed only if the kernel says that the keeper itself sent
it: a process of this user, whose number is the one that it names. So no other process can have the agent act on a
number of its choice.
"""

from __future__ import annotations

import array
import asyncio
import os
import socket
import struct
import subprocess
import sys
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from ostinato.world import Clock

_SHIM: Final = Path(__file__).with_name("shim")
_PATIENCE: Final = 30.0  # seconds that a keeper may take to begin
_END_PATIENCE: Final = 5.0
_CHUNK: Final = 65536
_CREDENTIALS: Final = struct.Struct("3i")  # pid, uid, gid
_PASS_CREDENTIALS: Final = getattr(socket, "SO_PASSCRED", None)


class LauncherError(Exception):
    """No keeper answered."""


class ShimLauncher:
    def __init__(self, clock: Clock, errors: Path) -> None:
        """`errors`: the file for what the launcher has to say of itself."""
        self._clock = clock
        self._errors = errors
        self._running: _Running | None = None
        self._waiting: dict[str, asyncio.Future[dict[str, Any]]] = {}  # by directory

    async def keep(self, directory: Path) -> dict[str, Any]:
        """Start the container of a directory; what its keeper answers. A `LauncherError` if none does."""
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[dict[str, Any]] = loop.create_future()
        self._waiting[str(directory)] = answered
        try:
            channel = self._open(loop)
            async with self._clock.timeout(_PATIENCE):
                await loop.sock_sendall(channel, os.fsencode(directory) + b"\n")
                return await answered
        except (OSError, TimeoutError) as error:
            raise LauncherError(f"the shim does not answer: {str(error) or 'it takes too long'}") from None
        finally:
            self._waiting.pop(str(directory), None)

    def _open(self, loop: asyncio.AbstractEventLoop) -> socket.socket:
        """The channel to a launcher that runs."""
        if self._running is None:
            self._running = _Running(self._errors)
            channel = self._running.channel
            loop.add_reader(channel.fileno(), self._receive, loop, self._running)
            weakref.finalize(self, self._running.close)
        return self._running.channel

    def _receive(self, loop: asyncio.AbstractEventLoop, running: _Running) -> None:
        try:
            data, ancillary, _, _ = running.channel.recvmsg(_CHUNK, socket.CMSG_SPACE(_CREDENTIALS.size) * 2)
        except BlockingIOError:
            return
        except OSError:
            data, ancillary = b"", []
        sender = _sender(ancillary)
        for line in data.splitlines():
            with suppress(msgspec.DecodeError):
                said = msgspec.json.decode(line, type=dict[str, Any])
                waiting = self._waiting.get(said.get("directory", ""))
                if waiting is not None and not waiting.done() and _is_believed(said, sender):
                    waiting.set_result(said)
        if not data:
            loop.remove_reader(running.channel.fileno())
            running.close()
            self._running = None
            for each in self._waiting.values():
                if not each.done():
                    each.set_exception(OSError("it has ended"))


class _Running:
    """A launcher, and the agent's end of the channel to it."""

    def __init__(self, errors: Path) -> None:
        self.channel, theirs = socket.socketpair()
        if _PASS_CREDENTIALS is not None:
            self.channel.setsockopt(socket.SOL_SOCKET, _PASS_CREDENTIALS, 1)
        self.channel.settimeout(0)
        out = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            # Not by the event loop's own means: uvloop's leave descriptors of the agent open in what they start.
            self._process = subprocess.Popen(  # noqa: S603
                [sys.executable, "-I", "-S", str(_SHIM)],
                stdin=theirs.fileno(),
                stdout=out,
                stderr=out,
                close_fds=True,
                start_new_session=True,
                cwd="/",
                env={},
            )
        finally:
            theirs.close()
            os.close(out)

    def close(self) -> None:
        """The launcher ends when it is alone; keepers stay."""
        self.channel.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_PATIENCE)


def _sender(ancillary: list[tuple[int, int, bytes]]) -> tuple[int, int] | None:
    """Process and user, as the kernel says; None where it does not say. Descriptors that came along are closed."""
    found = None
    for level, kind, content in ancillary:
        if level != socket.SOL_SOCKET:
            continue
        if kind == socket.SCM_RIGHTS:
            for each in array.array("i", content):
                os.close(each)
        elif kind == getattr(socket, "SCM_CREDENTIALS", None):
            pid, uid, _ = _CREDENTIALS.unpack(content[: _CREDENTIALS.size])
            found = (pid, uid)
    return found


def _is_believed(said: dict[str, Any], sender: tuple[int, int] | None) -> bool:
    if _PASS_CREDENTIALS is None:
        return True  # of this system's kernel nothing more can be had
    if sender is None or sender[1] != os.geteuid():
        return False
    return "error" in said or said.get("shim") == sender[0]
