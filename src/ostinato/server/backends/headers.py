"""Headers of forwarded requests and responses.

Credentials and impersonation headers are not forwarded: a backend could use them against this server. Neither are
names that some backends read as theirs, with `_` for `-`. Hop-by-hop headers are not forwarded in either direction,
except that a client accepts trailers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from ostinato.http.fields import list_elements
from ostinato.http.response import ResponseParser
from ostinato.server.access.authentication.settings import RequestHeaderSettings
from ostinato.server.request import Request
from ostinato.streams.channels import TOKEN_PROTOCOL

_HOP_BY_HOP: Final = frozenset(
    {
        "connection",
        "content-length",
        "expect",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
# CORS headers are set by this server, not by a backend.
_CORS: Final = frozenset(
    {
        "access-control-allow-credentials",
        "access-control-allow-headers",
        "access-control-allow-methods",
        "access-control-allow-origin",
    }
)
_PROTOCOLS: Final = "sec-websocket-protocol"


class IdentityHeaders(msgspec.Struct, frozen=True):
    """Headers with credentials or identities; names in lower case."""

    names: frozenset[str] = frozenset({"authorization", "proxy-authorization"})
    prefixes: tuple[str, ...] = ("impersonate-", "x-remote-")

    @classmethod
    def of(cls, proxy: RequestHeaderSettings | None) -> IdentityHeaders:
        """The default headers and those of the request header authenticator."""
        if proxy is None:
            return cls()
        names = (*proxy.username_headers, *proxy.uid_headers, *proxy.group_headers)
        prefixes = tuple(each.lower() for each in proxy.extra_prefixes)
        default = cls()
        return cls(default.names | {name.lower() for name in names}, default.prefixes + prefixes)


def is_upgrade(request: Request) -> bool:
    """Whether a request asks for a protocol upgrade."""
    return bool(request.headers.get("upgrade")) and "upgrade" in _words(request, "connection")


def request_headers(request: Request, identity: IdentityHeaders) -> Iterator[tuple[str, str]]:
    """The request headers to forward, without content length and transfer encoding."""
    dropped = _HOP_BY_HOP | _words(request, "connection") | identity.names | {"host"}
    for name, first in request.headers.items():
        read_as = name.replace("_", "-")
        if name in dropped or read_as in identity.names or read_as.startswith(identity.prefixes):
            continue
        for value in request.repeated.get(name, (first,)):
            kept = _without_token(value) if name == _PROTOCOLS else value
            if kept or not value:
                yield name, kept
    if "trailers" in _words(request, "te"):
        yield "te", "trailers"


def response_headers(head: ResponseParser) -> list[tuple[str, str]]:
    """The response headers to forward, without the content type."""
    dropped = _HOP_BY_HOP | _CORS | head.elements("connection") | {"content-type"}
    return [(name, value) for name, value in head.fields if name.lower() not in dropped]


def _words(request: Request, name: str) -> set[str]:
    return list_elements(request.repeated.get(name, (request.headers.get(name, ""),)))


def _without_token(value: str) -> str:
    words = [word.strip() for word in value.split(",")]
    return ", ".join(word for word in words if not word.startswith(TOKEN_PROTOCOL))
