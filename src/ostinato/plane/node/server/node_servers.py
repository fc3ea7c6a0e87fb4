"""The HTTPS servers of the nodes of a control plane on this machine, as their kubelets would have.

- The first node listens on kubelet's port, if that is free; others, and further planes, on any free port. It is in the
  status of the Node.
- Serving certificates are signed by the cluster's authority, for the node's name and address.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ostinato.client.client import Client
from ostinato.plane.node.registration.node_status import PORT
from ostinato.plane.node.server.server import NodeServer
from ostinato.server.access.authority import Authority
from ostinato.server.node_agents.endpoint import Endpoint
from ostinato.server.state import writing_files
from ostinato.world import World

_logger = logging.getLogger(__name__)


class NodeServers:
    """Call `start` once, then `serve` with the endpoints, then `stop`."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._servers: dict[str, NodeServer] = {}

    @property
    def ports(self) -> Mapping[str, int]:
        """The ports, by node."""
        return {name: server.port for name, server in self._servers.items()}

    async def start(self, names: Sequence[str], host: str, state: Path, client_of: Callable[[str], Client]) -> None:
        """Listen on an address. Requests get 503 until `serve`. Raises OSError.

        - `state`: directory with the cluster's authority.
        - `client_of`: client of a node, which sends its reviews.
        """
        for name in names:
            with writing_files(state):
                authority = Authority(self._world, state)
                pair = authority.node(name, [name, "localhost", host])
            server = NodeServer(self._world, name, client_of(name))
            try:
                await server.start(host, 0 if self._servers else PORT, pair, authority.certificate.decode())
            except OSError as error:
                if self._servers:
                    raise
                _logger.warning("port of the kubelet is in use, choosing another node=%s error=%s", name, error)
                await server.start(host, 0, pair, authority.certificate.decode())
            self._servers[name] = server

    def serve(self, endpoints: Mapping[str, Endpoint]) -> None:
        for name, server in self._servers.items():
            server.endpoint = endpoints.get(name)

    async def stop(self) -> None:
        for server in self._servers.values():
            await server.stop()
        self._servers.clear()
