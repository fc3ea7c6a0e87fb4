"""Service proxy: makes Services reachable on this machine, like kube-proxy.

A user-space proxy listens on the addresses of all Services and relays TCP and UDP to the endpoints of their
EndpointSlices. It is used on nodes that run real Pods.

| module | contains |
|---|---|
| `table` | frontends of a Service and their backends |
| `proxy` | listeners for all frontends |
| `addresses`, `netns` | Service addresses, in a network namespace of their own |
| `tcp`, `udp`, `balancer` | relays, and the choice of a backend |
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from ostinato.api.gvk import NamespacedName
from ostinato.cache import Event, Updated
from ostinato.controllers import Context, ForEvent, Request
from ostinato.kinds.core_v1 import Service
from ostinato.kinds.discovery_v1 import EndpointSlice
from ostinato.manager import Manager
from ostinato.plane.endpoints.slices import BY_SERVICE, service_of
from ostinato.plane.network.services.addresses import ServiceAddresses
from ostinato.plane.network.services.netns import NetnsAddresses
from ostinato.plane.network.services.proxy import Proxy
from ostinato.plane.network.services.table import service_table
from ostinato.plane.objects.indexes import ensure_index

SERVICES: Final = "services"
"""Name of this component."""


def add_to(manager: Manager, state: Path, addresses: ServiceAddresses | None = None) -> None:
    """Add the service proxy to a manager.

    - `state`: state directory; it identifies this proxy's network device.
    - `addresses`: where Service addresses are assigned. Defaults to a network namespace of this machine.
    """
    proxy = Proxy(manager.world, addresses or NetnsAddresses(state))
    ensure_index(manager.informers.of(EndpointSlice), BY_SERVICE)
    manager.add(proxy)
    (
        manager.build("services")
        .watch_for(Service)
        .watches(EndpointSlice, handler=ForEvent(_services_of))
        .with_options(needs_leader_election=False)
        .complete(ServiceReconciler(proxy))
    )


def _services_of(event: Event) -> Iterable[NamespacedName]:
    entries = (event.old, event.new) if isinstance(event, Updated) else (event.object,)
    return {found for entry in entries if (found := service_of(entry)) is not None}


class ServiceReconciler:
    def __init__(self, proxy: Proxy) -> None:
        self._proxy = proxy

    async def reconcile(self, request: Request, ctx: Context) -> None:
        service = await ctx.client.get(Service, request, missing=None)
        if service is None:
            await self._proxy.update(request, {})
            return
        slices = await ctx.client.list(EndpointSlice, index=(BY_SERVICE.name, str(request)))
        await self._proxy.update(request, service_table(service, slices))
