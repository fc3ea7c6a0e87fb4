"""Related objects: others than the children that a decider needs to see, selected for each parent.

An event of a selected object enqueues the parents that select it. Kinds are watched from their first selection.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Final

import msgspec

from ostinato.api.gvk import GroupVersionKind, NamespacedName
from ostinato.api.selectors.labels import Selector, from_label_selector
from ostinato.cache.client import CachedClient
from ostinato.cache.events import Event, Updated
from ostinato.cache.store.entry import Entry
from ostinato.client.views import MetadataOf, Unstructured
from ostinato.controllers.controller import Controller
from ostinato.controllers.sources.handlers import ForEvent
from ostinato.frontends.kernel.sync import Json, Objects, kind_key, object_key
from ostinato.frontends.kernel.watching import WatchedKinds

_NAMESPACE: Final = GroupVersionKind("", "v1", "Namespace")


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Objects of a kind.

    - `namespace`: Defaults to "", all.
    - `names`: Default to (), all.
    - `labels`: a LabelSelector, as in JSON. Defaults to None, all.
    - `namespace_labels`: a LabelSelector for the namespaces. Defaults to None, all.
    """

    gvk: GroupVersionKind
    namespace: str = ""
    names: tuple[str, ...] = ()
    labels: Json | None = None
    namespace_labels: Json | None = None


class _Compiled(msgspec.Struct, frozen=True):
    """A selection with its parsed selectors."""

    selection: Selection
    labels: Selector | None
    namespaces: Selector | None

    @classmethod
    def of(cls, selection: Selection) -> _Compiled:
        def parsed(selector: Json | None) -> Selector | None:
            return None if selector is None else from_label_selector(selector)

        return cls(selection, parsed(selection.labels), parsed(selection.namespace_labels))

    def matches(self, key: NamespacedName, labels: Mapping[str, str]) -> bool:
        """Return whether an object is selected, as far as its namespace's labels allow."""
        wanted = self.selection
        if wanted.namespace and key.namespace != wanted.namespace:
            return False
        if wanted.names and key.name not in wanted.names:
            return False
        return self.labels is None or self.labels.matches(labels)


class RelatedObjects:
    def __init__(self, controller: Controller) -> None:
        self.kinds = WatchedKinds(controller, ForEvent(self._keys))
        self._selections: dict[Hashable, tuple[_Compiled, ...]] = {}  # by parent

    async def collect(self, parent: Hashable, selections: Sequence[Selection], client: CachedClient) -> Objects:
        """Return the selected objects by kind and key; all selected kinds are present. Watches them from now on.

        Raises ValueError for a malformed selector.
        """
        compiled = tuple(map(_Compiled.of, selections))
        if compiled:
            self._selections[parent] = compiled
        else:
            self._selections.pop(parent, None)
        used = {each.selection.gvk for each in compiled}
        if any(each.namespaces is not None for each in compiled):
            used.add(_NAMESPACE)
        missing = await self.kinds.use(parent, used)
        found: Objects = {kind_key(each.selection.gvk): {} for each in compiled}
        for each in compiled:
            if each.selection.gvk not in missing:
                selected = found[kind_key(each.selection.gvk)]
                for instance in await self._selected(each, client):
                    selected[object_key(instance)] = instance
        return {kind: dict(sorted(objects.items())) for kind, objects in found.items()}

    async def forget(self, parent: Hashable) -> None:
        """Stop watching for a parent that is gone."""
        self._selections.pop(parent, None)
        await self.kinds.use(parent, ())

    async def _selected(self, compiled: _Compiled, client: CachedClient) -> list[Json]:
        wanted = compiled.selection
        view = Unstructured(wanted.gvk)
        listed = await client.list(view, namespace=wanted.namespace, labels=compiled.labels)
        found = [each for each in listed if not wanted.names or each["metadata"]["name"] in wanted.names]
        if compiled.namespaces is None:
            return found
        spaces = await client.list(MetadataOf(_NAMESPACE), labels=compiled.namespaces)
        names = {each.metadata.name for each in spaces}
        return [each for each in found if each["metadata"].get("namespace") in names]

    def _keys(self, event: Event) -> list[Hashable]:
        entries = [event.object, *([event.old] if isinstance(event, Updated) else [])]
        gvk = event.object.collection.info.gvk
        return [
            parent
            for parent, selections in self._selections.items()
            if any(self._concerns(each, gvk, entries) for each in selections)
        ]

    def _concerns(self, compiled: _Compiled, gvk: GroupVersionKind, entries: Sequence[Entry]) -> bool:
        if gvk == compiled.selection.gvk and any(compiled.matches(each.key, each.labels) for each in entries):
            return True
        if gvk != _NAMESPACE or compiled.namespaces is None:
            return False
        return len({compiled.namespaces.matches(each.labels) for each in entries}) > 1 or len(entries) == 1
