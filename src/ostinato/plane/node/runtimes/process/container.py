"""A container that is a group of processes: its keeper watches over it, and this watches the keeper.

A directory a container and attempt holds all that is known of it, so that another agent finds it again:
`launch.json` (what was started), `lock` (held by the keeper), `state.json` (process ids), `exit.json` (its end).
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
from ostinato.plane.node.runtimes import Exit
from ostinato.plane.node.runtimes.process.leftovers import kill_leftovers
from ostinato.world import Clock

SCHEME: Final = "process://"
MARK: Final = "OSTINATO_CONTAINER"  # the variable that tells to which container a process belongs
_KILLED: Final = 137
_GET_READY: Final = 0.2  # seconds that a container has to begin to heed signals
_KILL_PATIENCE: Final = 10.0
_LOOK_EVERY: Final = 0.5  # seconds, where the kernel does not tell of ends


class State(msgspec.Struct):
    """What a keeper writes when its container runs."""

    pid: int
    shim: int
    started: float
    born: int = 0  # when the container's first process was, in the kernel's count


class _End(msgspec.Struct):
    """What a keeper writes when its container has ended."""

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
        self._ended = asyncio.Event()
        self._keeper: int | None = None  # a descriptor of the keeper's process
        self._watching: asyncio.Task[None] | None = None
        self._changed: Callable[[], None] = lambda: None

    @property
    def ready(self) -> bool:
        return self.exit is None

    def watch(self, changed: Callable[[], None]) -> None:
        """Notice its end."""
        self._changed = changed
        loop = asyncio.get_running_loop()
        try:
            self._keeper = os.pidfd_open(self.state.shim)
        except ProcessLookupError:
            loop.call_soon(self._over)
            return
        except (AttributeError, OSError):
            self._watching = loop.create_task(self._look_now_and_then())
            return
        if not is_kept(self.directory):  # the number may be another's by now
            os.close(self._keeper)
            self._keeper = None
            loop.call_soon(self._over)
            return
        loop.add_reader(self._keeper, self._over)

    def forget(self) -> None:
        """Stop watching; the container goes on."""
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
            await self._clock.sleep(min(self.state.started + _GET_READY - self._clock.wall(), grace))
            self._tell(signal.SIGTERM)
            with suppress(TimeoutError):
                async with self._clock.timeout(grace):
                    await self._ended.wait()
                return
        self._tell(signal.SIGUSR1)
        with suppress(TimeoutError):
            async with self._clock.timeout(_KILL_PATIENCE):
                await self._ended.wait()
            return
        self._tell(signal.SIGKILL)
        await self._ended.wait()

    def _tell(self, number: int) -> None:
        with suppress(ProcessLookupError):
            if self._keeper is not None:
                signal.pidfd_send_signal(self._keeper, number)
            elif is_kept(self.directory):
                os.kill(self.state.shim, number)

    async def _look_now_and_then(self) -> None:
        while is_kept(self.directory):
            await self._clock.sleep(_LOOK_EVERY)
        self._over()

    def _over(self) -> None:
        if self.exit is None:
            self.forget()
            self.exit = end_of(self.directory) or give_up(self.directory, self._clock)
            assert self.exit is not None, "a keeper that has ended holds no lock"
            self._ended.set()
            self._changed()


def is_kept(directory: Path) -> bool:
    """Whether a keeper lives."""
    lock = _lock(directory)
    if lock is not None:
        os.close(lock)
    return lock is None


def state_of(directory: Path) -> State | None:
    """What the keeper wrote when its container ran; None if it did not."""
    try:
        return msgspec.json.decode((directory / "state.json").read_bytes(), type=State)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def _lock(directory: Path) -> int | None:
    """A descriptor that holds the lock as long as it is open; None if a keeper has it."""
    lock = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock


def end_of(directory: Path) -> Exit | None:
    """What the keeper wrote of its end; None if it did not."""
    try:
        said = msgspec.json.decode((directory / "exit.json").read_bytes(), type=_End)
    except (FileNotFoundError, msgspec.DecodeError):
        return None
    return Exit(code=said.code, at=_time(said.at), reason=said.reason, message=said.message)


def give_up(directory: Path, clock: Clock) -> Exit | None:
    """The end of a container whose keeper is gone without a word; None if there is a keeper.

    Nothing is left of it then, nor will a keeper that comes late begin.
    """
    lock = _lock(directory)
    if lock is None:
        return None
    try:
        if end_of(directory) is None:
            message = "the process that watched over the container was killed"
            end = _End(_KILLED, clock.wall(), "ContainerStatusUnknown", message)
            write_file(directory / "exit.json", msgspec.json.encode(end))
            kill_leftovers(directory, f"{MARK}={directory}")
    finally:
        os.close(lock)
    return end_of(directory)


def _time(seconds: float) -> Time:
    return Time.of(datetime.fromtimestamp(seconds, UTC))
