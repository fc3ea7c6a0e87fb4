"""Binding contexts: why a hook runs, as the JSON that it reads from BINDING_CONTEXT_PATH.

| trigger | fields |
|---|---|
| start | `binding: onStartup` |
| schedule | `binding`, `type: Schedule`, `snapshots?` |
| first list | `binding`, `type: Synchronization`, `objects`, `snapshots?` |
| event | `binding`, `type: Event`, `watchEvent`, `object`, `filterResult?`, `snapshots?` |
| any of a group | `binding`, `type: Group`, `groupName`, `snapshots` |
| admission | `binding`, `type: Validating` or `Mutating`, `review`, `snapshots?` |
| conversion | `binding`, `type: Conversion`, `fromVersion`, `toVersion`, `review`, `snapshots?` |

The object of an event is that of the event. `objects` and `snapshots` are read just before the run, those of one
binding once, so that all contexts of a run agree. Objects are copied as JSON, without being decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal

import msgspec

from ostinato.frontends.kernel.snapshots.snapshot import ChangeType, Item

Source = Literal["onStartup", "schedule", "kubernetes", "kubernetesValidating", "kubernetesMutating", "conversion"]
Items = Callable[[str], list[Item]]
"""Returns the objects of a `kubernetes` binding."""

_REVIEWS: Final = {"kubernetesValidating": "Validating", "kubernetesMutating": "Mutating"}
_EVENTS_V0: Final = {"Added": "add", "Modified": "update", "Deleted": "delete"}


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """One trigger of one binding.

    - `change`, `item`: of an event; without them a `kubernetes` context is the first list.
    - `review`: the AdmissionReview or ConversionReview, as JSON.
    """

    source: Source
    binding: str
    group: str = ""
    include_snapshots: tuple[str, ...] = ()
    change: ChangeType | None = None
    item: Item | None = None
    review: bytes = b""
    versions: tuple[str, str] = ("", "")

    @property
    def is_synchronization(self) -> bool:
        return self.source == "kubernetes" and self.change is None


STARTUP: Final = Context(source="onStartup", binding="onStartup")


class Rendering:
    """The contexts of one run, with the snapshots of its start."""

    def __init__(self, contexts: Sequence[Context], items: Items) -> None:
        self.contexts = contexts
        self._items = items
        self._read: dict[str, list[Item]] = {}

    def refresh(self) -> None:
        """Read all snapshots that the contexts include."""
        for context in self.contexts:
            for name in context.include_snapshots:
                self.items(name)
            if context.is_synchronization:
                self.items(context.binding)

    def items(self, binding: str) -> list[Item]:
        if binding not in self._read:
            self._read[binding] = self._items(binding)
        return self._read[binding]

    def json(self, version: str) -> bytes:
        """Return all contexts as a JSON array."""
        mapped = map(self._v0 if version == "v0" else self._v1, self.contexts)
        return msgspec.json.encode(list(mapped))

    def _v1(self, context: Context) -> dict[str, Any]:
        found: dict[str, Any] = {"binding": context.binding}
        if context.source == "onStartup":
            return found
        if context.include_snapshots:
            found["snapshots"] = {name: _list(self.items(name)) for name in context.include_snapshots}
        if context.source in _REVIEWS:
            return {**found, "type": _REVIEWS[context.source], "review": msgspec.Raw(context.review)}
        if context.source == "conversion":
            before, after = context.versions
            review = msgspec.Raw(context.review)
            return {**found, "type": "Conversion", "fromVersion": before, "toVersion": after, "review": review}
        if context.group:
            return {**found, "type": "Group", "groupName": context.group}
        if context.source == "schedule":
            return {**found, "type": "Schedule"}
        if context.item is None:
            return {**found, "type": "Synchronization", "objects": _list(self.items(context.binding))}
        return {**found, "type": "Event", "watchEvent": context.change, **_mapped(context.item)}

    def _v0(self, context: Context) -> dict[str, Any]:
        found: dict[str, Any] = {"binding": context.binding}
        if context.source != "kubernetes" or context.item is None:
            return found
        key, entry = context.item.key, context.item.entry
        return {
            **found,
            "resourceEvent": _EVENTS_V0[context.change or "Added"],
            "resourceNamespace": key.namespace,
            "resourceKind": "" if entry is None else entry.collection.info.gvk.kind,
            "resourceName": key.name,
        }


def combined(contexts: Sequence[Context]) -> list[Context]:
    """Drop each context that is followed by one of the same group: the last one has the snapshots of all."""
    following = [*contexts[1:], None]
    return [
        each
        for each, after in zip(contexts, following, strict=True)
        if not each.group or after is None or after.group != each.group
    ]


def _list(items: list[Item]) -> list[dict[str, Any]]:
    return [_mapped(item) for item in items]


def _mapped(item: Item) -> dict[str, Any]:
    found: dict[str, Any] = {}
    data = item.json
    if data is not None:
        found["object"] = msgspec.Raw(data)
    if item.result is not None:
        found["filterResult"] = msgspec.Raw(item.result)
    return found
