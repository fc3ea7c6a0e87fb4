"""The API of all nodes of a process, on a Unix socket for the API server.

The API server has authenticated and authorized the client, and names the node in the `Host` header.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ostinato.http import unix_sockets
from ostinato.plane.access.local_sockets import nodes_socket
from ostinato.server.http import HttpServer
from ostinato.server.node_agents.endpoint import Endpoint
from ostinato.server.request import Answer, Request, Response, text_response
from ostinato.world import World


class NodeListener:
    """Call `start` once, then `stop`."""

    def __init__(self, world: World, endpoints: Mapping[str, Endpoint]) -> None:
        self.world = world
        self._endpoints = endpoints
        self._http = HttpServer(self, None)
        self._socket: Path | None = None

    async def start(self, state: Path) -> None:
        self._socket = nodes_socket(state)
        await self._http.start_unix(unix_sockets.listen(self._socket))

    async def stop(self) -> None:
        await self._http.stop()
        if self._socket is not None:
            self._socket.unlink(missing_ok=True)

    # What the listener calls

    def handle_now(self, request: Request) -> Response | None:  # noqa: ARG002
        return None

    async def handle(self, request: Request) -> Answer:
        endpoint = self._endpoints.get(request.headers.get("host", ""))
        return text_response(404, "node not found") if endpoint is None else await endpoint(request)
