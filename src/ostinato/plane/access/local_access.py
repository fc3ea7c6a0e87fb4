"""Transports of components to an API server in another process: HTTP over its Unix socket (`local_sockets`).

A component has a transport of its own, so that it does not wait for the requests of another. Nodes share one, as there
may be thousands: each request names its identity.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ostinato.client.config.config import Config
from ostinato.client.http.transport import HttpTransport
from ostinato.client.transport.protocol import Request, Response, Transport, WebSocket
from ostinato.manager.connecting import Purpose
from ostinato.plane.access import identities
from ostinato.plane.access.local_sockets import apiserver_socket
from ostinato.server.http.connection import IDENTITY_HEADER
from ostinato.world import World


class LocalAccess:
    """Transports to the API server of a state directory."""

    def __init__(self, world: World, state: Path) -> None:
        self._world = world
        self._socket = apiserver_socket(state)
        self._transports: dict[str, HttpTransport] = {}

    def connect(self, purpose: Purpose, *headers: tuple[str, str]) -> Transport:
        """Return the transport of a component; without an identity it is the controller manager's.

        `headers`: of all its requests.
        """
        identity = purpose.identity or identities.MANAGER
        return IdentityTransport(self._transport(identities.family(identity)), identity, *headers)

    async def close(self) -> None:
        for transport in self._transports.values():
            await transport.close()

    def _transport(self, key: str) -> HttpTransport:
        found = self._transports.get(key)
        if found is None:
            config = Config(server="http://localhost", environment_proxies=False, compression=False)
            found = HttpTransport(config, self._world, unix_socket=self._socket)
            self._transports[key] = found
        return found


class IdentityTransport:
    """Adds the identity of a component, and other headers, to its requests. See `Transport`."""

    def __init__(self, transport: HttpTransport, identity: str, *headers: tuple[str, str]) -> None:
        self._transport = transport
        self._headers = ((IDENTITY_HEADER, identity), *headers)

    @property
    def host(self) -> str:
        return self._transport.host

    async def request(self, request: Request) -> Response:
        return await self._transport.request(self._identified(request))

    async def websocket(self, request: Request, protocols: Sequence[str]) -> WebSocket:
        return await self._transport.websocket(self._identified(request), protocols)

    async def close(self) -> None:
        """Do nothing: `LocalAccess` closes the shared transport."""

    def _identified(self, request: Request) -> Request:
        return request._replace(headers=[*request.headers, *self._headers])
