"""Node agents in another process of this machine, reached over a Unix socket.

One process serves all of them: the `Host` header has the name of the node.
"""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

from ostinato.api.errors import InternalError
from ostinato.http import unix_sockets
from ostinato.http.byte_stream import PlainStream
from ostinato.server.node_agents import exchange
from ostinato.server.node_agents.endpoint import Endpoint
from ostinato.server.node_agents.exchange import AgentSocket
from ostinato.server.request import Answer, Request


class LocalNodeAgents:
    """Client of the agents that a socket serves."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket

    def endpoint(self, node: str) -> Endpoint:
        """Return the endpoint of a node's agent."""
        return partial(self._send, node)

    async def _send(self, node: str, request: Request) -> Answer:
        try:
            return await exchange.send(partial(self._dial, node), request)
        except OSError as error:
            raise InternalError.of(f"no node agent answers for node {node}: {error.strerror or error}") from None

    async def _dial(self, node: str) -> AgentSocket:
        connection = unix_sockets.connect(self._socket)
        return AgentSocket(node, PlainStream(*await asyncio.open_unix_connection(sock=connection)))
