"""Authentication: a client certificate or a bearer token says who asks; who shows neither is anonymous.

A certificate goes first, as in kube-apiserver. A token that nobody has is an error, not an anonymous request.
"""

from __future__ import annotations

import base64
import binascii
import csv
import hashlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from ostinato.api.errors import Unauthorized
from ostinato.server.access.authentication.account_tokens import ISSUER, AccountTokens, Identity, RefusedToken
from ostinato.server.request import Request, User

_AUDIENCES = (ISSUER,)  # for whom the tokens are that this server takes
_UNKNOWN = "invalid bearer token"
ANONYMOUS = User("system:anonymous", groups=("system:unauthenticated",))
AUTHENTICATED = "system:authenticated"
_TOKEN_PROTOCOL = "base64url.bearer.authorization.k8s.io."  # noqa: S105 - how browsers pass one to a WebSocket


class TokenFileError(Exception):
    """The token file cannot be read; the message says where and why."""


class Authenticator:
    def __init__(self) -> None:
        # By the token's hash: how long a lookup takes tells nothing about a token that is nearly right.
        self._tokens: dict[bytes, User] = {}
        self.accounts: AccountTokens | None = None

    def add(self, token: str, user: User) -> None:
        self._tokens[_digest(token)] = _known(user)

    def add_file(self, path: Path) -> None:
        """A CSV as kube-apiserver's --token-auth-file: token, user, uid, "group1,group2"."""
        try:
            with path.open(newline="", encoding="utf-8") as file:
                rows = csv.reader(file, skipinitialspace=True, strict=True)
                for row in rows:
                    if row:
                        self._add_row(row, f"{path}: line {rows.line_num}")
        except OSError as error:
            raise TokenFileError(f"cannot read {path}: {error.strerror}") from error
        except (csv.Error, UnicodeDecodeError) as error:
            raise TokenFileError(f"{path}: this is no CSV: {error}") from error

    def _add_row(self, row: list[str], where: str) -> None:
        if len(row) < 3:
            raise TokenFileError(
                f'{where}: {len(row)} of at least 3 columns: a line is token,user,uid and optionally "group1,group2"'
            )
        token, name, uid = row[:3]
        if not token or not name:
            raise TokenFileError(f"{where}: the {'user' if token else 'token'} is empty")
        groups = tuple(group.strip() for group in row[3].split(",") if group.strip()) if len(row) > 3 else ()
        self.add(token, User(name, uid, groups))

    async def authenticate(self, request: Request) -> User:
        user = self.authenticate_now(request)
        assert user is not None, "certificates and our own tokens need no one else"
        return user

    def authenticate_now(self, request: Request) -> User | None:
        """The user, if that can be determined without waiting for anyone; raises Unauthorized for bad credentials."""
        if request.peer is not None:
            name, groups = request.peer
            if name:
                return _certified(name, tuple(groups))
        token = _token(request)
        if not token:
            return ANONYMOUS
        try:
            return self._identify_now(token, _AUDIENCES).user
        except RefusedToken:
            raise Unauthorized.of("Unauthorized") from None

    async def identify(self, token: str, audiences: Sequence[str]) -> Identity:
        """Whose token it is; RefusedToken if it is nobody's, or for none of these audiences."""
        return self._identify_now(token, audiences)

    def _identify_now(self, token: str, audiences: Sequence[str]) -> Identity:
        user = self._tokens.get(_digest(token))
        if user is not None:
            shared = _AUDIENCES if audiences is _AUDIENCES else tuple(a for a in audiences if a in _AUDIENCES)
            if shared:
                return Identity(user, shared)
        elif self.accounts is not None:
            try:
                account = self.accounts.identify(token, audiences)
            except RefusedToken as error:
                raise RefusedToken(f"[{_UNKNOWN}, {error}]") from None
            if account is not None:
                return account._replace(user=_known(account.user))
        raise RefusedToken(_UNKNOWN)


@lru_cache(maxsize=512)  # a client shows its certificate once, and asks many times
def _certified(name: str, groups: tuple[str, ...]) -> User:
    return _known(User(name, groups=groups))


def _token(request: Request) -> str:
    """The bearer token that a request carries, "" if none."""
    header = request.headers.get("authorization", "")
    if header:
        words = header.strip().split(" ", 2)
        return words[1] if len(words) > 1 and words[0].lower() == "bearer" else ""
    for word in request.headers.get("sec-websocket-protocol", "").split(","):
        if word.strip().startswith(_TOKEN_PROTOCOL):
            text = word.strip().removeprefix(_TOKEN_PROTOCOL)
            try:
                return base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True).decode()
            except (binascii.Error, ValueError):
                raise Unauthorized.of("Unauthorized") from None
    return ""


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def _known(user: User) -> User:
    if AUTHENTICATED in user.groups:
        return user
    return User(user.name, user.uid, (*user.groups, AUTHENTICATED), user.extra)
