"""Records of the store: entries, events, the log that makes writes durable, and the errors of all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import msgspec


class Entry:
    """An object at one resourceVersion."""

    __slots__ = ("converted", "data", "fields", "key", "labels", "uid", "version")

    # By apiVersion, results of the conversion webhook; set only if the kind has one.
    converted: dict[str, Entry]

    def __init__(
        self, key: str, version: int, data: bytes, labels: dict[str, str], fields: dict[str, str], uid: str
    ) -> None:
        self.key = key  # "namespace/name", or "name" for cluster-scoped objects
        self.version = version
        self.data = data  # the object as JSON, without kind and apiVersion, which the resource adds
        self.labels = labels
        self.fields = fields  # values of selectable fields
        self.uid = uid


class _NoCache(dict[Any, bytes]):
    """The encodings of an old event: nothing is cached."""

    def __setitem__(self, key: Any, value: bytes) -> None:
        pass


NO_CACHE = _NoCache()


class Event:
    """One write: the entries before and after. At least one is not None."""

    __slots__ = ("encoded", "entry", "key", "length", "previous", "retained", "time", "version")

    def __init__(self, key: str, version: int, entry: Entry | None, previous: Entry | None, time: float) -> None:
        self.key = key
        self.version = version
        self.entry = entry  # None: deleted
        self.previous = previous  # None: created
        self.time = time
        self.retained = 0 if previous is None else len(previous.data)  # bytes that the history retains for this event
        self.length = self.retained if entry is None else len(entry.data)  # bytes of the object that watchers receive
        self.encoded: dict[Any, bytes] = {}  # encodings by form, shared by all watchers


class Write(msgspec.Struct, frozen=True):
    """One write for the log."""

    collection: str
    key: str
    version: int
    data: bytes | None  # None: deleted
    replaces: int = 0  # resourceVersion of the replaced object; 0: created


class Log(Protocol):
    """Durable log of writes. Called from one task at a time."""

    def load(self) -> tuple[int, Iterator[tuple[str, str, int, bytes]]]:
        """The last resourceVersion, and all objects: collection, key, resourceVersion, data."""

    async def append(self, writes: Sequence[Write]) -> None:
        """Make the writes durable, all or none; raise on failure."""

    def is_outdated(self, collection: str, key: str) -> bool:
        """Whether the object should be written again, although it has not changed."""

    def close(self) -> None: ...


class Conflict(Exception):  # noqa: N818
    """The object is not in the state that the write expects; `current` is its newest state."""

    def __init__(self, current: Entry | None) -> None:
        super().__init__("the object has changed")
        self.current = current


class Compacted(Exception):  # noqa: N818
    """The requested resourceVersion is older than the history."""

    def __init__(self, oldest: int) -> None:
        super().__init__(f"the oldest available resourceVersion is {oldest}")
        self.oldest = oldest


class UnusableStore(Exception):  # noqa: N818
    """The store cannot be opened; the message has the reason and the remedy."""


class StoreFailed(Exception):  # noqa: N818
    """A write could not be made durable, and has no effect."""


class StoreFull(StoreFailed):
    """The store has no space for a write. The message is the store's own."""


class OutcomeUnknown(StoreFailed):
    """A write was sent to the store, which has not answered: it may or may not have happened."""

    def __init__(self, message: str, *, timed_out: bool) -> None:
        super().__init__(message)
        self.timed_out = timed_out  # otherwise the connection was lost


class NoSpace(Exception):  # noqa: N818
    """The log has no space for a batch of writes."""


# Fields of an object's metadata, in the order of its data. Custom resources sort theirs.
METADATA_ORDER = (
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
)

# Adds the defaults of this server to an object in its stored form, which it may modify; returns the object.
Complete = Callable[[dict[str, Any]], dict[str, Any]]

# Reads labels, selectable fields and uid from stored data; passed by the owner of the collection.
Describe = Callable[[bytes], tuple[dict[str, str], dict[str, str], str]]
