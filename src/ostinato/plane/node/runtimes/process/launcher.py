"""Client of the shim launcher, the process that forks the keepers of all containers of a runtime.

The channel is a socket pair. The launcher is started with no other descriptor and closes inherited ones first, so that
no container gets the other end. A reply is accepted only if the kernel's credentials show that the keeper itself sent
it: a process of this user with the process id that the reply names. No other process can make the agent act on a
process id of its choice.
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
_START_TIMEOUT: Final = 30.0  # seconds for a keeper to reply
_EXIT_TIMEOUT: Final = 5.0
_CHUNK: Final = 65536
_CREDENTIALS: Final = struct.Struct("3i")  # pid, uid, gid
_PASS_CREDENTIALS: Final = getattr(socket, "SO_PASSCRED", None)


class LauncherError(Exception):
    """The keeper did not reply."""


class ShimLauncher:
    def __init__(self, clock: Clock, errors: Path) -> None:
        """`errors`: log file for the standard output and error of the launcher."""
        self._clock = clock
        self._errors = errors
        self._running: _LauncherProcess | None = None
        self._waiting: dict[str, asyncio.Future[dict[str, Any]]] = {}  # by directory

    async def launch(self, directory: Path) -> dict[str, Any]:
        """Start the container of a directory and return the keeper's reply; `LauncherError` if there is none."""
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[dict[str, Any]] = loop.create_future()
        self._waiting[str(directory)] = answered
        try:
            channel = self._open(loop)
            async with self._clock.timeout(_START_TIMEOUT):
                await loop.sock_sendall(channel, os.fsencode(directory) + b"\n")
                return await answered
        except (OSError, TimeoutError) as error:
            raise LauncherError(f"shim does not reply: {str(error) or 'timed out'}") from None
        finally:
            self._waiting.pop(str(directory), None)

    def _open(self, loop: asyncio.AbstractEventLoop) -> socket.socket:
        """Return the channel to the launcher, which is started if needed."""
        if self._running is None:
            self._running = _LauncherProcess(self._errors)
            channel = self._running.channel
            loop.add_reader(channel.fileno(), self._receive, loop, self._running)
            weakref.finalize(self, self._running.close)
        return self._running.channel

    def _receive(self, loop: asyncio.AbstractEventLoop, running: _LauncherProcess) -> None:
        try:
            data, ancillary, _, _ = running.channel.recvmsg(_CHUNK, socket.CMSG_SPACE(_CREDENTIALS.size) * 2)
        except BlockingIOError:
            return
        except OSError:
            data, ancillary = b"", []
        sender = _sender(ancillary)
        for line in data.splitlines():
            with suppress(msgspec.DecodeError):
                reply = msgspec.json.decode(line, type=dict[str, Any])
                waiting = self._waiting.get(reply.get("directory", ""))
                if waiting is not None and not waiting.done() and _is_authentic(reply, sender):
                    waiting.set_result(reply)
        if not data:
            loop.remove_reader(running.channel.fileno())
            running.close()
            self._running = None
            for each in self._waiting.values():
                if not each.done():
                    each.set_exception(OSError("launcher exited"))


class _LauncherProcess:
    """A launcher process and the agent's end of the channel to it."""

    def __init__(self, errors: Path) -> None:
        self.channel, theirs = socket.socketpair()
        if _PASS_CREDENTIALS is not None:
            self.channel.setsockopt(socket.SOL_SOCKET, _PASS_CREDENTIALS, 1)
        self.channel.settimeout(0)
        out = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            # Not asyncio.create_subprocess_exec: uvloop leaks descriptors of the agent into child processes.
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
        """Close the channel; the launcher exits, keepers keep running."""
        self.channel.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_EXIT_TIMEOUT)


def _sender(ancillary: list[tuple[int, int, bytes]]) -> tuple[int, int] | None:
    """Return process and user id from SCM_CREDENTIALS; None without them. Received descriptors are closed."""
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


def _is_authentic(reply: dict[str, Any], sender: tuple[int, int] | None) -> bool:
    if _PASS_CREDENTIALS is None:
        return True  # this system does not pass credentials
    if sender is None or sender[1] != os.geteuid():
        return False
    return "error" in reply or reply.get("shim") == sender[0]
