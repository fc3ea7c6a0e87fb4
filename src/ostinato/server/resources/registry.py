"""Registry: the served resources by group, version and name.

Built-in resources come from the discovery document and the table of strategies; custom resources are added and removed
at runtime.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import Any

import msgspec

from ostinato.api.gvk import GroupVersionResource
from ostinato.server.resources.builtin_resource import BuiltinResource
from ostinato.server.resources.resource import Resource
from ostinato.server.store.index import Index
from ostinato.world import World


@cache
def _document(package: str, name: str) -> dict[str, Any]:
    """Read a file of data; it is shared by all servers of the process, and not modified."""
    found: dict[str, Any] = msgspec.json.decode(resources.files(package).joinpath(f"data/{name}.json").read_bytes())
    return found


@cache
def _builtin_resources() -> list[BuiltinResource]:
    """Return the built-in resources, which no server serves yet."""
    discovery, columns = _document("ostinato.api", "discovery"), _document("ostinato.server", "tables")
    return [
        BuiltinResource(group["metadata"].get("name", ""), version["version"], raw, columns)
        for root in ("api", "apis")
        for group in discovery[root]["items"]
        for version in group["versions"]
        for raw in version["resources"]
    ]


class Registry:
    def __init__(self, index: Index, world: World) -> None:
        self._resources: dict[tuple[str, str, str], Resource] = {}
        self.generation = 0  # incremented on each change; caches of discovery documents compare it
        self.discovery = _document("ostinato.api", "discovery")
        for kind in _builtin_resources():
            self.add(kind.served(index, world))

    def get(self, group: str, version: str, resource: str) -> Resource | None:
        return self._resources.get((group, version, resource))

    def has_group(self, group: str) -> bool:
        return any(key[0] == group for key in self._resources)

    def __iter__(self) -> Iterator[Resource]:
        return iter(list(self._resources.values()))

    def add(self, resource: Resource) -> None:
        gvr = resource.gvr
        self._resources[gvr.group, gvr.version, gvr.resource] = resource
        self.generation += 1

    def remove(self, gvr: GroupVersionResource) -> None:
        if self._resources.pop((gvr.group, gvr.version, gvr.resource), None) is not None:
            self.generation += 1
