"""Registry: the served resources by group, version and name.

Built-in resources come from the discovery document and the table of strategies; custom resources are added and removed
at runtime. With an index that opens its collections on first use, so are the built-in resources.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from itertools import islice
from typing import Any

import msgspec

from ostinato.api.gvk import GroupResource, GroupVersionKind, GroupVersionResource
from ostinato.server.resources.builtin_resource import BuiltinResource
from ostinato.server.resources.resource import Resource
from ostinato.server.store.index import Index
from ostinato.world import World


@cache
def _document(package: str, name: str) -> dict[str, Any]:
    """Read a file of data; it is shared by all servers of the process, and not modified."""
    found: dict[str, Any] = msgspec.json.decode(resources.files(package).joinpath(f"data/{name}.json").read_bytes())
    return found


_Key = tuple[str, str, str]  # group, version and name


@cache
def _builtin_resources() -> Mapping[_Key, BuiltinResource]:
    """Return the built-in resources, which no server serves yet."""
    discovery, columns = _document("ostinato.api", "discovery"), _document("ostinato.server", "tables")
    return {
        (group["metadata"].get("name", ""), version["version"], raw["resource"]): BuiltinResource(
            group["metadata"].get("name", ""), version["version"], raw, columns
        )
        for root in ("api", "apis")
        for group in discovery[root]["items"]
        for version in group["versions"]
        for raw in version["resources"]
    }


@cache
def _builtin_names() -> frozenset[GroupResource]:
    return frozenset(each.group_resource for each in _builtin_resources().values())


class Registry:
    def __init__(self, index: Index, world: World) -> None:
        self._index = index
        self._world = world
        self._builtin = _builtin_resources()
        self._resources: dict[_Key, Resource | None] = dict.fromkeys(self._builtin)  # None: not used yet
        self.generation = len(self._builtin)  # incremented on each change; caches of discovery documents compare it
        self.discovery = _document("ostinato.api", "discovery")
        if not index.opens_on_first_use:
            for key in self._builtin:
                self._serve(key)

    def get(self, group: str, version: str, resource: str) -> Resource | None:
        key = (group, version, resource)
        found = self._resources.get(key)
        return self._serve(key) if found is None and key in self._resources else found

    def of_kind(self, gvk: GroupVersionKind) -> list[Resource]:
        """Return the resources whose objects are of a kind."""
        return [self._used(key) for key, each in self._kinds() if each.gvk == gvk]

    def of_any_version(self, wanted: GroupResource) -> list[Resource]:
        return [self._used(key) for key, each in self._kinds() if each.group_resource == wanted]

    def has_group(self, group: str) -> bool:
        return any(key[0] == group for key in self._resources)

    def has_builtin(self, wanted: GroupResource) -> bool:
        """Whether it serves a resource that no definition defines."""
        added = islice(self._resources.values(), len(self._builtin), None)
        others = (each for each in added if each is not None and not each.custom)
        return wanted in _builtin_names() or any(each.group_resource == wanted for each in others)

    def custom(self) -> list[Resource]:
        """Return the resources that definitions define."""
        return [each for each in self._resources.values() if each is not None and each.custom]

    @property
    def groups(self) -> frozenset[str]:
        return frozenset([key[0] for key in self._resources])

    def __iter__(self) -> Iterator[Resource]:
        return iter([self._used(key) for key in list(self._resources)])

    def add(self, resource: Resource) -> None:
        gvr = resource.gvr
        self._resources[gvr.group, gvr.version, gvr.resource] = resource
        self.generation += 1

    def remove(self, gvr: GroupVersionResource) -> None:
        if self._resources.pop((gvr.group, gvr.version, gvr.resource), None) is not None:
            self.generation += 1

    def _used(self, key: _Key) -> Resource:
        return self._resources[key] or self._serve(key)

    def _serve(self, key: _Key) -> Resource:
        made = self._resources[key] = self._builtin[key].served(self._index, self._world)
        return made

    def _kinds(self) -> list[tuple[_Key, Resource]]:
        """Return what is known of all resources without using them: their names, kinds and scopes."""
        return [(key, each or self._builtin[key]) for key, each in self._resources.items()]
