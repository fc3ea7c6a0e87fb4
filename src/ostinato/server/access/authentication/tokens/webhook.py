"""Webhook token authenticator: posts a TokenReview to a backend.

- Results are cached for `cache_seconds`, for valid and invalid tokens alike; errors are not cached.
- A failed call is retried, up to five attempts within ten seconds. Redirects are not followed.
- A response without audiences is valid for the API server's own.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from ostinato.server.access.authentication.identity import Identity, RefusedToken, authenticated, digest_of
from ostinato.server.request import User
from ostinato.server.webhooks.target import CallError, Target
from ostinato.world import World

Call = Callable[[Target, bytes, int], Awaitable[bytes]]

_SECONDS = 10  # for the call, retries included
_ATTEMPTS, _FIRST_WAIT, _FACTOR, _JITTER = 5, 0.5, 1.5, 0.2
_RETRIED = frozenset({429, 500, 504})  # retried status codes
_CACHE_SIZE = 4096  # entries
_logger = logging.getLogger(__name__)


class _UserInfo(msgspec.Struct):
    username: str = ""
    uid: str = ""
    groups: list[str] | None = None
    extra: dict[str, list[str]] | None = None


class _Status(msgspec.Struct):
    authenticated: bool = False
    user: _UserInfo | None = None
    audiences: list[str] | None = None
    error: str = ""


class _Review(msgspec.Struct):
    apiVersion: str = ""  # noqa: N815 - JSON name
    kind: str = ""
    status: _Status = msgspec.field(default_factory=_Status)


class WebhookTokenAuthenticator:
    """
    - `version`: of the TokenReview: v1 or v1beta1.
    - `audiences`: the API server's.
    """

    def __init__(
        self, world: World, backend: Target, call: Call, version: str, cache_seconds: float, audiences: Sequence[str]
    ) -> None:
        self._world = world
        self._backend = backend
        self._call = call
        self._api_version = f"authentication.k8s.io/{version}"
        self._cache_seconds = cache_seconds
        self._audiences = tuple(audiences)
        self._cache: OrderedDict[tuple[bytes, tuple[str, ...]], tuple[float, Identity | None]] = OrderedDict()

    async def authenticate_token(self, token: str, audiences: Sequence[str]) -> Identity | None:
        key = (digest_of(token), tuple(audiences))
        until, cached = self._cache.get(key, (0.0, None))
        if self._world.clock.monotonic() < until:
            return cached
        found = self._identity(await self._review(token, audiences), audiences)
        if self._cache_seconds > 0:
            self._cache[key] = (self._world.clock.monotonic() + self._cache_seconds, found)
            self._cache.move_to_end(key)
            if len(self._cache) > _CACHE_SIZE:
                self._cache.popitem(last=False)
        return found

    def _identity(self, status: _Status, requested: Sequence[str]) -> Identity | None:
        valid_for = status.audiences or self._audiences
        shared = tuple(audience for audience in requested if audience in valid_for)
        if not shared:
            return None
        if not status.authenticated:
            if status.error:
                raise RefusedToken(status.error)
            return None
        user = status.user or _UserInfo()
        extra = {key: tuple(values) for key, values in (user.extra or {}).items()}
        return Identity(authenticated(User(user.username, user.uid, tuple(user.groups or ()), extra)), shared)

    async def _review(self, token: str, audiences: Sequence[str]) -> _Status:
        """Post the review and return its status; RefusedToken if the call fails."""
        spec: dict[str, Any] = {"token": token, "audiences": list(audiences)}
        review = {
            "kind": "TokenReview",
            "apiVersion": self._api_version,
            "metadata": {},
            "spec": spec,
            "status": {"user": {}},
        }
        try:
            async with self._world.clock.timeout(_SECONDS):
                answer = await self._post(msgspec.json.encode(review))
            found = msgspec.json.decode(answer, type=_Review)
        except TimeoutError:
            raise self._failed("context deadline exceeded") from None
        except (CallError, msgspec.DecodeError, msgspec.ValidationError) as error:
            raise self._failed(str(error)) from None
        if (found.kind or "TokenReview", found.apiVersion or self._api_version) != ("TokenReview", self._api_version):
            raise self._failed(f"expected TokenReview of {self._api_version}, got {found.kind} of {found.apiVersion}")
        return found.status

    def _failed(self, why: str) -> RefusedToken:
        _logger.warning("token review webhook failed host=%s error=%s", self._backend.authority, why)
        return RefusedToken(why)

    async def _post(self, review: bytes) -> bytes:
        wait = _FIRST_WAIT
        for attempt in range(_ATTEMPTS):
            try:
                return await self._call(self._backend, review, _SECONDS)
            except CallError as error:
                transient = getattr(error, "status", 0) in _RETRIED or "connection reset" in str(error)
                if attempt == _ATTEMPTS - 1 or not transient:
                    raise
            await self._world.clock.sleep(self._world.rng.jitter(wait, _JITTER))
            wait *= _FACTOR
        raise AssertionError("unreachable")
