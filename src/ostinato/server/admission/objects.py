"""The objects that plugins look at besides the one that is written."""

from __future__ import annotations

from collections.abc import Sized
from typing import TYPE_CHECKING, Any

import msgspec

from ostinato.api.errors import Forbidden
from ostinato.server.resources.strategy import Json

if TYPE_CHECKING:
    from ostinato.server.resources.registry import Registry
    from ostinato.server.resources.resource import Resource
    from ostinato.server.store.index import Collection, Entry
    from ostinato.server.verbs.context import Context


class Kind:
    """The objects of one built-in kind, as they stand in the store, durable or not."""

    def __init__(self, registry: Registry, group: str, version: str, resource: str) -> None:
        found = registry.get(group, version, resource)
        assert found is not None
        assert found.collection is not None
        self.resource: Resource = found
        self._collection: Collection = found.collection
        self._kept: tuple[Any, list[Json]] = (None, [])

    @property
    def collection(self) -> Collection:
        return self._collection

    def get(self, name: str, namespace: str = "") -> Json | None:
        entry = self._collection.newest(self.resource.key(namespace, name))
        return None if entry is None else msgspec.json.decode(entry.data)

    @property
    def present(self) -> tuple[Sized, Sized]:
        """What is empty as long as there are none: for `Plugin.goes_by`."""
        return self._collection.entries, self._collection.pending

    def entries(self, namespace: str = "") -> list[Entry]:
        prefix = f"{namespace}/" if namespace else ""
        found = {entry.key: entry for entry in self._collection.select(prefix)}
        for key, entry in self._collection.pending.items():
            if key.startswith(prefix):
                if entry is None:
                    found.pop(key, None)
                else:
                    found[key] = entry
        return list(found.values())

    def all(self) -> list[Json]:
        """Every object; decoded once for each state, for kinds of which there are few. Not to be changed."""
        entries = self.entries()
        state = [entry.version for entry in entries]
        if state != self._kept[0]:
            self._kept = (state, [msgspec.json.decode(entry.data) for entry in entries])
        return self._kept[1]


def forbidden(context: Context, obj: Json | None, why: object) -> Forbidden:
    """A refusal, in the name of the object as far as it has one yet; where many are deleted, none is named."""
    if context.route.verb == "deletecollection":
        return Forbidden.of(context.resource.group_resource, "Unknown", why)
    metadata: Json = (obj or {}).get("metadata", {})
    name = context.route.name or metadata.get("name") or metadata.get("generateName") or "Unknown"
    return Forbidden.of(context.resource.group_resource, name, why)


def is_of(context: Context, group: str, resource: str) -> bool:
    """Whether a request is for objects of a kind themselves, not for a subresource."""
    return (
        context.resource.gvr.resource == resource
        and context.resource.gvr.group == group
        and not (context.route.subresource)
    )
