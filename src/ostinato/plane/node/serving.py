"""The agent of a node as a server: the endpoint over HTTPS, for API servers on other machines.

Who asks is told by a client certificate of the cluster's authority, or by a token, which the API server knows. Whether
they may is the API server's word too: it must let them `get` or `create` what a kubelet calls `nodes/proxy`.
"""

from __future__ import annotations

import ssl
from pathlib import Path

from ostinato.api.errors import APIError
from ostinato.client.client import Client
from ostinato.client.transport.protocol import TransportError
from ostinato.kinds.authentication_v1 import TokenReview, TokenReviewSpec
from ostinato.kinds.authorization_v1 import ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec
from ostinato.server.access.authority import Authority
from ostinato.server.http import HttpServer
from ostinato.server.nodes import Endpoint
from ostinato.server.request import Answer, Peer, Request, Response, text_response
from ostinato.world import World

PORT = 10250


class NodeServer:
    """Answers for one node. `start` it once, then `stop` it."""

    def __init__(self, world: World, node: str, client: Client) -> None:
        """`client`: to ask who may ask."""
        self.world = world
        self.endpoint: Endpoint | None = None  # nobody is answered before it is there
        self._node = node
        self._client = client
        self._http: HttpServer | None = None

    @property
    def port(self) -> int:
        """Where it listens, once it does."""
        assert self._http is not None, "it has been started"
        return self._http.port

    async def start(self, host: str, port: int, directory: Path, authority: str | None) -> None:
        """Listen; an OSError if that cannot be.

        `directory` keeps the node's own certificate. `authority`: the certificates that clients' must be signed by, as
        PEM; without them only tokens tell who somebody is.
        """
        own = Authority(self.world, directory).server("kubelet", [self._node, "localhost", "127.0.0.1"])
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(own.certificate, own.key)
        if authority is not None:
            context.load_verify_locations(cadata=authority)
            context.verify_mode = ssl.CERT_OPTIONAL
        context.set_alpn_protocols(["http/1.1"])
        self._http = HttpServer(self, context)
        await self._http.start(host, port)

    async def stop(self) -> None:
        if self._http is not None:
            await self._http.stop()
            self._http = None

    # What the listener calls

    def at_once(self, request: Request) -> Response | None:  # noqa: ARG002
        return None

    async def handle(self, request: Request) -> Answer:
        try:
            refused = await self._refusal(request)
        except (APIError, TransportError) as error:
            return text_response(500, f"it is not known who may ask: {error}")
        if refused is not None:
            return refused
        return text_response(503, "starting") if self.endpoint is None else await self.endpoint(request)

    # Who may ask

    async def _refusal(self, request: Request) -> Response | None:
        """Why a request is not answered; None if it is."""
        known = _named(request.peer) or await self._by_token(request)
        if known is None:
            return text_response(401, "Unauthorized")
        user, groups = known
        verb = {"GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
        asked = verb.get(request.method, "create")
        if "system:masters" in groups or await self._may(user, groups, asked):
            return None
        said = f"Forbidden (user={user}, verb={asked}, resource=nodes, subresource(s)=[proxy])"
        return text_response(403, said)

    async def _by_token(self, request: Request) -> tuple[str, tuple[str, ...]] | None:
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not token:
            return None
        review = await self._client.create(TokenReview(spec=TokenReviewSpec(token=token.strip())))
        user = review.status.user if review.status.authenticated else None
        return None if user is None else (user.username or "", tuple(user.groups))

    async def _may(self, user: str, groups: tuple[str, ...], verb: str) -> bool:
        attributes = ResourceAttributes(verb=verb, resource="nodes", subresource="proxy", name=self._node, version="v1")
        spec = SubjectAccessReviewSpec(user=user, groups=list(groups), resource_attributes=attributes)
        return (await self._client.create(SubjectAccessReview(spec=spec))).status.allowed


def _named(peer: Peer | None) -> tuple[str, tuple[str, ...]] | None:
    """User and groups of a client certificate; None if it identifies no one."""
    return None if peer is None or peer.fault or not peer.name else (peer.name, peer.groups)
