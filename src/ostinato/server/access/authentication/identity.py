"""Results and interfaces of token authenticators."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, Protocol

from ostinato.server.request import User

ANONYMOUS = User("system:anonymous", groups=("system:unauthenticated",))
AUTHENTICATED = "system:authenticated"
DEFAULT_ISSUER = "https://kubernetes.default.svc"


_NONE: Mapping[str, str] = {}


class Identity(NamedTuple):
    """The user of a token.

    - `audiences`: the requested audiences that the token is valid for.
    - `annotations`: for the audit event of the request. `warning`: for its client.
    """

    user: User
    audiences: tuple[str, ...]
    annotations: Mapping[str, str] = _NONE
    warning: str = ""


class RefusedToken(Exception):  # noqa: N818 - a decision, not a failure
    """The token is rejected; the message is the reason."""


class TokenAuthenticator(Protocol):
    """Authenticates tokens without I/O."""

    def authenticate_token(self, token: str, digest: bytes, audiences: Sequence[str]) -> Identity | None:
        """Return the identity; None if the token is not this authenticator's, RefusedToken if it is but is invalid.

        - `digest`: `digest_of(token)`.
        - `audiences`: the token must be valid for one of them.
        """


class RemoteTokenAuthenticator(Protocol):
    """Authenticates tokens by calling another server."""

    async def authenticate_token(self, token: str, audiences: Sequence[str]) -> Identity | None:
        """As `TokenAuthenticator.authenticate_token`."""


@lru_cache(maxsize=1024)  # clients send the same token with every request
def digest_of(token: str) -> bytes:
    """The key for token lookups: with a digest, lookup time reveals nothing about similar tokens."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def authenticated(user: User) -> User:
    """The user with the group system:authenticated added."""
    if AUTHENTICATED in user.groups or user.name == ANONYMOUS.name:
        return user
    return User(user.name, user.uid, (*user.groups, AUTHENTICATED), user.extra)
