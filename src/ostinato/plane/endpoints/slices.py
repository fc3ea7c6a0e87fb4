"""EndpointSlices: their Service, and the controller that manages them."""

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
    """Return the Service of a slice; None if it has no label."""
    name = entry.labels.get(SERVICE_NAME)
    return NamespacedName(entry.key.namespace, name) if name else None


BY_SERVICE: Final[IndexBy] = by("service-name", lambda entry: str(found) if (found := service_of(entry)) else None)


class ManagedSlices:
    """The slices that one controller manages."""

    def __init__(self, manager: str) -> None:
        self._manager = manager

    def services(self, event: Event) -> Iterable[NamespacedName]:
        """Return the Service of a changed slice, for `ForEvent`."""
        entry = event.object
        found = service_of(entry) if entry.labels.get(MANAGED_BY) == self._manager else None
        return () if found is None else (found,)

    async def of(self, service: NamespacedName, client: CachedClient) -> list[EndpointSlice]:
        found = await client.list(EndpointSlice, index=(BY_SERVICE.name, str(service)))
        return [each for each in found if each.metadata.labels.get(MANAGED_BY) == self._manager]

    def labels(self, service: str) -> dict[str, str]:
        """Return the labels of a managed slice."""
        return {SERVICE_NAME: service, MANAGED_BY: self._manager}
