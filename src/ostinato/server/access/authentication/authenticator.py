"""The authenticator: tries each way to tell who sends a request, in the order of kube-apiserver.

- A client certificate goes first, then bearer tokens: those that the server can verify itself before those for which
  it asks someone else. Who shows neither is anonymous.
- A token that nobody accepts is an error, not an anonymous request.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ostinato.api.errors import Unauthorized
from ostinato.server.access.authentication.client_certificates import certified
from ostinato.server.access.authentication.identity import (
    ANONYMOUS,
    DEFAULT_ISSUER,
    Identity,
    LocalTokens,
    RefusedToken,
    aggregate,
    digest_of,
)
from ostinato.server.access.authentication.static_tokens import StaticTokens
from ostinato.server.access.authentication.websocket_token import websocket_token
from ostinato.server.request import Request, User

_UNKNOWN = "invalid bearer token"


class Authenticator:
    """
    - `local`: tokens that the server verifies itself, tried in this order after the static ones.
    - `audiences`: for whom tokens must be that requests carry.
    """

    def __init__(self, local: Sequence[LocalTokens] = (), *, audiences: Sequence[str] = (DEFAULT_ISSUER,)) -> None:
        self.audiences = tuple(audiences)
        self._static = StaticTokens(self.audiences)
        self._local: tuple[LocalTokens, ...] = (self._static, *local)

    def add(self, token: str, user: User) -> None:
        """Accept a static token."""
        self._static.add(token, user)

    def add_file(self, path: Path) -> None:
        """Accept the static tokens of a file; TokenFileError if it is malformed."""
        self._static.add_file(path)

    async def authenticate(self, request: Request) -> User:
        user = self.authenticate_now(request)
        assert user is not None, "certificates and our own tokens need no one else"
        return user

    def authenticate_now(self, request: Request) -> User | None:
        """The user, if that can be determined without waiting for anyone; raises Unauthorized for bad credentials."""
        peer = request.peer
        if peer is not None and peer.name and not peer.fault:
            return certified(peer)
        token = bearer_token(request)
        if not token:
            if peer is not None and peer.fault:
                raise Unauthorized.of("Unauthorized")
            return ANONYMOUS
        try:
            return self._identify_now(token, self.audiences).user
        except RefusedToken:
            raise Unauthorized.of("Unauthorized") from None

    async def identify(self, token: str, audiences: Sequence[str]) -> Identity:
        """Whose token it is; RefusedToken if it is nobody's, or for none of these audiences."""
        return self._identify_now(token, audiences)

    def _identify_now(self, token: str, audiences: Sequence[str]) -> Identity:
        digest, errors = digest_of(token), [_UNKNOWN]
        for tokens in self._local:
            try:
                found = tokens.identify(token, digest, audiences)
            except RefusedToken as error:
                errors.append(str(error))
            else:
                if found is not None:
                    return found
        raise RefusedToken(aggregate(errors))


def bearer_token(request: Request) -> str:
    """The bearer token that a request carries, "" if none."""
    header = request.headers.get("authorization", "")
    if header:
        words = header.strip().split(" ", 2)
        return words[1] if len(words) > 1 and words[0].lower() == "bearer" else ""
    return websocket_token(request)
