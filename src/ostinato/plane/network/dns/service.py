"""The Service `kube-dns`: the address of the cluster DNS."""

from __future__ import annotations

import logging
from typing import Final

from ostinato.api.errors import APIError
from ostinato.api.gvk import NamespacedName
from ostinato.api.meta import ObjectMeta
from ostinato.client.client import Client
from ostinato.client.transport.protocol import Transport
from ostinato.kinds.core_v1 import Service, ServicePort, ServiceSpec
from ostinato.plane.network.dns.settings import ClusterDns
from ostinato.world import World

_logger = logging.getLogger("ostinato.plane.dns")

KEY: Final = NamespacedName("kube-system", "kube-dns")
_FIELD_MANAGER: Final = "ostinato"
_LABELS: Final = {"k8s-app": "kube-dns", "kubernetes.io/cluster-service": "true", "kubernetes.io/name": "KubeDNS"}


def is_answered_here(service: Service) -> bool:
    """Whether the service proxy of each machine answers queries to a Service itself: it has no Pods."""
    return NamespacedName(service.metadata.namespace, service.metadata.name) == KEY and not service.spec.selector


async def ensure(administrator: Transport, world: World, settings: ClusterDns) -> None:
    """Create the Service, or replace it if its address is another. One with a selector is left alone."""
    async with Client(administrator, world=world, field_manager=_FIELD_MANAGER) as client:
        await _ensure(client, settings)


async def _ensure(client: Client, settings: ClusterDns) -> None:
    found = await client.get(Service, KEY, missing=None)
    if found is not None:
        if found.spec.selector or found.spec.cluster_ip == settings.address:
            return
        await client.delete(Service, KEY)
    ports = [
        ServicePort(name="dns", port=53, protocol="UDP"),
        ServicePort(name="dns-tcp", port=53, protocol="TCP"),
    ]
    spec = ServiceSpec(cluster_ip=settings.address, ports=ports)
    metadata = ObjectMeta(name=KEY.name, namespace=KEY.namespace, labels=dict(_LABELS))
    try:
        await client.create(Service(metadata=metadata, spec=spec))
    except APIError as error:
        _logger.warning("no cluster DNS, its Service cannot be created address=%s error=%s", settings.address, error)
