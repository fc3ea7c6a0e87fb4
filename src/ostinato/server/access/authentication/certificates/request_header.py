"""Request header authenticator: a front proxy names the user in headers.

Headers are used only on a connection whose client certificate is signed by --requestheader-client-ca-file and has an
allowed common name; on other connections they are ignored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import unquote

from ostinato.server.access.authentication.identity import authenticated
from ostinato.server.access.authentication.settings import RequestHeaderSettings
from ostinato.server.request import Peer, Request, User


class RequestHeaderAuthenticator:
    def __init__(self, settings: RequestHeaderSettings) -> None:
        self._allowed = frozenset(settings.allowed_names)
        self._username = _lower(settings.username_headers)
        self._uid = _lower(settings.uid_headers)
        self._groups = _lower(settings.group_headers)
        self._extra = _lower(settings.extra_prefixes)

    def user(self, request: Request, peer: Peer) -> User | None:
        """The user that the proxy names; None if the peer is not an allowed proxy or names no user."""
        if self._allowed and peer.proxy not in self._allowed:
            return None
        name = next((value for header in self._username if (value := request.headers.get(header))), "")
        if not name:
            return None
        uid = next((value for header in self._uid if (value := request.headers.get(header))), "")
        groups = [value for header in self._groups for value in _values(request, header) if value]
        return authenticated(User(name, uid, tuple(groups), self._extras(request)))

    def _extras(self, request: Request) -> Mapping[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        for prefix in self._extra:
            for header in request.headers:
                if header.startswith(prefix):
                    key = unquote(header.removeprefix(prefix))
                    found[key] = (*found.get(key, ()), *_values(request, header))
        return found


def _values(request: Request, header: str) -> Iterator[str]:
    """All values of a header that may be repeated."""
    if header in request.repeated:
        yield from request.repeated[header]
    elif header in request.headers:
        yield request.headers[header]


def _lower(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(name.lower() for name in names)
