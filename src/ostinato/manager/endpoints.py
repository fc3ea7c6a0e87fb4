"""Endpoints: HTTP servers for health and metrics.

They start first and stop last: probes must be answered while caches sync and while running work finishes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import parse_qs

if TYPE_CHECKING:
    from aiohttp import web

_logger = logging.getLogger("ostinato.manager")

_STOP_SECONDS: Final = 1.0


class Answer(NamedTuple):
    status: int
    text: str
    content_type: str = "text/plain; charset=utf-8"


Query = Mapping[str, Sequence[str]]
Handler = Callable[[str, Query], Awaitable[Answer | None]]
"""Answers a path, without a trailing slash, and a query; None for an unknown path."""


class Endpoint:
    """An HTTP server for GET requests."""

    def __init__(self, name: str, address: str, handler: Handler) -> None:
        """`address`: "host:port". ":8080" listens on all addresses, port 0 on any free port."""
        self.name = name
        self._host, self._port = parse_address(address)
        self._handler = handler
        self._listener: asyncio.Server | None = None
        self._http: web.Server | None = None

    @property
    def port(self) -> int:
        """The listening port."""
        if self._listener is None:
            return self._port
        port: int = self._listener.sockets[0].getsockname()[1]
        return port

    async def start(self) -> None:
        """Start to listen. Raises OSError with the name of the endpoint."""
        from aiohttp import web  # noqa: PLC0415 - takes 100 ms, only for managers with endpoints

        self._http = web.Server(self._respond, access_log=None, logger=_logger)
        try:
            self._listener = await asyncio.get_running_loop().create_server(self._http, self._host or None, self._port)
        except OSError as error:
            raise OSError(error.errno, f"cannot serve {self.name}: {error.strerror or error}") from None
        _logger.info("serving endpoint=%s port=%d", self.name, self.port)

    async def stop(self) -> None:
        """Stop. No effect if it does not run."""
        listener, http = self._listener, self._http
        self._listener = self._http = None
        if listener is None or http is None:
            return
        listener.close()
        http.pre_shutdown()
        await http.shutdown(_STOP_SECONDS)

    async def _respond(self, request: web.BaseRequest) -> web.StreamResponse:
        from aiohttp import web  # noqa: PLC0415

        if request.method not in ("GET", "HEAD"):
            return web.Response(status=405, text="method not allowed; use GET\n", headers={"Allow": "GET, HEAD"})
        query = parse_qs(request.query_string, keep_blank_values=True)
        answer = await self._handler(clean(request.path), query) or Answer(404, "404 page not found\n")
        headers = {"Content-Type": answer.content_type, "X-Content-Type-Options": "nosniff"}
        return web.Response(status=answer.status, body=answer.text.encode(), headers=headers)


def clean(path: str) -> str:
    """Return a path without trailing and repeated slashes."""
    return "/" + "/".join([part for part in path.split("/") if part])


def parse_address(address: str) -> tuple[str, int]:
    """Return host and port of "host:port", ":port" or "[::1]:port"."""
    host, colon, port = address.rpartition(":")
    if not colon or not (port.isascii() and port.isdecimal()) or int(port) > 65535:
        raise ValueError(f'{address!r} is not a listen address; use "127.0.0.1:8080" or ":8080"')
    return host.removeprefix("[").removesuffix("]"), int(port)
