"""Registered endpoints of node agents.

An agent answers requests for the paths of a kubelet: `/containerLogs/NAMESPACE/POD/CONTAINER`, `/exec/…`, `/attach/…`,
`/portForward/NAMESPACE/POD`. One in this process is called; one on another machine is asked over HTTPS.
"""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from typing import Protocol

from ostinato.api.errors import InternalError
from ostinato.server.request import Answer, Request
from ostinato.server.resources.strategy import Json

# What an agent in this process is told of a client: how it wants to be answered, not who it is.
_FOR_AGENTS = ("accept", "connection", "sec-websocket-protocol", "upgrade", "x-stream-protocol-version")

Endpoint = Callable[[Request], Awaitable[Answer]]


class Remote(Protocol):
    """The way to the agents of nodes that are somewhere else."""

    async def ask(self, node: Json, request: Request) -> Answer:
        """The answer of an agent to a request of this server's own. An OSError says that there is nobody."""

    def tls(self) -> ssl.SSLContext:
        """With what agents are shown that it is this server who asks."""


class NodeAgents:
    def __init__(self) -> None:
        self._here: dict[str, Endpoint] = {}
        self.remote: Remote | None = None

    def add(self, name: str, endpoint: Endpoint) -> None:
        """The agent of a node is in this process."""
        self._here[name] = endpoint

    def is_local(self, name: str) -> bool:
        """Whether the agent of a node is in this process."""
        return name in self._here

    async def ask(self, node: Json, request: Request) -> Answer:
        """The answer of a node's agent; an InternalError if there is nobody to answer."""
        name = node["metadata"]["name"]
        if (endpoint := self._here.get(name)) is not None:
            return await endpoint(request)
        if self.remote is None:
            raise InternalError.of(f"no node agent answers for node {name}")
        try:
            return await self.remote.ask(node, request)
        except OSError as error:
            raise InternalError.of(f"no node agent answers for node {name}: {error}") from None

    async def forward(self, name: str, request: Request, path: str) -> Answer:
        """The answer of an agent in this process to a client's request, the path of which ends with `path`."""
        headers = {each: request.headers[each] for each in _FOR_AGENTS if each in request.headers}
        forwarded = Request(request.method, path, request.query_string, headers)
        forwarded.repeated = {each: request.repeated[each] for each in _FOR_AGENTS if each in request.repeated}
        return await self._here[name](forwarded)
