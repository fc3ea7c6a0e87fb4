"""Service proxy: makes Services reachable on this machine, like kube-proxy.

A user-space proxy listens on the addresses of all Services and relays TCP and UDP to the endpoints of their
EndpointSlices. It is used on nodes that run real Pods.

| module | contains |
|---|---|
| `table` | frontends of a Service and their backends |
| `endpoints` | the endpoints for a client: ready, local, near |
| `health_checks` | `healthCheckNodePort` |
| `proxy` | listeners for all frontends |
| `addresses`, `netns` | Service addresses, in a network namespace of their own |
| `tcp`, `udp`, `balancer` | relays, and the choice of a backend |

The cluster DNS (`network.dns`) answers at the address of its Service, if a server is given.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final

from ostinato.api.gvk import NamespacedName
from ostinato.cache import Event, Updated
from ostinato.controllers import Context, ForEvent, Request
from ostinato.kinds.core_v1 import Node, Service
from ostinato.kinds.discovery_v1 import EndpointSlice
from ostinato.manager import Manager
from ostinato.plane.endpoints.pods import families_of
from ostinato.plane.endpoints.slices import BY_SERVICE, service_of
from ostinato.plane.network.dns.server import DnsServer
from ostinato.plane.network.dns.service import is_answered_here
from ostinato.plane.network.policy.gate import PolicyGate
from ostinato.plane.network.services.addresses import ServiceAddresses
from ostinato.plane.network.services.endpoints import local_addresses
from ostinato.plane.network.services.health_checks import health_check_port
from ostinato.plane.network.services.netns import NetnsAddresses
from ostinato.plane.network.services.proxy import Proxy
from ostinato.plane.network.services.table import service_table
from ostinato.plane.network.services.topology import Topology
from ostinato.plane.objects.indexes import ensure_index

SERVICES: Final = "services"
"""Name of this component."""


def add_to(
    manager: Manager,
    state: Path,
    addresses: ServiceAddresses | None = None,
    dns: DnsServer | None = None,
    gate: PolicyGate | None = None,
    nodes: Collection[str] = (),
) -> Proxy:
    """Add the service proxy to a manager.

    - `state`: state directory; it identifies this proxy's network device.
    - `addresses`: where Service addresses are assigned. Defaults to a network namespace of this machine.
    - `dns`: answers at the address of the Service `kube-dns`. Defaults to None: the Service is as any other.
    - `gate`: the network policies. Defaults to None: there are none.
    - `nodes`: names of the nodes on this machine, whose endpoints are local. Default to none.
    """
    topology = Topology(manager.informers, nodes)
    proxy = Proxy(manager.world, addresses or NetnsAddresses(state), dns, gate, topology.node_of)
    services = manager.informers.of(Service)
    ensure_index(manager.informers.of(EndpointSlice), BY_SERVICE)
    manager.add(proxy)
    (
        manager.build("services")
        .watch_for(Service)
        .watches(EndpointSlice, handler=ForEvent(_services_of))
        .watches(Node, handler=ForEvent(lambda event: services.store.keys() if topology.is_changed(event) else ()))
        .with_options(needs_leader_election=False)
        .complete(ServiceReconciler(proxy, topology, has_dns=dns is not None))
    )
    return proxy


def _services_of(event: Event) -> Iterable[NamespacedName]:
    entries = (event.old, event.new) if isinstance(event, Updated) else (event.object,)
    return {found for entry in entries if (found := service_of(entry)) is not None}


class ServiceReconciler:
    def __init__(self, proxy: Proxy, topology: Topology, *, has_dns: bool = False) -> None:
        self._proxy = proxy
        self._topology = topology
        self._has_dns = has_dns

    async def reconcile(self, request: Request, ctx: Context) -> None:
        service = await ctx.client.get(Service, request, missing=None)
        if service is None:
            await self._proxy.update(request, {})
            await self._proxy.check_health(request, 0, 0)
            return
        slices = await ctx.client.list(EndpointSlice, index=(BY_SERVICE.name, str(request)))
        is_dns = self._has_dns and is_answered_here(service)
        nodes = self._topology.zones()
        await self._proxy.update(request, service_table(service, slices, nodes, is_dns=is_dns))
        family = families_of(service)[0]  # a Pod of both families is one endpoint
        local = len(local_addresses([each for each in slices if each.address_type == family], nodes))
        await self._proxy.check_health(request, health_check_port(service), local)
