"""Access control of an endpoint, as controller-runtime's `WithAuthenticationAndAuthorization`.

- The bearer token of a request is checked by a TokenReview, then path and method by a SubjectAccessReview: a client
  needs a ClusterRole with `nonResourceURLs: [/metrics], verbs: [get]`.
- Results are cached: a token for a minute, an allowed request for five, a rejected token or request for 30 seconds.
- Without a token or with an unknown one the answer is 401, without permission 403, without an answer of the API server
  500. Nothing is answered without a review.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Final, Generic, NamedTuple, TypeVar

from ostinato.api.errors import APIError
from ostinato.client.client import Client
from ostinato.client.transport.protocol import TransportError
from ostinato.http.server import Handler, HttpRequest, HttpResponse
from ostinato.kinds.authentication_v1 import TokenReview, TokenReviewSpec, UserInfo
from ostinato.kinds.authorization_v1 import NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec
from ostinato.world import Clock

T = TypeVar("T")

_TOKEN_SECONDS: Final = 60.0
_ALLOWED_SECONDS: Final = 300.0
_REJECTED_SECONDS: Final = 30.0
_REVIEW_TIMEOUT: Final = 10.0
_MOST_CACHED: Final = 1000
_MOST_REVIEWS: Final = 16  # in flight: whoever sends random tokens must not flood the API server

_UNAUTHORIZED: Final = HttpResponse(401, b"Unauthorized\n", headers=[("WWW-Authenticate", "Bearer")])
_FAILED: Final = HttpResponse(500, b"internal error; see the log\n")

_logger = logging.getLogger("ostinato.manager")


class AccessReviews:
    def __init__(self, client: Callable[[], Client], clock: Clock) -> None:
        """`client`: returns a client that may create TokenReviews and SubjectAccessReviews."""
        self._client = client
        self._clock = clock
        self._users: _Cache[UserInfo | None] = _Cache(clock)  # by the hash of the token; None is rejected
        self._decisions: _Cache[bool] = _Cache(clock)  # by user, path and verb
        self._reviews = asyncio.Semaphore(_MOST_REVIEWS)

    def protect(self, handler: Handler) -> Handler:
        """Return a handler that answers permitted requests only."""

        async def handle(request: HttpRequest) -> HttpResponse:
            try:
                rejection = await self._rejection(request)
            except (APIError, TransportError, TimeoutError) as error:
                _logger.error("cannot review access to endpoint path=%s error=%s", request.path, error)
                return _FAILED
            return await handler(request) if rejection is None else rejection

        return handle

    async def _rejection(self, request: HttpRequest) -> HttpResponse | None:
        token = _token(request)
        user = await self._user(token) if token else None
        if user is None:
            return _UNAUTHORIZED
        verb = request.method.lower()
        if await self._is_allowed(user, request.path, verb):
            return None
        name = user.username or ""
        _logger.warning("access to endpoint denied user=%s verb=%s path=%s", name, verb, request.path)
        return HttpResponse(403, f"Authorization denied for user {name}\n".encode())

    async def _user(self, token: str) -> UserInfo | None:
        async def review() -> tuple[UserInfo | None, float]:
            asked = TokenReview(spec=TokenReviewSpec(token=token))
            status = (await self._client().create(asked, timeout=_REVIEW_TIMEOUT)).status
            if status.authenticated and status.user is not None:
                return status.user, _TOKEN_SECONDS
            return None, _REJECTED_SECONDS

        return await self._reviewed(self._users, hashlib.sha256(token.encode()).hexdigest(), review)

    async def _is_allowed(self, user: UserInfo, path: str, verb: str) -> bool:
        async def review() -> tuple[bool, float]:
            asked = SubjectAccessReviewSpec(
                user=user.username,
                uid=user.uid,
                groups=user.groups,
                extra=user.extra,
                non_resource_attributes=NonResourceAttributes(path=path, verb=verb),
            )
            found = await self._client().create(SubjectAccessReview(spec=asked), timeout=_REVIEW_TIMEOUT)
            return found.status.allowed, _ALLOWED_SECONDS if found.status.allowed else _REJECTED_SECONDS

        key = repr((user.username, user.uid, sorted(user.groups), sorted(user.extra.items()), path, verb))
        return await self._reviewed(self._decisions, key, review)

    async def _reviewed(self, cache: _Cache[T], key: str, review: Callable[[], Awaitable[tuple[T, float]]]) -> T:
        found = cache.get(key)
        if found is None:
            async with self._reviews:
                found = cache.get(key)  # another request may have asked meanwhile
                if found is None:
                    value, seconds = await review()
                    found = cache.put(key, value, seconds)
        return found.value


class _Entry(NamedTuple, Generic[T]):
    value: T
    expires: float


class _Cache(Generic[T]):
    """Bounded: the entries that were put first make room."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._entries: OrderedDict[str, _Entry[T]] = OrderedDict()

    def get(self, key: str) -> _Entry[T] | None:
        entry = self._entries.get(key)
        return entry if entry is not None and self._clock.monotonic() < entry.expires else None

    def put(self, key: str, value: T, seconds: float) -> _Entry[T]:
        entry = _Entry(value, self._clock.monotonic() + seconds)
        self._entries[key] = entry
        self._entries.move_to_end(key)
        while len(self._entries) > _MOST_CACHED:
            self._entries.popitem(last=False)
        return entry


def _token(request: HttpRequest) -> str:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""
