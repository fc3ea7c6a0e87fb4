"""EndpointSlices: which Service each is of, and which of several controllers keeps it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ostinato.api.gvk import NamespacedName
from ostinato.cache import CachedClient, Entry, Event, by
from ostinato.cache.store.indexes import IndexBy
from ostinato.kinds.discovery_v1 import EndpointSlice

SERVICE_NAME: Final = "kubernetes.io/service-name"
MANAGED_BY: Final = "endpointslice.kubernetes.io/managed-by"


def service_of(entry: Entry) -> NamespacedName | None:
    """The Service that a slice is of, if it names any."""
    name = entry.labels.get(SERVICE_NAME)
    return NamespacedName(entry.key.namespace, name) if name else None


BY_SERVICE: Final[IndexBy] = by("service-name", lambda entry: str(found) if (found := service_of(entry)) else None)


class ManagedSlices:
    """Those that one controller keeps; it leaves the others alone."""

    def __init__(self, manager: str) -> None:
        self._manager = manager

    def services(self, event: Event) -> Iterable[NamespacedName]:
        """The Service whose slice has changed; for `ForEvent`."""
        entry = event.object
        found = service_of(entry) if entry.labels.get(MANAGED_BY) == self._manager else None
        return () if found is None else (found,)

    async def of(self, service: NamespacedName, client: CachedClient) -> list[EndpointSlice]:
        found = await client.list(EndpointSlice, index=(BY_SERVICE.name, str(service)))
        return [each for each in found if each.metadata.labels.get(MANAGED_BY) == self._manager]

    def labels(self, service: str) -> dict[str, str]:
        """By which a slice is known to be of a Service, and to be kept by this controller."""
        return {SERVICE_NAME: service, MANAGED_BY: self._manager}
