"""Registered endpoints of node agents.

An agent serves a kubelet's paths: `/containerLogs/NAMESPACE/POD/CONTAINER`, `/exec/…`, `/attach/…`,
`/portForward/NAMESPACE/POD`. An agent in this process is called directly, others over HTTPS.
"""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from typing import Protocol

from ostinato.api.errors import InternalError
from ostinato.server.request import Answer, Request
from ostinato.server.resources.strategy import Json

# Client headers passed to agents in this process: content negotiation and upgrades, no credentials.
_FOR_AGENTS = ("accept", "connection", "sec-websocket-protocol", "upgrade", "x-stream-protocol-version")

Endpoint = Callable[[Request], Awaitable[Answer]]


class Remote(Protocol):
    """Client of remote agents."""

    async def send(self, node: Json, request: Request) -> Answer:
        """Send a request of this server to an agent; OSError if it cannot be reached."""

    def tls(self) -> ssl.SSLContext:
        """The TLS context with this server's client certificate."""


class NodeAgents:
    def __init__(self) -> None:
        self._here: dict[str, Endpoint] = {}
        self.remote: Remote | None = None

    def add(self, name: str, endpoint: Endpoint) -> None:
        """Register the agent of a node in this process."""
        self._here[name] = endpoint

    def is_local(self, name: str) -> bool:
        """Whether the agent of a node is in this process."""
        return name in self._here

    async def send(self, node: Json, request: Request) -> Answer:
        """Send a request to a node's agent; InternalError if it cannot be reached."""
        name = node["metadata"]["name"]
        if (endpoint := self._here.get(name)) is not None:
            return await endpoint(request)
        if self.remote is None:
            raise InternalError.of(f"no node agent answers for node {name}")
        try:
            return await self.remote.send(node, request)
        except OSError as error:
            raise InternalError.of(f"no node agent answers for node {name}: {error}") from None

    async def forward(self, name: str, request: Request, path: str) -> Answer:
        """Forward a client's request to an agent in this process. `path`: the path on the agent."""
        headers = {each: request.headers[each] for each in _FOR_AGENTS if each in request.headers}
        forwarded = Request(request.method, path, request.query_string, headers)
        forwarded.repeated = {each: request.repeated[each] for each in _FOR_AGENTS if each in request.repeated}
        return await self._here[name](forwarded)
