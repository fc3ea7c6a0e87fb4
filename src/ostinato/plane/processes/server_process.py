"""The API server of a control plane in several processes.

It serves HTTPS as any other, and its Unix socket for the components. It imports none of the components.
"""

from __future__ import annotations

import socket

from ostinato.http import unix_sockets
from ostinato.plane.access import grants
from ostinato.plane.access.local_sockets import apiserver_socket, identify, node_names, nodes_socket
from ostinato.plane.network.dns import service as dns_service
from ostinato.plane.network.dns.settings import ClusterDns
from ostinato.server.http import HttpServer
from ostinato.server.in_process.transport import InProcessTransport
from ostinato.server.node_agents.local import LocalNodeAgents
from ostinato.server.standalone import Settings, Standalone
from ostinato.server.state import StateDirectory
from ostinato.world import World


class ServerProcess:
    """Call `start` once, then `stop`."""

    def __init__(
        self,
        world: World,
        settings: Settings,
        state: StateDirectory | None = None,
        *,
        listening: socket.socket | None = None,
        nodes: int = 0,
        measures_usage: bool = False,
        dns: ClusterDns | None = None,
        csi: bool = False,
    ) -> None:
        """
        - `state`: the locked state directory. Defaults to locking that of the settings.
        - `listening`: the Unix socket of the components. Defaults to a new one in the state directory.
        - `nodes`: number of nodes whose agents run in another process. Defaults to 0.
        - `measures_usage`: whether these nodes measure what containers use. Defaults to false.
        - `dns`: the cluster DNS. Defaults to None: there is none.
        - `csi`: whether the controllers serve CSI drivers (`--csi-socket`). Defaults to false.
        """
        self._dns = dns
        self._csi = csi
        self._world = world
        self._settings = settings
        self._listening = listening
        self._nodes = nodes
        self._measures_usage = measures_usage
        self._server = Standalone(world, settings, state)
        self._local: HttpServer | None = None

    @property
    def url(self) -> str:
        return self._server.url

    async def start(self) -> None:
        """Start the server; on return all processes can connect. Raises what `Standalone.start` raises."""
        await self._server.start()
        try:
            core, state = self._server.core, self._settings.state.absolute()
            assert core is not None, "started"
            agents = LocalNodeAgents(nodes_socket(state))
            for name in node_names(self._nodes):
                core.nodes.add(name, agents.endpoint(name))
            if self._measures_usage:
                core.serve_usage()
            await grants.ensure(self._server, self._settings, self._world, csi=self._csi)
            if self._dns is not None:
                await dns_service.ensure(InProcessTransport(core), self._world, self._dns)
            audited = core.auditor is not None
            self._local = HttpServer(core, None, core.turns, audited=audited, identify=identify)
            await self._local.start_unix(self._listening or unix_sockets.listen(apiserver_socket(state)))
        except BaseException:
            await self.stop()
            raise

    async def failed(self) -> None:
        """Wait until the store is unusable and raise its error."""
        await self._server.failed()

    async def stop(self) -> None:
        if self._local is not None:
            await self._local.stop()
            self._local = None
        await self._server.stop()
