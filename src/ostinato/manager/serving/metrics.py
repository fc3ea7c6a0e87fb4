"""The metrics endpoint: `/metrics` and further handlers, over HTTP or, with access control, over HTTPS."""

from __future__ import annotations

import inspect
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ostinato.client.client import Client
from ostinato.http.server import Handler, HttpRequest, HttpResponse
from ostinato.manager.serving.endpoints import Endpoint, clean, parse_address
from ostinato.world import World

if TYPE_CHECKING:
    from ostinato.certificates.served import ServedCertificate

Reply = HttpResponse | str | bytes
MetricsHandler = Callable[[HttpRequest], Awaitable[Reply] | Reply]
"""Answers a request. A coroutine function runs on the event loop, a plain function in a thread."""


class MetricsOptions(msgspec.Struct, frozen=True):
    """The metrics endpoint, secured unless told otherwise.

    - `address`: to listen on, such as ":8443".
    - `tls`: serve HTTPS. Defaults to True.
    - `certificates`: directory with `tls.crt` and `tls.key`, read again when they change. Defaults to "": a self-signed
      certificate, for clients that do not verify it.
    - `authorize`: require a bearer token whose user may access the path (`serving.access`). Defaults to True.
      `ostinato manifests` writes the permissions that the reviews need.
    """

    address: str
    tls: bool = True
    certificates: str | Path = ""
    authorize: bool = True

    def __post_init__(self) -> None:
        parse_address(self.address)
        if self.authorize and not self.tls:
            raise ValueError("MetricsOptions: authorize needs tls: tokens would be sent unencrypted")


class Handlers:
    """Handlers by path. A path that ends with a slash is that of all paths below it; the longest path wins."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._handlers: dict[str, MetricsHandler] = {}

    def add(self, path: str, handler: MetricsHandler) -> None:
        """Add a handler. ValueError if the path is taken or invalid."""
        if not path.startswith("/") or clean(path) != (path.removesuffix("/") or "/"):
            raise ValueError(f"{path!r} is not a path for a handler; it must begin with a single slash")
        if path.removesuffix("/") == "/metrics":
            raise ValueError("the path /metrics is that of the metrics; use another")
        if path in self._handlers:
            raise ValueError(f"the path {path} has a handler; use another")
        if not callable(handler):
            raise TypeError(f"the handler of {path} is not a function")
        self._handlers[path] = handler

    def before(self, last: Handler) -> Handler:
        """Return a handler that answers these paths, and lets `last` answer the others."""

        async def handle(request: HttpRequest) -> HttpResponse:
            found = self._find(request.path)
            return await last(request) if found is None else await self._call(found, request)

        return handle

    def _find(self, path: str) -> MetricsHandler | None:
        if path in self._handlers:
            return self._handlers[path]
        above = [each for each in self._handlers if each.endswith("/") and path.startswith(each)]
        return self._handlers[max(above, key=len)] if above else None

    async def _call(self, handler: MetricsHandler, request: HttpRequest) -> HttpResponse:
        reply = handler(request) if inspect.iscoroutinefunction(handler) else await self._in_thread(handler, request)
        if inspect.isawaitable(reply):
            reply = await reply
        if isinstance(reply, HttpResponse):
            return reply
        if isinstance(reply, str | bytes):
            return HttpResponse(200, reply.encode() if isinstance(reply, str) else reply)
        raise TypeError(f"the handler of {request.path} returned {reply!r}; return an HttpResponse, text or bytes")

    async def _in_thread(self, handler: MetricsHandler, request: HttpRequest) -> Awaitable[Reply] | Reply:
        return await self._world.executor.run(handler, request)


def metrics_endpoint(
    given: str | MetricsOptions, handler: Handler, world: World, client: Callable[[], Client]
) -> Endpoint:
    """Return the endpoint. `given`: an address, served without TLS, or all options."""
    options = MetricsOptions(given, tls=False, authorize=False) if isinstance(given, str) else given
    if options.authorize:
        from ostinato.manager.serving.access import AccessReviews  # noqa: PLC0415 - not needed by most programs

        handler = AccessReviews(client, world.clock).protect(handler)
    certificate = _certificate(options, world) if options.tls else None
    return Endpoint("metrics", options.address, handler, world.clock, certificate)


def _certificate(options: MetricsOptions, world: World) -> ServedCertificate:
    from ostinato.certificates.files import CertificateFiles  # noqa: PLC0415 - not needed by most programs
    from ostinato.certificates.self_signed import SelfSignedCertificates  # noqa: PLC0415
    from ostinato.certificates.served import ServedCertificate  # noqa: PLC0415

    if options.certificates:
        return ServedCertificate(CertificateFiles(world, options.certificates), world.clock)
    return ServedCertificate(SelfSignedCertificates(world, ["localhost", socket.gethostname()]), world.clock)
