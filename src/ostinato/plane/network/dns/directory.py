"""The objects of the cluster zone, from informers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ostinato.api.gvk import NamespacedName
from ostinato.cache import IndexBy, by_field
from ostinato.cache.informers import Informers
from ostinato.kinds.core_v1 import Namespace, Service
from ostinato.kinds.discovery_v1 import EndpointSlice
from ostinato.plane.endpoints.slices import BY_SERVICE
from ostinato.plane.objects.indexes import ensure_index

_BY_CLUSTER_IP: Final[IndexBy] = by_field("spec.clusterIPs[*]")
_BY_ADDRESS: Final[IndexBy] = by_field("endpoints[*].addresses[*]")


class InformerDirectory:
    """A `Directory`."""

    def __init__(self, informers: Informers) -> None:
        services, slices = informers.of(Service), informers.of(EndpointSlice)
        ensure_index(services, _BY_CLUSTER_IP)
        ensure_index(slices, BY_SERVICE)
        ensure_index(slices, _BY_ADDRESS)
        self._services = services.lister(Service)
        self._slices = slices.lister(EndpointSlice)
        self._namespaces = informers.of(Namespace)
        self._informers = (services, slices, self._namespaces)

    @property
    def is_ready(self) -> bool:
        return all(each.has_synced for each in self._informers)

    def service(self, namespace: str, name: str) -> Service | None:
        return self._services.find(name, namespace)

    def slices(self, namespace: str, name: str) -> Sequence[EndpointSlice]:
        return self._slices.by_index(BY_SERVICE.name, str(NamespacedName(namespace, name)))

    def has_namespace(self, name: str) -> bool:
        return NamespacedName("", name) in self._namespaces.store

    def services_at(self, address: str) -> Sequence[Service]:
        return self._services.by_index(_BY_CLUSTER_IP.name, address)

    def slices_at(self, address: str) -> Sequence[EndpointSlice]:
        return self._slices.by_index(_BY_ADDRESS.name, address)
