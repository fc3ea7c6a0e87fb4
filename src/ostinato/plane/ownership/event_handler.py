"""Claimants: who is to look at an object that comes, changes or goes: its controller, or those who might adopt it.

    manager.build("statefulset-controller").watch_for(StatefulSet).watches(PodState, handler=ForClaimants(StatefulSet))

- An object that somebody manages is that one's matter alone; one that changes hands is of interest to both.
- An object that nobody manages is of interest to all of the kind, in its namespace, whose selector matches it: when it
  comes, and when its labels or its owners have changed. When it goes, nobody misses it.

It is asked about every event of every Pod, and decodes none of them: owners that many Pods share are read once.
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

_MOST_SELECTORS = 10_000  # that are kept read


def selector_of(selector: LabelSelector | None) -> Selector:
    """The selector of an object's spec; None selects nothing. A `SelectorError` says what is wrong with it."""
    return from_label_selector(None if selector is None else to_dict(selector))


def selector_text(selector: LabelSelector | None) -> str:
    """A selector as it stands in the messages of Kubernetes."""
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
    """What the kinds of apps/v1 select."""
    return selector_of(owner.spec.selector)


class ForControllerRef(Handler, Generic[O]):
    index = BY_CONTROLLER  # by which `Claims` finds the same objects

    def __init__(self, kind: type[O], select: Callable[[O], Selector] = selector_in_spec) -> None:
        """
        - `kind`: of those who claim.
        - `select`: what one of them selects. Defaults to `spec.selector`.
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
    """Which objects of a kind select another object, by the labels that it has."""

    def __init__(
        self,
        kind: type[O],
        select: Callable[[O], Selector] = selector_in_spec,
        version: Callable[[Entry], Hashable] = lambda entry: entry.generation,
    ) -> None:
        """`version`: what differs when the selector may. Defaults to the generation."""
        self._kind = kind
        self._select = select
        self._version = version
        self._store: ReadableStore | None = None
        self._known: dict[tuple[str, Hashable], Selector] = {}  # by uid and version

    def prepare(self, dependencies: Dependencies) -> None:
        """Look among the objects in these caches."""
        self._store = dependencies.informers.of(self._kind).store

    def matching(self, entry: Entry) -> list[NamespacedName]:
        """The objects, in the same namespace, that select this one."""
        assert self._store is not None, "a handler is prepared before the first event"
        candidates = self._store.entries(entry.key.namespace)
        if not candidates:
            return []
        labels = entry.labels
        return [each.key for each in candidates if self._of(each).matches(labels)]

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
    """The one that manages, from the JSON of the references."""
    for reference in (_read_references(owners) if owners else None) or ():
        if reference.controller:
            try:
                group = GroupVersion.parse(reference.api_version).group
            except ValueError:
                return None
            return _Controller(GroupKind(group, reference.kind), reference.name)
    return None
