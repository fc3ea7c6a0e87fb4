"""Disks of simulated servers: what was durable outlives a crash, and nothing else does."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from ostinato.server.store.log_sqlite import SQLiteLog
from ostinato.server.store.records import Log, NoSpace, Write
from ostinato.world import Simulation
from tests.faults.workload.api import decode_object

Objects = Mapping[tuple[str, str], tuple[int, bytes]]
COLLECTION = "configmaps"


class Image:
    """A disk in memory: a log that a server can start from."""

    def __init__(self, version: int = 0, objects: Objects | None = None) -> None:
        self.version = version
        self.objects = dict(objects or {})

    def load(self) -> tuple[int, Iterator[tuple[str, str, int, bytes]]]:
        return self.version, iter([(*place, *state) for place, state in self.objects.items()])

    async def append(self, writes: Sequence[Write]) -> None:
        for write in writes:
            self.version = write.version
            self.objects.pop((write.collection, write.key), None)
            if write.data is not None:
                self.objects[write.collection, write.key] = (write.version, write.data)

    def is_outdated(self, collection: str, key: str) -> bool:
        return False

    def close(self) -> None:
        """Nothing to close."""

    def copy(self) -> Image:
        return Image(self.version, self.objects)


class Disk(Protocol):
    def open(self) -> Log:
        """The log, as after a start of the machine."""


class MemoryDisk:
    def __init__(self, image: Image) -> None:
        self._image = image

    def open(self) -> Log:
        return self._image


class SQLiteDisk:
    """Files in a directory; a crash continues with a copy of them, since the dead process still has them open."""

    def __init__(self, place: Path, world: Simulation, image: Image) -> None:
        self._place = place
        self._world = world
        self._image = image
        self._number = 0
        self._log: SQLiteLog | None = None

    def open(self) -> Log:
        self._number += 1
        here = self._place / str(self._number)
        here.mkdir(parents=True)
        if self._log is None:
            return self._first(here / "store.db")
        for file in (self._place / str(self._number - 1)).iterdir():
            if not file.name.endswith("-shm"):
                shutil.copyfile(file, here / file.name)
        self._log.close()
        self._log = SQLiteLog(here / "store.db", self._world)
        return self._log

    def _first(self, path: Path) -> Log:
        log = SQLiteLog(path, self._world)
        log.load()
        writes = [Write(c, k, v, data) for (c, k), (v, data) in self._image.objects.items()]
        log._append(sorted(writes, key=lambda write: write.version))
        log.close()
        self._log = SQLiteLog(path, self._world)
        return self._log

    def close(self) -> None:
        if self._log is not None:
            self._log.close()
        shutil.rmtree(self._place)


class FaultyLog:
    """The log of one life of a server, with the delays and failures of its disk. Records what became durable."""

    def __init__(
        self, inner: Log, delay: Callable[[], float], world: Simulation, commits: dict[int, tuple[str, int]]
    ) -> None:
        self._inner = inner
        self._delay = delay
        self._world = world
        self._commits = commits
        self.appended = 0  # batches
        self.crash_before: set[int] = set()  # batches that are not written: the process dies first
        self.crash_after: set[int] = set()  # batches that are durable when the process dies
        self.failing: Callable[[], Exception | None] = lambda: None
        self.on_crash: Callable[[], None] = lambda: None
        self._dead = False
        self._buried = asyncio.Event()

    def load(self) -> tuple[int, Iterator[tuple[str, str, int, bytes]]]:
        return self._inner.load()

    def kill(self) -> None:
        self._dead = True

    def bury(self) -> None:
        """End what the dead process was doing; its connections have been cut."""
        self._buried.set()

    async def append(self, writes: Sequence[Write]) -> None:
        self.appended += 1
        turn = self.appended
        await self._world.clock.sleep(self._delay())
        if turn in self.crash_before:
            self._crash()
        error = self.failing()
        if error is not None and not self._dead:
            raise error
        await self._alive()
        await self.commit(writes)
        if turn in self.crash_after:
            self._crash()
        await self._alive()

    async def commit(self, writes: Sequence[Write]) -> None:
        await self._inner.append(writes)
        for write in writes:
            if write.collection == COLLECTION:
                value = 0 if write.data is None else decode_object(write.data).value
                if value or write.data is None:
                    self._commits[write.version] = (write.key, value)

    def _crash(self) -> None:
        if not self._dead:
            self._dead = True
            self.on_crash()

    async def _alive(self) -> None:
        """A dead process gets no further, and answers nothing: its tasks end when its connections have been cut."""
        if self._dead:
            await self._buried.wait()
            raise OSError("the process is dead")

    def is_outdated(self, collection: str, key: str) -> bool:
        return False

    def close(self) -> None:
        """The disk closes it."""


def full() -> Exception:
    return NoSpace("database or disk is full")


def read_only() -> Exception:
    return OSError("attempt to write a readonly database")
