"""Services on this machine: whoever connects to one's address reaches one of its endpoints.

A proxy of this process listens at the addresses of all Services, and relays to the endpoints that their EndpointSlices
tell of: TCP and UDP. It is for nodes whose Pods really run; elsewhere there is nobody to be reached.

| module | is |
|---|---|
| `table` | where a Service is to answer, and who answers |
| `proxy` | has that come true |
| `network`, `annex`, `namespaces`, `netlink` | the addresses of Services, apart from those that Pods listen on |
| `tcp`, `udp`, `balancer` | the relays, and the choice of an endpoint |
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
"""The name of this part of a plane."""


def add_to(manager: Manager, state: Path, addresses: ServiceAddresses | None = None) -> None:
    """Have Services answer on this machine.

    - `state`: the directory of whoever does so; it has no other.
    - `network`: where their addresses are. Defaults to an annex of this machine's.
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
