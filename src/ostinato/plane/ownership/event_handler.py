"""Event handler that enqueues the controller of an object, or the objects that may adopt it.

    builder.watch_for(StatefulSet).watches(PodState, handler=ForControllerRef(StatefulSet))

- An object with a controller reference enqueues its controller; if the reference changed, the former controller too.
- An orphan enqueues all objects of the kind in its namespace that select it, when it is added and when its labels or
  owners change.

It runs for every Pod event and decodes no Pods; decoded owner references are cached.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Any, Generic, TypeVar

import msgspec

from ostinato.api.codec import to_dict
from ostinato.api.gvk import GroupKind, GroupVersion, NamespacedName
from ostinato.api.meta import LabelSelector
from ostinato.api.object import Object, kind_of
from ostinato.api.selectors.labels import Selector, SelectorError, from_label_selector, nothing
from ostinato.cache.events import Deleted, Event, Updated
from ostinato.cache.readable_store import ReadableStore
from ostinato.cache.store.entry import Entry
from ostinato.client.views import View
from ostinato.controllers.runnable import Dependencies
from ostinato.controllers.sources.handlers import Handler, Keys
from ostinato.plane.ownership.controller_refs import BY_CONTROLLER

O = TypeVar("O", bound=Object)  # noqa: E741

_MOST_SELECTORS = 10_000  # cached


def selector_of(selector: LabelSelector | None) -> Selector:
    """Compile a LabelSelector; None selects nothing. Raises `SelectorError`."""
    return from_label_selector(None if selector is None else to_dict(selector))


def selector_text(selector: LabelSelector | None) -> str:
    """Format a LabelSelector as Go prints it."""
    if selector is None:
        return "nil"
    labels = "".join(f"{key}: {value}," for key, value in sorted(selector.match_labels.items()))
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{each.key},Operator:{each.operator},Values:[{' '.join(each.values)}],}},"
        for each in selector.match_expressions
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )


def selector_in_spec(owner: Any) -> Selector:
    """Return the selector of spec.selector."""
    return selector_of(owner.spec.selector)


class ForControllerRef(Handler, Generic[O]):
    index = BY_CONTROLLER  # ControllerRefManager uses the same index

    def __init__(self, kind: type[O], select: Callable[[O], Selector] = selector_in_spec) -> None:
        """
        - `kind`: kind of the controllers.
        - `select`: returns the selector of an object. Defaults to `spec.selector`.
        """
        self._kind = kind
        self._group_kind = kind_of(kind).gvk.group_kind
        self._selectors = SelectingObjects(kind, select)

    async def prepare(self, watched: View[Any], dependencies: Dependencies) -> None:  # noqa: ARG002
        self._selectors.prepare(dependencies)

    def keys(self, event: Event) -> Keys:
        entry = event.object
        manager = _controller(entry.owners_json)
        if isinstance(event, Updated):
            old = event.old
            changed_hands = old.owners_json != entry.owners_json
            keys = self._key(old, _controller(old.owners_json)) if changed_hands else []
            if manager is not None:
                keys += self._key(entry, manager)
            elif changed_hands or old.labels_json != entry.labels_json:
                keys += self._selectors.matching(entry)
            return keys
        if manager is not None:
            return self._key(entry, manager)
        return () if isinstance(event, Deleted) else self._selectors.matching(entry)

    def _key(self, entry: Entry, manager: _Controller | None) -> list[NamespacedName]:
        if manager is None or manager.group_kind != self._group_kind:
            return []
        return [NamespacedName(entry.key.namespace, manager.name)]


class SelectingObjects(Generic[O]):
    """Finds the objects of a kind whose selector matches another object."""

    def __init__(
        self,
        kind: type[O],
        select: Callable[[O], Selector] = selector_in_spec,
        version: Callable[[Entry], Hashable] = lambda entry: entry.generation,
    ) -> None:
        """`version`: changes when the selector may have changed. Defaults to the generation."""
        self._kind = kind
        self._select = select
        self._version = version
        self._store: ReadableStore | None = None
        self._known: dict[tuple[str, Hashable], Selector] = {}  # by (uid, version)
        self._matches: dict[tuple[str, bytes], tuple[NamespacedName, ...]] = {}  # by namespace and labels
        self._matches_at = ""  # resourceVersion of the store that the matches are of

    def prepare(self, dependencies: Dependencies) -> None:
        """Use the informer of the kind."""
        self._store = dependencies.informers.of(self._kind).store

    def matching(self, entry: Entry) -> tuple[NamespacedName, ...]:
        """Return the keys of the objects in the same namespace that select this one.

        The result is kept by labels until an object of the kind changes: thousands of Pods have the same labels.
        """
        assert self._store is not None, "prepare() runs before the first event"
        if self._matches_at != self._store.resource_version or len(self._matches) >= _MOST_SELECTORS:
            self._matches.clear()
            self._matches_at = self._store.resource_version
        place = entry.key.namespace, entry.labels_json
        found = self._matches.get(place)
        if found is None:
            labels = entry.labels
            candidates = self._store.entries(entry.key.namespace)
            found = self._matches[place] = tuple(each.key for each in candidates if self._of(each).matches(labels))
        return found

    def _of(self, owner: Entry) -> Selector:
        version = (owner.uid, self._version(owner))
        found = self._known.get(version)
        if found is None:
            if len(self._known) >= _MOST_SELECTORS:
                self._known.clear()
            try:
                found = self._select(owner.read(self._kind))
            except SelectorError:
                found = nothing()
            self._known[version] = found
        return found


class _Controller(msgspec.Struct, frozen=True):
    group_kind: GroupKind
    name: str


class _Reference(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    controller: bool | None = None


_read_references = msgspec.json.Decoder(list[_Reference] | None).decode


@lru_cache(maxsize=16_384)
def _controller(owners: bytes) -> _Controller | None:
    """Return the controller from the JSON of ownerReferences."""
    for reference in (_read_references(owners) if owners else None) or ():
        if reference.controller:
            try:
                group = GroupVersion.parse(reference.api_version).group
            except ValueError:
                return None
            return _Controller(GroupKind(group, reference.kind), reference.name)
    return None
