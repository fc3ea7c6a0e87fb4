"""The DNS server of this machine."""

from __future__ import annotations

from ostinato.manager import Manager
from ostinato.plane.network.dns.directory import InformerDirectory
from ostinato.plane.network.dns.server import DnsServer
from ostinato.plane.network.dns.settings import ClusterDns, nameservers
from ostinato.plane.network.dns.upstream import Upstream
from ostinato.plane.network.dns.zone import Zone


def dns_server(manager: Manager, settings: ClusterDns) -> DnsServer:
    """The DNS server of this machine, for `services.add_to`. Reads from the manager's informers."""
    world = manager.world
    directory = InformerDirectory(manager.informers)
    zone = Zone(directory, settings.domain, settings.address, int(world.clock.now().timestamp()))
    upstream = Upstream(world, lambda: [each for each in nameservers() if each != settings.address])
    return DnsServer(zone, upstream, world.rng)
