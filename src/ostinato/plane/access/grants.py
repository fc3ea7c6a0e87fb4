"""What components and joining nodes need in the store of their API server."""

from __future__ import annotations

from ostinato.client.client import Client
from ostinato.plane.access import cluster_info as joining
from ostinato.plane.access import identities, roles
from ostinato.server.in_process.transport import InProcessTransport
from ostinato.server.standalone import Settings, Standalone
from ostinato.world import World


async def ensure(server: Standalone, settings: Settings, world: World, *, csi: bool = False) -> None:
    """Create the RBAC rules of the components, and the configuration that nodes join with.

    `csi`: whether the controllers provision, attach and expand volumes of CSI drivers.
    """
    assert server.core is not None, "the server is started"
    transport = InProcessTransport(server.core)
    client = Client(transport, world=world, field_manager=identities.FIELD_MANAGER)
    await roles.ensure(client, csi=csi)
    await joining.ensure(client, server.url, (settings.state / "ca.crt").read_bytes())
    await client.close()
