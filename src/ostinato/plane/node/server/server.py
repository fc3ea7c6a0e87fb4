"""The HTTPS server of a node; requests are authorized by `authorization`."""

from __future__ import annotations

import ssl
from pathlib import Path

from ostinato.client.client import Client
from ostinato.plane.node.server.authorization import DelegatedAuthorization
from ostinato.server.access.authority import Pair
from ostinato.server.http import HttpServer
from ostinato.server.node_agents.endpoint import Endpoint
from ostinato.server.request import Answer, Request, Response, text_response
from ostinato.world import World


class NodeServer:
    """Serves the API of one node. Call `start` once, then `stop`."""

    def __init__(self, world: World, node: str, client: Client) -> None:
        """`client`: sends TokenReviews and SubjectAccessReviews."""
        self.world = world
        self.endpoint: Endpoint | None = None  # requests get 503 until it is set
        self._node = node
        self._authorization = DelegatedAuthorization(node, client, world.clock)
        self._http: HttpServer | None = None
        self._context: ssl.SSLContext | None = None

    @property
    def port(self) -> int:
        """The listening port, after `start`."""
        assert self._http is not None, "started"
        return self._http.port

    async def start(self, host: str, port: int, own: Pair, authority: str | None) -> None:
        """Listen; OSError if that fails.

        `own`: the serving certificate until `use_certificate`. `authority`: PEM of the CA that client certificates must
        be signed by; without it clients authenticate with tokens only.
        """
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
        """Use a certificate, with its key in the same file, for new connections."""
        assert self._context is not None, "started"
        self._context.load_cert_chain(certificate)

    async def stop(self) -> None:
        if self._http is not None:
            await self._http.stop()
            self._http = None

    # What the listener calls

    def handle_now(self, request: Request) -> Response | None:  # noqa: ARG002
        return None

    async def handle(self, request: Request) -> Answer:
        refused = await self._authorization.check(request)
        if refused is not None:
            return refused
        return text_response(503, "starting") if self.endpoint is None else await self.endpoint(request)
