"""Who may ask the agent of a node, as a kubelet decides it with webhook authentication and authorization.

- A client certificate of the cluster's authority, or a bearer token that a TokenReview knows, says who asks.
- A SubjectAccessReview about the node says whether they may: `nodes/stats`, `nodes/metrics`, `nodes/log` and others by
  path, `nodes/proxy` for the rest. Nobody is exempt, whatever group they are in.
- To run a command, attach or forward ports takes the verb `create`, whatever the method: a WebSocket begins with GET.
- Answers are kept for as long as a kubelet keeps them: tokens two minutes, a yes five minutes, a no 30 seconds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar
from urllib.parse import unquote

import msgspec

from ostinato.api.errors import APIError
from ostinato.client.client import Client
from ostinato.client.transport.protocol import TransportError
from ostinato.kinds.authentication_v1 import TokenReview, TokenReviewSpec
from ostinato.kinds.authorization_v1 import ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec
from ostinato.server.request import Request, Response, text_response
from ostinato.world import Clock

Value = TypeVar("Value")

_TOKEN_SECONDS: Final = 120.0
_ALLOWED_SECONDS: Final = 300.0
_REFUSED_SECONDS: Final = 30.0
_MOST_KEPT: Final = 1024
_VERBS: Final = {"POST": "create", "GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_STREAMS: Final = ("exec", "attach", "portForward", "run")
# By the first part of the path; any of them is enough.
_SUBRESOURCES: Final[Mapping[str, Sequence[str]]] = {
    "stats": ("stats",),
    "metrics": ("metrics",),
    "logs": ("log",),
    "checkpoint": ("checkpoint",),
    "statusz": ("statusz",),
    "pods": ("pods", "proxy"),
    "runningpods": ("pods", "proxy"),
    "healthz": ("healthz", "proxy"),
    "configz": ("configz", "proxy"),
    "flagz": ("configz",),
}


class Caller(msgspec.Struct, frozen=True):
    """Who asks, as the API server knows them."""

    user: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


class _Kept(Generic[Value]):
    """Answers that hold for a while, the oldest of which go first."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._entries: dict[Hashable, tuple[float, Value]] = {}

    def get(self, key: Hashable) -> Value | None:
        until, value = self._entries.get(key, (0.0, None))
        return value if until > self._clock.monotonic() else None

    def put(self, key: Hashable, value: Value, seconds: float) -> None:
        self._entries.pop(key, None)
        if len(self._entries) >= _MOST_KEPT:
            del self._entries[next(iter(self._entries))]
        self._entries[key] = (self._clock.monotonic() + seconds, value)


class DelegatedAuthorization:
    """Of one node."""

    def __init__(self, node: str, client: Client, clock: Clock) -> None:
        """`client`: asks the API server."""
        self._node = node
        self._client = client
        self._callers: _Kept[Caller] = _Kept(clock)  # by the hash of their token
        self._decisions: _Kept[bool] = _Kept(clock)

    async def refusal(self, request: Request) -> Response | None:
        """Why a request is not answered; None if it is."""
        try:
            caller = await self._caller(request)
        except (APIError, TransportError):
            caller = None
        if caller is None:
            return text_response(401, "Unauthorized")
        verb, subresources = _asked(request)
        for subresource in subresources:
            try:
                if await self._may(caller, verb, subresource):
                    return None
            except (APIError, TransportError):
                about = f"user={caller.user}, verb={verb}, resource=nodes, subresource={subresource}"
                return text_response(500, f"Authorization error ({about})")
        about = f"user={caller.user}, verb={verb}, resource=nodes, subresource(s)=[{' '.join(subresources)}]"
        return text_response(403, f"Forbidden ({about})")

    async def _caller(self, request: Request) -> Caller | None:
        peer = request.peer
        if peer is not None and peer.name and not peer.fault:
            return Caller(peer.name, groups=(*peer.groups, "system:authenticated"))
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        token = token.strip()
        if kind.lower() != "bearer" or not token:
            return None
        key = hashlib.sha256(token.encode()).digest()
        if (known := self._callers.get(key)) is not None:
            return known
        review = await self._client.create(TokenReview(spec=TokenReviewSpec(token=token)))
        user = review.status.user if review.status.authenticated else None
        if user is None or not user.username:
            return None
        extra = tuple((name, tuple(values)) for name, values in sorted(user.extra.items()))
        caller = Caller(user.username, user.uid or "", tuple(user.groups), extra)
        self._callers.put(key, caller, _TOKEN_SECONDS)
        return caller

    async def _may(self, caller: Caller, verb: str, subresource: str) -> bool:
        key = (caller, verb, subresource)
        known = self._decisions.get(key)
        if known is not None:
            return known
        attributes = ResourceAttributes(
            verb=verb, version="v1", resource="nodes", subresource=subresource, name=self._node
        )
        extra: dict[str, Any] = {name: list(values) for name, values in caller.extra}
        spec = SubjectAccessReviewSpec(
            user=caller.user, uid=caller.uid, groups=list(caller.groups), extra=extra, resource_attributes=attributes
        )
        allowed = (await self._client.create(SubjectAccessReview(spec=spec))).status.allowed
        self._decisions.put(key, allowed, _ALLOWED_SECONDS if allowed else _REFUSED_SECONDS)
        return allowed


def _asked(request: Request) -> tuple[str, Sequence[str]]:
    """The verb and the subresources of the node, one of which has to be allowed."""
    first = unquote(request.path).strip("/").partition("/")[0]
    verb = "create" if first in _STREAMS else _VERBS.get(request.method, "")
    return verb, _SUBRESOURCES.get(first, ("proxy",))
