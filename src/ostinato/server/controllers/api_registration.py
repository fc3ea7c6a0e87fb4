"""Registration of this server's own group versions as local APIServices, as by kube-apiserver's autoregister.

- The group versions of CustomResourceDefinitions get APIServices, which are restored when they are deleted or changed,
  and deleted with the last definition. One that an administrator has created is not touched: it may be that of an
  extension server.
- Those of built-in groups are created when the server starts (`bootstrap`).
- An APIService that has no Service is available.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Final

from ostinato.server.aggregation.api_services import (
    MANAGED_LABEL,
    ApiService,
    ApiServices,
    GroupVersion,
    Priority,
)
from ostinato.server.aggregation.availability import LOCAL, Availability
from ostinato.server.controllers.bootstrap import ensure
from ostinato.server.resources.strategy import Json
from ostinato.server.store.index import Index
from ostinato.server.store.records import Conflict
from ostinato.server.verbs import write
from ostinato.world import World

_ALWAYS: Final = "true"
_PRIORITY: Final = Priority(1000, 100)  # of custom resources
_MANAGER: Final = "kube-apiserver"


class ApiRegistration:
    def __init__(
        self,
        world: World,
        index: Index,
        services: ApiServices,
        availability: Availability,
        wanted: Callable[[], Collection[GroupVersion]],
    ) -> None:
        """`wanted`: the group versions of custom resources."""
        self._world = world
        self._index = index
        self._services = services
        self._availability = availability
        self._wanted = wanted

    async def reconcile(self) -> None:
        """Create, restore and delete the APIServices of custom resources; mark local ones as available."""
        wanted = self._wanted()
        for group, version in wanted:
            known = self._services.get(f"{version}.{group}")
            if known is None:
                await self._create(group, version)
            elif known.managed == _ALWAYS and (known.service is not None or known.priority != _PRIORITY):
                await self._restore(known)
        for known in self._services:
            if known.managed == _ALWAYS and known.key not in wanted:
                await self._delete(known)
            elif known.service is None and known.reason != LOCAL.reason:
                await self._availability.reconcile(known)

    async def _create(self, group: str, version: str) -> None:
        await ensure(self._world, self._index, self._services.resource, _object(group, version))

    async def _restore(self, known: ApiService) -> None:
        entry, resource = self._services.entry(known.name), self._services.resource
        if entry is None:
            return
        old = resource.object(entry.data)
        new = {**old, "spec": _object(*known.key)["spec"]}
        new = resource.managers[""].update(old, new, _MANAGER, write.now(self._world.clock))
        with suppress(Conflict):
            await write.put_object(self._index, resource, new, entry)

    async def _delete(self, known: ApiService) -> None:
        entry, collection = self._services.entry(known.name), self._services.resource.collection
        assert collection is not None
        if entry is not None and entry.uid == known.uid:
            with suppress(Conflict):
                await self._index.delete(collection, entry.key, entry)


def _object(group: str, version: str) -> Json:
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": f"{version}.{group}", "labels": {MANAGED_LABEL: _ALWAYS}},
        "spec": {
            "group": group,
            "version": version,
            "groupPriorityMinimum": _PRIORITY.group,
            "versionPriority": _PRIORITY.version,
        },
    }
