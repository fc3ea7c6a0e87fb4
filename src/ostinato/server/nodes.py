"""Nodes: the ways to their agents, which know what goes on inside Pods.

An agent answers requests for the paths of a kubelet: `/containerLogs/NAMESPACE/POD/CONTAINER`, `/exec/…`, `/attach/…`,
`/portForward/NAMESPACE/POD`. One in this process is called; one on another machine is asked over HTTPS.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from ostinato.api.errors import InternalError
from ostinato.server.request import Answer, Request
from ostinato.server.resources.strategy import Json

Endpoint = Callable[[Request], Awaitable[Answer]]
Remote = Callable[[Json, Request], Awaitable[Answer]]
"""Asks the agent of a node that is somewhere else. An OSError says that there is nobody."""


class Nodes:
    def __init__(self) -> None:
        self._here: dict[str, Endpoint] = {}
        self.remote: Remote | None = None

    def add(self, name: str, endpoint: Endpoint) -> None:
        """The agent of a node is in this process."""
        self._here[name] = endpoint

    def is_here(self, name: str) -> bool:
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
            return await self.remote(node, request)
        except OSError as error:
            raise InternalError.of(f"no node agent answers for node {name}: {error}") from None
