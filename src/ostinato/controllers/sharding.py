"""Sharding, as a controller sees it: which keys belong to this replica, and when that changes."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Hashable
from typing import TYPE_CHECKING, Any, Final, Protocol

from ostinato.api.gvk import NamespacedName
from ostinato.client.views import View

if TYPE_CHECKING:
    from ostinato.controllers.runnable import Dependencies

_MANY: Final = 1_000  # keys

Selects = Callable[[Hashable], bool]
"""Whether a key belongs to a shard."""


class ShardListener(Protocol):
    """A started controller."""

    def gained(self, selects: Selects) -> None:
        """Reconcile the keys of a shard that this replica has acquired."""

    async def left(self, selects: Selects) -> None:
        """Stop what runs between reconciles for the keys of a shard, and wait until it has ended."""


class Shards(Protocol):
    """The shards of this replica."""

    def owns(self, key: Hashable, /) -> bool:
        """Whether this replica holds the shard of a key."""

    async def run(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, None]], /) -> bool:
        """Run a reconcile, which is cancelled if the shard is lost. Returns False if it may not begin now."""

    def add(self, listener: ShardListener, /) -> None: ...

    def remove(self, listener: ShardListener, /) -> None: ...


class ShardedKeys:
    """All keys of a controller, also those of other replicas: they are reconciled here when their shard is gained."""

    def __init__(self, dependencies: Dependencies, view: View[Any] | None) -> None:
        """`view`: the kind of the objects that keys name; None if the sources define the keys."""
        assert dependencies.shards is not None
        self.shards = dependencies.shards
        self._informers = dependencies.informers
        self._gvk = None if view is None else view.gvk
        self._keys: set[Hashable] = set()
        self._most = _MANY  # number at which keys of objects that are gone are removed

    def add(self, key: Hashable) -> bool:
        """Return whether a key belongs to this replica, and keep it in any case."""
        self._keys.add(key)
        if len(self._keys) > self._most:
            self._keys = {each for each in self._keys if self._exists(each)}
            self._most = max(_MANY, 2 * len(self._keys))
        return self.shards.owns(key)

    def selected(self, selects: Selects) -> list[Hashable]:
        return [key for key in self._keys if selects(key)]

    def _exists(self, key: Hashable) -> bool:
        if self._gvk is None or not isinstance(key, NamespacedName):
            return True
        return any(key in informer.store for informer in self._informers.all(self._gvk))
