"""Delegated authentication and authorization of a node's API, as kubelet's webhook modes.

- Clients authenticate with a certificate of the cluster's CA, or with a bearer token (TokenReview).
- Requests are authorized with a SubjectAccessReview for a subresource of the node: `nodes/stats`, `nodes/metrics`,
  `nodes/log` and others by path, `nodes/proxy` for the rest. No group is exempt.
- Exec, attach and port-forward need the verb `create` with any HTTP method: WebSockets start with GET.
- Results are cached as by kubelet: tokens for two minutes, allowed for five minutes, denied for 30 seconds.
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
_DENIED_SECONDS: Final = 30.0
_MAX_ENTRIES: Final = 1024
_VERBS: Final = {"POST": "create", "GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_STREAMS: Final = ("exec", "attach", "portForward", "run")
# By the first path segment; one allowed subresource is sufficient.
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
    """An authenticated user."""

    user: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


class _ExpiringCache(Generic[Value]):
    """A bounded cache with expiry; the oldest entries are evicted first."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._entries: dict[Hashable, tuple[float, Value]] = {}

    def get(self, key: Hashable) -> Value | None:
        until, value = self._entries.get(key, (0.0, None))
        return value if until > self._clock.monotonic() else None

    def put(self, key: Hashable, value: Value, seconds: float) -> None:
        self._entries.pop(key, None)
        if len(self._entries) >= _MAX_ENTRIES:
            del self._entries[next(iter(self._entries))]
        self._entries[key] = (self._clock.monotonic() + seconds, value)


class DelegatedAuthorization:
    """Authorizes requests to the API of one node."""

    def __init__(self, node: str, client: Client, clock: Clock) -> None:
        """`client`: sends the reviews."""
        self._node = node
        self._client = client
        self._callers: _ExpiringCache[Caller] = _ExpiringCache(clock)  # by token hash
        self._decisions: _ExpiringCache[bool] = _ExpiringCache(clock)

    async def check(self, request: Request) -> Response | None:
        """Return the error response of a rejected request; None if it is allowed."""
        try:
            caller = await self._caller(request)
        except (APIError, TransportError):
            caller = None
        if caller is None:
            return text_response(401, "Unauthorized")
        verb, subresources = _attributes(request)
        for subresource in subresources:
            try:
                if await self._is_allowed(caller, verb, subresource):
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

    async def _is_allowed(self, caller: Caller, verb: str, subresource: str) -> bool:
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
        self._decisions.put(key, allowed, _ALLOWED_SECONDS if allowed else _DENIED_SECONDS)
        return allowed


def _attributes(request: Request) -> tuple[str, Sequence[str]]:
    """Return the verb and the subresources of a request, one of which must be allowed."""
    first = unquote(request.path).strip("/").partition("/")[0]
    verb = "create" if first in _STREAMS else _VERBS.get(request.method, "")
    return verb, _SUBRESOURCES.get(first, ("proxy",))
