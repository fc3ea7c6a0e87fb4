"""Anonymous authenticator: accepts requests without credentials, on all, some or no paths."""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import unquote

from ostinato.api.errors import Unauthorized
from ostinato.server.access.authentication.identity import ANONYMOUS
from ostinato.server.request import Request, User


class Anonymous:
    """`paths`: the exact paths on which anonymous requests are allowed. Defaults to all."""

    def __init__(self, *, enabled: bool = True, paths: Collection[str] | None = None) -> None:
        self._everywhere = enabled and paths is None
        self._paths = frozenset(paths or ()) if enabled else frozenset()

    def user(self, request: Request) -> User:
        """Return the anonymous user; Unauthorized where anonymous requests are not allowed."""
        if self._everywhere or unquote(request.path) in self._paths:
            return ANONYMOUS
        raise Unauthorized.of("Unauthorized")
