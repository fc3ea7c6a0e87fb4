"""What goes in and out of the core: requests, answers, streams. No I/O, no HTTP library."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from ostinato.api.errors import APIError


class User(msgspec.Struct, frozen=True):
    """Who asks."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict)


class Request:
    """One request. Header names are lower case; the path is as it came, not yet unquoted."""

    __slots__ = ("_query", "headers", "method", "path", "peer", "query_string", "read", "user", "warnings")

    def __init__(
        self,
        method: str,
        path: str,
        query_string: str = "",
        headers: Mapping[str, str] | None = None,
        read: Callable[[], Awaitable[bytes]] | None = None,
    ) -> None:
        self.method = method
        self.path = path
        self.query_string = query_string
        self.headers: Mapping[str, str] = headers if headers is not None else {}
        self.read = read if read is not None else _no_body
        self.peer: Any = None  # the client's certificate as (common name, organisations), if it showed one
        self.user: User | None = None  # set by access
        self.warnings: list[str] = []  # become Warning headers of the answer
        self._query: dict[str, list[str]] | None = None

    @property
    def query(self) -> dict[str, list[str]]:
        if self._query is None:
            self._query = {}
            if self.query_string:
                for key, value in parse_qsl(self.query_string, keep_blank_values=True):
                    self._query.setdefault(key, []).append(value)
        return self._query

    def parameter(self, name: str) -> str:
        """The first value of a query parameter, "" if it is absent."""
        values = self.query.get(name)
        return values[0] if values else ""


async def _no_body() -> bytes:
    return b""


class Response:
    """A whole answer."""

    __slots__ = ("body", "content_type", "headers", "status")

    def __init__(
        self,
        status: int,
        body: bytes,
        content_type: str = "application/json",
        headers: Sequence[tuple[str, str]] = (),
    ) -> None:
        self.status = status
        self.body = body
        self.content_type = content_type
        self.headers = headers


class Stream:
    """An answer that goes on: each chunk is sent as soon as it is there."""

    __slots__ = ("chunks", "content_type", "headers", "status")

    def __init__(
        self,
        status: int,
        chunks: AsyncIterator[bytes],
        content_type: str = "application/json",
        headers: Sequence[tuple[str, str]] = (),
    ) -> None:
        self.status = status
        self.chunks = chunks
        self.content_type = content_type
        self.headers = headers


def error_response(error: APIError) -> Response:
    """The Status that tells an error."""
    headers: tuple[tuple[str, str], ...] = ()
    if error.status.details is not None and error.status.details.retry_after_seconds > 0:
        headers = (("Retry-After", str(error.status.details.retry_after_seconds)),)
    return Response(error.code, msgspec.json.encode(error.to_dict()) + b"\n", headers=headers)


def text_response(status: int, text: str) -> Response:
    return Response(status, text.encode(), "text/plain; charset=utf-8", (("X-Content-Type-Options", "nosniff"),))
