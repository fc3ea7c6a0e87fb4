"""Union authenticator: tries each authenticator in kube-apiserver's order.

- Request header, then client certificate, then bearer tokens: token authenticators of this server before remote ones.
  A request without credentials is anonymous where that is allowed.
- A bearer token that no authenticator accepts is rejected; the request is not anonymous.
- Results of remote token authenticators are cached for ten seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ostinato.api.errors import Unauthorized
from ostinato.server.access.authentication.anonymous import Anonymous
from ostinato.server.access.authentication.certificates.client import certificate_user
from ostinato.server.access.authentication.identity import (
    DEFAULT_ISSUER,
    Identity,
    RefusedToken,
    RemoteTokenAuthenticator,
    TokenAuthenticator,
    digest_of,
)
from ostinato.server.access.authentication.tokens.static import StaticTokenAuthenticator
from ostinato.server.access.authentication.tokens.websocket import websocket_token
from ostinato.server.access.messages import aggregated
from ostinato.server.request import Request, User

if TYPE_CHECKING:
    from ostinato.server.access.authentication.certificates.request_header import RequestHeaderAuthenticator
    from ostinato.world import Clock

REMEMBERED = 4096  # size of the cache of remote results
_REMEMBERED_SECONDS = 10.0
_UNKNOWN = "invalid bearer token"


class CachedTokenAuthenticator:
    """Runs the remote token authenticators, with a cache; concurrent requests with the same token share one call."""

    def __init__(self, clock: Clock, sources: Sequence[RemoteTokenAuthenticator]) -> None:
        self._clock = clock
        self._sources = tuple(sources)
        self._known: dict[tuple[bytes, tuple[str, ...]], tuple[float, Identity]] = {}  # expiry, result
        self._pending: dict[tuple[bytes, tuple[str, ...]], asyncio.Task[Identity]] = {}

    def known(self, digest: bytes, audiences: tuple[str, ...]) -> Identity | None:
        """The cached result, if it has not expired."""
        until, identity = self._known.get((digest, audiences), (0.0, None))
        return identity if self._clock.monotonic() < until else None

    async def authenticate_token(self, token: str, digest: bytes, audiences: tuple[str, ...]) -> Identity:
        """RefusedToken if no authenticator accepts the token; the message joins their errors with line breaks."""
        known = self.known(digest, audiences)
        if known is not None:
            return known
        key = (digest, audiences)
        task = self._pending.get(key)
        if task is None:
            call = self._authenticate(token, audiences)
            task = self._pending[key] = asyncio.get_running_loop().create_task(call, name="token review")
            task.add_done_callback(lambda done: self._store(key, done))
        return await asyncio.shield(task)

    async def _authenticate(self, token: str, audiences: tuple[str, ...]) -> Identity:
        errors = []
        for source in self._sources:
            try:
                found = await source.authenticate_token(token, audiences)
            except RefusedToken as error:
                errors.append(str(error))
            else:
                if found is not None:
                    return found
        raise RefusedToken("\n".join(errors))

    def _store(self, key: tuple[bytes, tuple[str, ...]], task: asyncio.Task[Identity]) -> None:
        del self._pending[key]
        if task.cancelled() or task.exception() is not None:  # the awaiting requests raise it
            return
        if len(self._known) >= REMEMBERED:
            del self._known[next(iter(self._known))]
        self._known.pop(key, None)
        self._known[key] = (self._clock.monotonic() + _REMEMBERED_SECONDS, task.result())

    def close(self) -> None:
        for task in self._pending.values():
            task.cancel()


class Authenticator:
    """
    - `local`: token authenticators that do no I/O, tried in this order after the static tokens.
    - `remote`: token authenticators that call other servers. Defaults to none.
    - `front_proxy`: the request header authenticator. Defaults to none.
    - `anonymous`: which requests need no credentials. Defaults to all.
    - `audiences`: the API server's: a token must be valid for one of them.
    """

    def __init__(
        self,
        local: Sequence[TokenAuthenticator] = (),
        *,
        remote: CachedTokenAuthenticator | None = None,
        front_proxy: RequestHeaderAuthenticator | None = None,
        anonymous: Anonymous | None = None,
        audiences: Sequence[str] = (DEFAULT_ISSUER,),
    ) -> None:
        self.audiences = tuple(audiences)
        self._static = StaticTokenAuthenticator(self.audiences)
        self._local: tuple[TokenAuthenticator, ...] = (self._static, *local)
        self._remote = remote
        self._front_proxy = front_proxy
        self._anonymous = anonymous or Anonymous()

    def add(self, token: str, user: User) -> None:
        """Accept a static token."""
        self._static.add(token, user)

    def add_file(self, path: Path) -> None:
        """Accept the static tokens of a file; TokenFileError if it is malformed."""
        self._static.add_file(path)

    async def authenticate(self, request: Request, annotations: dict[str, str] | None = None) -> User:
        """Return the user of a request; Unauthorized for invalid credentials.

        `annotations`: receives those of the audit event. Defaults to dropping them.
        """
        user = self.authenticate_now(request, annotations)
        if user is not None:
            return user
        try:
            return (await self.authenticate_token(bearer_token(request), self.audiences)).user
        except RefusedToken:
            raise Unauthorized.of("Unauthorized") from None

    def authenticate_now(self, request: Request, annotations: dict[str, str] | None = None) -> User | None:
        """As `authenticate`, if that needs no I/O; else None."""
        peer = request.peer
        if peer is not None and not peer.fault:
            if peer.proxy and self._front_proxy is not None:
                user = self._front_proxy.user(request, peer)
                if user is not None:
                    return user
            if peer.name:
                return certificate_user(peer)
        token = bearer_token(request)
        if not token:
            if peer is not None and (peer.fault or peer.proxy):
                raise Unauthorized.of("Unauthorized")
            return self._anonymous.user(request)
        digest = digest_of(token)
        identity, _ = self._authenticate_token_now(token, digest, self.audiences)
        if identity is None and self._remote is not None:
            identity = self._remote.known(digest, self.audiences)
            if identity is None:
                return None
        if identity is None:
            raise Unauthorized.of("Unauthorized")
        if annotations is not None:
            annotations.update(identity.annotations)
        if identity.warning:
            request.warnings.append(identity.warning)
        return identity.user

    async def authenticate_token(self, token: str, audiences: Sequence[str]) -> Identity:
        """Return the identity of a token; RefusedToken if it is invalid or for none of these audiences."""
        digest = digest_of(token)
        identity, errors = self._authenticate_token_now(token, digest, audiences)
        if identity is None and self._remote is not None:
            try:
                identity = await self._remote.authenticate_token(token, digest, tuple(audiences))
            except RefusedToken as error:
                errors += str(error).splitlines()
        if identity is None:
            raise RefusedToken(aggregated(errors))
        return identity

    def _authenticate_token_now(
        self, token: str, digest: bytes, audiences: Sequence[str]
    ) -> tuple[Identity | None, list[str]]:
        """Try the local token authenticators: the identity or None, and their errors."""
        errors = [_UNKNOWN]
        for tokens in self._local:
            try:
                found = tokens.authenticate_token(token, digest, audiences)
            except RefusedToken as error:
                errors.append(str(error))
            else:
                if found is not None:
                    return found, errors
        return None, errors

    def close(self) -> None:
        if self._remote is not None:
            self._remote.close()


def bearer_token(request: Request) -> str:
    """The bearer token of a request, "" if none."""
    header = request.headers.get("authorization", "")
    if header:
        words = header.strip().split(" ", 2)
        return words[1] if len(words) > 1 and words[0].lower() == "bearer" else ""
    return websocket_token(request)
