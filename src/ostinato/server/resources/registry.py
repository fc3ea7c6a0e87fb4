"""Registry: the served resources by group, version and name.

Built-in resources come from the discovery document and the table of strategies; custom resources are added and removed
at runtime.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources
from typing import Any

import msgspec

from ostinato.api.gvk import GroupVersionResource
from ostinato.server.resources.builtin_resource import BuiltinResource
from ostinato.server.resources.resource import Resource
from ostinato.server.store.index import Index
from ostinato.world import World


class Registry:
    def __init__(self, index: Index, world: World) -> None:
        self._resources: dict[tuple[str, str, str], Resource] = {}
        self.generation = 0  # incremented on each change; caches of discovery documents compare it
        self.discovery: dict[str, Any] = msgspec.json.decode(
            resources.files("ostinato.api").joinpath("data/discovery.json").read_bytes()
        )
        columns = msgspec.json.decode(resources.files("ostinato.server").joinpath("data/tables.json").read_bytes())
        for root in ("api", "apis"):
            for group in self.discovery[root]["items"]:
                for version in group["versions"]:
                    for raw in version["resources"]:
                        name = group["metadata"].get("name", "")
                        self.add(BuiltinResource(name, version["version"], raw, columns, index, world))

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
