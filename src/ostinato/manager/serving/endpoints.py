"""Endpoints: HTTP servers for health and metrics.

They start first and stop last: probes must be answered while caches sync and while running work finishes.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from ostinato.http.server import Handler, HttpRequest, HttpResponse, SmallHttpServer
from ostinato.world import Clock

if TYPE_CHECKING:
    from ostinato.certificates.served import ServedCertificate

_logger = logging.getLogger("ostinato.manager")

_STOP_SECONDS: Final = 1.0
_NO_SNIFFING: Final = [("X-Content-Type-Options", "nosniff")]

NOT_FOUND: Final = HttpResponse(404, b"404 page not found\n", headers=_NO_SNIFFING)


class Answer(NamedTuple):
    status: int
    text: str
    content_type: str = "text/plain; charset=utf-8"


Query = Mapping[str, Sequence[str]]
Answers = Callable[[str, Query], Awaitable[Answer | None]]
"""Answers a path, without a trailing slash, and a query; None for an unknown path."""


class Served(Protocol):
    """A server of a manager: an `Endpoint`, or the profiler."""

    @property
    def name(self) -> str: ...

    @property
    def port(self) -> int: ...

    async def start(self) -> None: ...

    async def stop(self) -> None: ...


class Endpoint:
    """An HTTP server."""

    def __init__(
        self, name: str, address: str, handler: Handler, clock: Clock, certificate: ServedCertificate | None = None
    ) -> None:
        """
        - `address`: "host:port". ":8080" listens on all addresses, port 0 on any free port.
        - `certificate`: serves HTTPS with it. Defaults to None: HTTP.
        """
        self.name = name
        self._host, self._port = parse_address(address)
        self._handler = handler
        self._clock = clock
        self._certificate = certificate
        self._server: SmallHttpServer | None = None

    @property
    def port(self) -> int:
        """The listening port."""
        return self._port if self._server is None else self._server.address[1]

    async def start(self) -> None:
        """Start to listen. Raises OSError with the name of the endpoint, CertificateError without a certificate."""
        server = SmallHttpServer(self._handler, self._clock)
        context = None if self._certificate is None else await self._certificate.start()
        try:
            await server.start(self._host, self._port, context)
        except OSError as error:
            await self._stop_certificate()
            advice = f"choose another address with {self.name}=, or --{self.name} of the command line"
            raise OSError(error.errno, f"cannot serve {self.name}: {error.strerror or error}; {advice}") from None
        self._server = server
        _logger.info("serving endpoint=%s port=%d", self.name, self.port)

    async def stop(self) -> None:
        """Stop. No effect if it does not run."""
        server, self._server = self._server, None
        if server is not None:
            await server.stop(_STOP_SECONDS)
            await self._stop_certificate()

    async def _stop_certificate(self) -> None:
        if self._certificate is not None:
            await self._certificate.stop()


def gets(answers: Answers) -> Handler:
    """Return a handler for GET requests."""

    async def handle(request: HttpRequest) -> HttpResponse:
        if request.method not in ("GET", "HEAD"):
            return HttpResponse(405, b"method not allowed; use GET\n", headers=[("Allow", "GET, HEAD")])
        answer = await answers(clean(request.path), request.query)
        if answer is None:
            return NOT_FOUND
        return HttpResponse(answer.status, answer.text.encode(), answer.content_type, _NO_SNIFFING)

    return handle


def clean(path: str) -> str:
    """Return a path without trailing and repeated slashes."""
    return "/" + "/".join([part for part in path.split("/") if part])


def parse_address(address: str) -> tuple[str, int]:
    """Return host and port of "host:port", ":port" or "[::1]:port"."""
    host, colon, port = address.rpartition(":")
    if not colon or not (port.isascii() and port.isdecimal()) or int(port) > 65535:
        raise ValueError(f'{address!r} is not a listen address; use "127.0.0.1:8080" or ":8080"')
    return host.removeprefix("[").removesuffix("]"), int(port)
