"""A container of the process runtime, observed through its keeper.

The state of each attempt is kept in its own directory, from which a restarted agent recovers it: `launch.json` (the
launch request), `lock` (held by the keeper), `state.json` (process ids), `exit.json` (exit code and time).
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from ostinato.api.time import Time
from ostinato.kinds.core_v1 import ContainerUser
from ostinato.plane.node.private_files import write_file
from ostinato.plane.node.runtimes import Exit, Usage
from ostinato.plane.node.runtimes.process.leftovers import kill_leftovers
from ostinato.plane.node.runtimes.process.stats import usage_of
from ostinato.world import Clock

SCHEME: Final = "process://"
MARKER: Final = "OSTINATO_CONTAINER"  # environment variable that identifies the container of a process
_KILLED: Final = 137
_STARTUP_DELAY: Final = 0.2  # seconds after the start before SIGTERM is sent, so that handlers can be installed
_KILL_TIMEOUT: Final = 10.0
_POLL_INTERVAL: Final = 0.5  # seconds; used where pidfd is not available


class State(msgspec.Struct):
    """Content of `state.json`, written by the keeper once the container runs."""

    pid: int
    shim: int
    started: float
    start_ticks: int = 0  # start time of the container's first process in kernel ticks


class _End(msgspec.Struct):
    """Content of `exit.json`, written by the keeper once the container has ended."""

    code: int
    at: float
    reason: str = ""
    message: str = ""


class ProcessContainer:
    image = ""

    def __init__(
        self,
        directory: Path,
        container_id: str,
        image: str,
        state: State,
        clock: Clock,
        user: ContainerUser | None = None,
    ) -> None:
        self.directory = directory
        self.user = user
        self.id = SCHEME + container_id
        self.image_id = f"{SCHEME}{image}"
        self.attempt = int(directory.name)
        self.started_at = _time(state.started)
        self.state = state
        self.exit: Exit | None = None
        self._clock = clock
        self._processor_time = 0.0  # the highest measured: a counter never decreases
        self._ended = asyncio.Event()
        self._keeper: int | None = None  # pidfd of the keeper
        self._watching: asyncio.Task[None] | None = None
        self._changed: Callable[[], None] = lambda: None

    @property
    def ready(self) -> bool:
        return self.exit is None

    def usage(self) -> Usage:
        measured = usage_of(self.state.shim)
        self._processor_time = max(self._processor_time, measured.cpu)
        return Usage(self._processor_time, measured.memory)

    def watch(self, changed: Callable[[], None]) -> None:
        """Call `changed` when the container has ended."""
        self._changed = changed
        loop = asyncio.get_running_loop()
        try:
            self._keeper = os.pidfd_open(self.state.shim)
        except ProcessLookupError:
            loop.call_soon(self._finish)
            return
        except (AttributeError, OSError):
            self._watching = loop.create_task(self._poll_keeper())
            return
        if not has_keeper(self.directory):  # the process id may have been reused
            os.close(self._keeper)
            self._keeper = None
            loop.call_soon(self._finish)
            return
        loop.add_reader(self._keeper, self._finish)

    def unwatch(self) -> None:
        """Stop watching; the container keeps running."""
        if self._watching is not None:
            self._watching.cancel()
        if self._keeper is not None:
            asyncio.get_running_loop().remove_reader(self._keeper)
            os.close(self._keeper)
            self._keeper = None

    async def stop(self, grace: float) -> None:
        if self.exit is not None:
            return
        if grace > 0:
            await self._clock.sleep(min(self.state.started + _STARTUP_DELAY - self._clock.wall(), grace))
            self._signal(signal.SIGTERM)
            with suppress(TimeoutError):
                async with self._clock.timeout(grace):
                    await self._ended.wait()
                return
        self._signal(signal.SIGUSR1)
        with suppress(TimeoutError):
            async with self._clock.timeout(_KILL_TIMEOUT):
                await self._ended.wait()
            return
        self._signal(signal.SIGKILL)
        await self._ended.wait()

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            if self._keeper is not None:
                signal.pidfd_send_signal(self._keeper, number)
            elif has_keeper(self.directory):
                os.kill(self.state.shim, number)

    async def _poll_keeper(self) -> None:
        while has_keeper(self.directory):
            await self._clock.sleep(_POLL_INTERVAL)
        self._finish()

    def _finish(self) -> None:
        if self.exit is None:
            self.unwatch()
            self.exit = read_exit(self.directory) or finalize_lost(self.directory, self._clock)
            assert self.exit is not None, "an exited keeper does not hold the lock"
            self._ended.set()
            self._changed()


def has_keeper(directory: Path) -> bool:
    """Return whether the keeper is alive."""
    lock = _lock(directory)
    if lock is not None:
        os.close(lock)
    return lock is None


def read_state(directory: Path) -> State | None:
    """Read `state.json`; None if the container never ran."""
    try:
        return msgspec.json.decode((directory / "state.json").read_bytes(), type=State)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def _lock(directory: Path) -> int | None:
    """Acquire the lock, held until the returned descriptor is closed; None if the keeper holds it."""
    lock = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock


def read_exit(directory: Path) -> Exit | None:
    """Read `exit.json`; None if the keeper has not written it."""
    try:
        content = msgspec.json.decode((directory / "exit.json").read_bytes(), type=_End)
    except (FileNotFoundError, msgspec.DecodeError):
        return None
    return Exit(code=content.code, at=_time(content.at), reason=content.reason, message=content.message)


def finalize_lost(directory: Path, clock: Clock) -> Exit | None:
    """Return the exit of a container whose keeper is not running; None if the keeper is alive.

    If the keeper died without recording an exit, kill the remaining processes and record one. A keeper that starts
    late finds that record and does not start the container.
    """
    lock = _lock(directory)
    if lock is None:
        return None
    try:
        if read_exit(directory) is None:
            message = "the keeper of the container was killed"
            end = _End(_KILLED, clock.wall(), "ContainerStatusUnknown", message)
            write_file(directory / "exit.json", msgspec.json.encode(end))
            kill_leftovers(directory, f"{MARKER}={directory}")
    finally:
        os.close(lock)
    return read_exit(directory)


def _time(seconds: float) -> Time:
    return Time.of(datetime.fromtimestamp(seconds, UTC))
