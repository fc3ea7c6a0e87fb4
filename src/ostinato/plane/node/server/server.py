"""The agent of a node as a server: the endpoint over HTTPS, for API servers on other machines.

Who may ask is decided by `delegation`.
"""

from __future__ import annotations

import ssl
from pathlib import Path

from ostinato.client.client import Client
from ostinato.plane.node.server.authorization import DelegatedAuthorization
from ostinato.server.access.authority import Authority
from ostinato.server.http import HttpServer
from ostinato.server.node_agents.endpoint import Endpoint
from ostinato.server.request import Answer, Request, Response, text_response
from ostinato.world import World

PORT = 10250


class NodeServer:
    """Answers for one node. `start` it once, then `stop` it."""

    def __init__(self, world: World, node: str, client: Client) -> None:
        """`client`: to ask who may ask."""
        self.world = world
        self.endpoint: Endpoint | None = None  # nobody is answered before it is there
        self._node = node
        self._authorization = DelegatedAuthorization(node, client, world.clock)
        self._http: HttpServer | None = None
        self._context: ssl.SSLContext | None = None

    @property
    def port(self) -> int:
        """Where it listens, once it does."""
        assert self._http is not None, "it has been started"
        return self._http.port

    async def start(self, host: str, port: int, directory: Path, authority: str | None) -> None:
        """Listen; an OSError if that cannot be. Until it is told to `show` another, its certificate is self-signed.

        `directory` keeps the node's own certificate. `authority`: the certificates that clients' must be signed by, as
        PEM; without them only tokens tell who somebody is.
        """
        own = Authority(self.world, directory).server("kubelet", [self._node, "localhost", "127.0.0.1"])
        context = self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(own.certificate, own.key)
        if authority is not None:
            context.load_verify_locations(cadata=authority)
            context.verify_mode = ssl.CERT_OPTIONAL
        context.set_alpn_protocols(["http/1.1"])
        self._http = HttpServer(self, context)
        await self._http.start(host, port)

    def use_certificate(self, certificate: Path) -> None:
        """Show another certificate, with its key in the same file, on connections from now on."""
        assert self._context is not None, "it has been started"
        self._context.load_cert_chain(certificate)

    async def stop(self) -> None:
        if self._http is not None:
            await self._http.stop()
            self._http = None

    # What the listener calls

    def at_once(self, request: Request) -> Response | None:  # noqa: ARG002
        return None

    async def handle(self, request: Request) -> Answer:
        refused = await self._authorization.refusal(request)
        if refused is not None:
            return refused
        return text_response(503, "starting") if self.endpoint is None else await self.endpoint(request)
