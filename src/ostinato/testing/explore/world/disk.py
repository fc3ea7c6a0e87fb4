"""Disk: the log of a server in one world. It starts from an image, and can return to any earlier state."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from ostinato.server.store.local import LocalIndex
from ostinato.server.store.log_memory import MemoryLog
from ostinato.server.store.records import Describe, Write
from ostinato.world import Clock

Described = tuple[dict[str, str], dict[str, str], str]
Place = tuple[str, str]  # collection and key
Objects = Mapping[Place, tuple[int, bytes]]


class Disk(MemoryLog):
    """`written`: called with each write when it is durable."""

    def __init__(self, version: int, objects: Objects, written: Callable[[Write], None]) -> None:
        self.version = version
        self.objects: dict[Place, tuple[int, bytes]] = dict(objects)
        self.history: list[Write] = []
        self._base = (version, objects)
        self._written = written

    def load(self) -> tuple[int, Iterator[tuple[str, str, int, bytes]]]:
        return self.version, iter([(*place, *state) for place, state in self.objects.items()])

    async def append(self, writes: Sequence[Write]) -> None:
        for write in writes:
            self._apply(write)
            self.history.append(write)
            self._written(write)

    def at(self, version: int) -> Disk:
        """Return the disk as it was at a resourceVersion, to start another server from."""
        past = Disk(*self._base, self._written)
        for write in self.history:
            if write.version > version:
                break
            past._apply(write)
            past.history.append(write)
        return past

    def _apply(self, write: Write) -> None:
        self.version = write.version
        place = (write.collection, write.key)
        if write.data is None:
            self.objects.pop(place, None)
        else:
            self.objects[place] = (write.version, write.data)


class DiskIndex(LocalIndex):
    """The index of a server that starts from a disk. `known`: descriptions of objects, shared by all worlds."""

    def __init__(self, disk: Disk, clock: Clock, known: dict[bytes, Described]) -> None:
        super().__init__(disk, clock)
        self._known = known

    def _described(self, describe: Describe, data: bytes) -> Described:
        found = self._known.get(data)
        if found is None:
            found = self._known[data] = describe(data)
        return found
