"""Static token authenticator: tokens of --token-auth-file, read once at start."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from ostinato.server.access.authentication.identity import Identity, authenticated, digest_of
from ostinato.server.access.authentication.settings import AuthenticationSettingsError
from ostinato.server.request import User


class TokenFileError(AuthenticationSettingsError):
    """The token file cannot be read; the message names the line."""


class StaticTokenAuthenticator:
    """`audiences`: the API server's; static tokens are valid for these alone."""

    def __init__(self, audiences: Sequence[str]) -> None:
        self._audiences = tuple(audiences)
        self._identities: dict[bytes, Identity] = {}  # by the token's digest

    def add(self, token: str, user: User) -> None:
        self._identities[digest_of(token)] = Identity(authenticated(user), self._audiences)

    def add_file(self, path: Path) -> None:
        """Add the tokens of a CSV file: token, user, uid, "group1,group2"; TokenFileError if it is malformed."""
        try:
            with path.open(newline="", encoding="utf-8") as file:
                rows = csv.reader(file, skipinitialspace=True, strict=True)
                for row in rows:
                    if row:
                        self._add_row(row, f"{path}: line {rows.line_num}")
        except OSError as error:
            raise TokenFileError(f"cannot read {path}: {error.strerror}") from error
        except (csv.Error, UnicodeDecodeError) as error:
            raise TokenFileError(f"{path}: not a CSV file: {error}") from error

    def _add_row(self, row: list[str], where: str) -> None:
        if len(row) < 3:
            raise TokenFileError(
                f'{where}: {len(row)} columns, want at least 3; write token,user,uid and optionally "group1,group2"'
            )
        token, name, uid = row[:3]
        if not token or not name:
            raise TokenFileError(f"{where}: the {'user' if token else 'token'} is empty")
        groups = tuple(group.strip() for group in row[3].split(",") if group.strip()) if len(row) > 3 else ()
        self.add(token, User(name, uid, groups))

    def authenticate_token(self, token: str, digest: bytes, audiences: Sequence[str]) -> Identity | None:
        identity = self._identities.get(digest)
        if identity is None or audiences is self._audiences:
            return identity
        return server_identity(identity.user, self._audiences, audiences)


def server_identity(user: User, own: tuple[str, ...], requested: Sequence[str]) -> Identity | None:
    """The identity of a token without audiences: it is valid for this server alone."""
    shared = own if requested is own else tuple(audience for audience in own if audience in requested)
    return Identity(user, shared) if shared or not own else None
