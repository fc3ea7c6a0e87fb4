"""What an authenticator finds out about a token: whose it is, or why it is not accepted."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from ostinato.server.request import User

ANONYMOUS = User("system:anonymous", groups=("system:unauthenticated",))
AUTHENTICATED = "system:authenticated"
DEFAULT_ISSUER = "https://kubernetes.default.svc"


class Identity(NamedTuple):
    """A user, and the requested audiences that the token is for."""

    user: User
    audiences: tuple[str, ...]


class RefusedToken(Exception):  # noqa: N818 - a decision, not a failure
    """The token is not accepted; the message says why."""


class TokenAuthenticator(Protocol):
    """Tokens that the server can verify without asking anyone."""

    def authenticate_token(self, token: str, digest: bytes, audiences: Sequence[str]) -> Identity | None:
        """Whose token it is; None if it is not of this sort, RefusedToken if it is but is not valid.

        - `digest`: `digest_of(token)`.
        - `audiences`: one of them must be an audience of the token.
        """


class RemoteTokenAuthenticator(Protocol):
    """Tokens for which the server may have to ask someone else."""

    async def authenticate_token(self, token: str, audiences: Sequence[str]) -> Identity | None:
        """As `TokenAuthenticator.authenticate_token`."""


def digest_of(token: str) -> bytes:
    """What tokens are looked up by: the time of a lookup reveals nothing about a token that is nearly right."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def authenticated(user: User) -> User:
    """The user, in the group of those who have been authenticated."""
    if AUTHENTICATED in user.groups or user.name == ANONYMOUS.name:
        return user
    return User(user.name, user.uid, (*user.groups, AUTHENTICATED), user.extra)


def aggregate(errors: Iterable[str]) -> str:
    """Several errors as one message, each once, as kube-apiserver joins them."""
    distinct = list(dict.fromkeys(errors))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"
