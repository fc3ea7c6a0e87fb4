"""Monitor: the objects of one `kubernetes` binding, and its events.

- Events are held back until the first list has been handled (`unlock`). Reading the objects drops those held back: the
  reader has seen them.
"""

from __future__ import annotations

from collections.abc import Callable

from ostinato.api.gvk import GroupVersionKind
from ostinato.cache.informers import Informers
from ostinato.client.client import Client
from ostinato.frontends.hooks.config.bindings import KubernetesBinding
from ostinato.frontends.kernel.kind_names import find_kind
from ostinato.frontends.kernel.snapshots.snapshot import ChangeType, Item, Selection, Snapshot

Emit = Callable[[KubernetesBinding, ChangeType, Item], object]


class Monitor:
    def __init__(self, binding: KubernetesBinding, emit: Emit) -> None:
        self.binding = binding
        self._emit = emit
        self._snapshot: Snapshot | None = None
        self._kind: GroupVersionKind | None = None
        self._held: list[tuple[ChangeType, Item]] = []
        self._is_unlocked = False

    @property
    def is_started(self) -> bool:
        return self._snapshot is not None

    async def start(self, client: Client, informers: Informers) -> None:
        """Look up the kind, and wait for the current objects. No effect if it has started.

        Raises `NoSuchResource`, `SyncError` or `FilterError`.
        """
        if self._snapshot is not None:
            return
        binding = self.binding
        info = await find_kind(client.mapper, binding.api_version, binding.kind)
        namespaces = binding.namespaces
        if namespaces == ("",):  # all, as far as the manager watches them
            namespaces = informers.settings_of(info.gvk).namespaces
        selection = Selection(
            kind=info.gvk,
            namespaces=namespaces if info.namespaced else ("",),
            names=binding.names,
            labels=binding.labels,
            fields=binding.fields,
            namespace_labels=binding.namespace_labels if info.namespaced else None,
            managed_fields=binding.managed_fields,
            resync=binding.resync,
        )
        snapshot = Snapshot(selection, binding.reduce, keep_objects=binding.keep_objects, on_change=self._changed)
        try:
            await snapshot.start(informers)
        except BaseException:
            await snapshot.stop()
            raise
        self._snapshot = snapshot
        self._kind = info.gvk

    async def stop(self) -> None:
        snapshot, self._snapshot = self._snapshot, None
        self._held.clear()
        if snapshot is not None:
            await snapshot.stop()

    def items(self) -> list[Item]:
        """Return the current objects, sorted by namespace and name; [] before the start."""
        if not self._is_unlocked:
            self._held.clear()
        return self.peek()

    def peek(self) -> list[Item]:
        """Return the current objects, without the effect on events that are held back."""
        return [] if self._snapshot is None else self._snapshot.items()

    def __len__(self) -> int:
        return 0 if self._snapshot is None else len(self._snapshot)

    def is_behind(self, kind: GroupVersionKind, change: ChangeType, item: Item) -> bool:
        """Whether a change of an object of a kind has been seen by another monitor, and is still to arrive here."""
        return self._snapshot is not None and self._kind == kind and self._snapshot.is_behind(change, item)

    @property
    def kind(self) -> GroupVersionKind | None:
        """The kind, once it has started."""
        return self._kind

    def unlock(self) -> None:
        """Emit the events that were held back, and all later ones."""
        if self._is_unlocked:
            return
        self._is_unlocked = True
        held, self._held = self._held, []
        for change, item in held:
            self._emit(self.binding, change, item)

    def _changed(self, change: ChangeType, item: Item) -> None:
        if change not in self.binding.events:
            return
        if self._is_unlocked:
            self._emit(self.binding, change, item)
        else:
            self._held.append((change, item))
