"""Disk: the log of a server in one world. It starts from an image, and can return to any earlier state."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType

from ostinato.server.store.collection import Collection
from ostinato.server.store.local import LocalIndex
from ostinato.server.store.log_memory import MemoryLog
from ostinato.server.store.records import Entry, Log, Write
from ostinato.world import Clock

Place = tuple[str, str]  # collection and key
Objects = Mapping[Place, tuple[int, bytes]]


class Disk(MemoryLog):
    """
    - `objects`: in their current state.
    - `recent`: those of them that were written since the image.
    """

    def __init__(
        self,
        version: int,
        objects: Objects,
        written: Callable[[Write], None],
        recent: Objects = MappingProxyType({}),
    ) -> None:
        """`written`: called with each write when it is durable."""
        self.version = version
        self.objects: dict[Place, tuple[int, bytes]] = dict(objects)
        self.recent: dict[Place, tuple[int, bytes]] = dict(recent)
        self.history: list[Write] = []
        self._base = (version, objects)
        self._recent_base = recent
        self._written = written

    def load(self) -> tuple[int, Iterator[tuple[str, str, int, bytes]]]:
        return self.version, ((*place, *state) for place, state in self.objects.items())

    async def append(self, writes: Sequence[Write]) -> None:
        for write in writes:
            self._apply(write)
            self.history.append(write)
            self._written(write)

    def at(self, version: int) -> Disk:
        """Return the disk as it was at a resourceVersion, to start another server from."""
        past = Disk(*self._base, self._written, self._recent_base)
        for write in self.history:
            if write.version > version:
                break
            past._apply(write)
            past.history.append(write)
        return past

    def is_image(self, objects: Objects) -> bool:
        """Whether it has the objects of an image, unchanged."""
        return not self.history and self._base[1] is objects

    def _apply(self, write: Write) -> None:
        self.version = write.version
        place = (write.collection, write.key)
        if write.data is None:
            self.objects.pop(place, None)
            self.recent.pop(place, None)
        else:
            self.objects[place] = self.recent[place] = (write.version, write.data)


class Entries:
    """The entries of an image by collection. The servers of all worlds share them, and do not modify them."""

    def __init__(self, objects: Objects) -> None:
        self.objects = objects
        self.by_collection: dict[str, dict[str, Entry]] = {}
        self.stored: dict[str, list[tuple[str, int, bytes]]] = {}  # the same, as `LocalIndex` loads them
        for (collection, key), (version, data) in objects.items():
            self.stored.setdefault(collection, []).append((key, version, data))


class DiskIndex(LocalIndex):
    """The index of a server that starts from a disk. `image`: entries of the image, which the first server adds."""

    opens_on_first_use = True  # most worlds use few kinds

    def __init__(self, disk: Disk, clock: Clock, image: Entries) -> None:
        self._image = image if disk.is_image(image.objects) else None
        super().__init__(disk, clock)

    def _load(self, log: Log) -> tuple[int, dict[str, list[tuple[str, int, bytes]]]]:
        if self._image is None:
            return super()._load(log)
        return log.load()[0], dict(self._image.stored)

    def _fill(self, collection: Collection) -> None:
        if self._image is None or collection.kind is not None:  # a definition refreshes the entries of its kind
            super()._fill(collection)
            return
        shared, name = self._image.by_collection, collection.name
        if name in shared:
            self._loaded.pop(name, None)
            collection.entries.update(shared[name])
            collection.keys.extend(shared[name])
        else:
            super()._fill(collection)
            shared[name] = dict(collection.entries)
