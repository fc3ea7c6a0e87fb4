"""The webhook server: HTTPS in front of a dispatcher, with a certificate that is kept fresh.

- Listens on port 9443 unless told otherwise; TLS always.
- The certificate is looked at again and again. A new authority is first made known to the API servers, before the
  server listens at all, or some seconds before it is shown: no call fails in between. What goes wrong is logged and
  tried again; the old certificate goes on.
- Stopping lets the reviews under way finish, within a minute.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Self

from ostinato.api.errors import APIError
from ostinato.api.time import Duration, TimeError
from ostinato.client import TransportError
from ostinato.webhook.certificates.ca_injector import CaInjector
from ostinato.webhook.certificates.certificate import Certificate, CertificateError, CertificateSource, ServerTls
from ostinato.webhook.dispatch import BodyTooLarge, Dispatcher, Hook, WebhookRequest
from ostinato.world import World

if TYPE_CHECKING:
    from aiohttp import web

log = logging.getLogger(__name__)

PORT: Final = 9443
_IDLE_SECONDS: Final = 90.0  # after which a connection without requests is closed
_HANDSHAKE_SECONDS: Final = 10.0
_SPREAD_SECONDS: Final = 5.0  # until all API servers have seen a new CA bundle
_STOP_SECONDS: Final = 60.0
_MISSING_SECONDS: Final = 2.0
_FLUSH_SECONDS: Final = 1.0  # for the last bytes of answers, when it stops
_CHECK_SECONDS: Final = 10.0


class NotServing(Exception):  # noqa: N818 - reads as what is the case
    """The webhook server does not answer; the message says why."""


class WebhookServer:
    def __init__(
        self,
        world: World,
        certificates: CertificateSource,
        *,
        dispatcher: Dispatcher | None = None,
        ca_injector: CaInjector | None = None,
        host: str = "",
        port: int = PORT,
        client_authorities: bytes = b"",
    ) -> None:
        """
        - `dispatcher`: has the limits. Defaults to an empty one with the usual limits.
        - `bundles`: where the authorities are made known. Defaults to nowhere.
        - `host`: the address to listen on. Defaults to all. `port` 0 is any that is free.
        - `client_authorities`: PEM; callers must have a certificate of these. Defaults to none: anybody may call.
        """
        self.dispatcher = dispatcher or Dispatcher(world)
        self._world = world
        self._certificates = certificates
        self._ca_injector = ca_injector
        self._host = host
        self._port = port
        self._tls = ServerTls(client_authorities)
        self._certificate: Certificate | None = None
        self._http: web.Server | None = None
        self._listener: asyncio.Server | None = None

    def add(self, *hooks: Hook) -> Self:
        """Serve these hooks. A ValueError if a path is taken."""
        self.dispatcher.add(hooks)
        return self

    @property
    def port(self) -> int:
        """The port that it listens on."""
        if self._listener is None or not self._listener.sockets:
            return self._port
        port: int = self._listener.sockets[0].getsockname()[1]
        return port

    async def run(self) -> None:
        """Serve until cancelled; a second cancellation, while reviews under way finish, drops them."""
        await self.start()
        try:
            await self.watch_certificates()
        finally:
            await self.stop()

    async def start(self) -> None:
        """Listen. CertificateError if there is no certificate, OSError if the port is taken."""
        from aiohttp import web  # noqa: PLC0415 - a tenth of a second, for those who serve webhooks alone

        self.dispatcher.conversions.check()
        self.dispatcher.statistics.certificate_reads += 1
        self._use(found := await self._certificates.current())
        try:
            async with self._world.clock.timeout(_SPREAD_SECONDS):
                await self._inject_bundle(found)
        except (APIError, TransportError, TimeoutError) as error:
            why = str(error) or "the server does not answer"
            log.error("who vouches for the webhooks is not made known yet: %s", why)
        self._http = web.Server(
            self._respond, access_log=None, logger=log, keepalive_timeout=_IDLE_SECONDS, auto_decompress=False
        )
        try:
            self._listener = await asyncio.get_running_loop().create_server(
                self._http,
                self._host or None,
                self._port,
                ssl=self._tls.context,
                ssl_handshake_timeout=_HANDSHAKE_SECONDS,
            )
        except OSError as error:
            raise OSError(error.errno, f"cannot serve webhooks: {error.strerror or error}") from None
        log.info("serving webhooks on port %d: %s", self.port, ", ".join(self.dispatcher.paths) or "none")

    async def stop(self, seconds: float = _STOP_SECONDS) -> None:
        """Take no more reviews, and wait so long for those under way. Harmless when it does not run."""
        listener, http = self._listener, self._http
        self._listener = self._http = None
        if listener is None or http is None:
            return
        listener.close()
        transports = [each.transport for each in http.connections if each.transport is not None]
        http.pre_shutdown()
        try:
            await http.shutdown(seconds)
            with suppress(TimeoutError):
                async with self._world.clock.timeout(_FLUSH_SECONDS):
                    while any(map(_unsent, transports)):
                        await self._world.clock.sleep(_FLUSH_SECONDS / 100)
        finally:
            for transport in transports:  # without waiting for the other side to say good-bye
                transport.abort()

    async def check(self) -> None:
        """For readiness: a NotServing error unless it answers on its port."""
        if self._listener is None:
            raise NotServing("webhook server has not been started yet")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE  # it is asked whether it answers, not who it is
        try:
            async with self._world.clock.timeout(_CHECK_SECONDS):
                _, writer = await asyncio.open_connection(*self._own_address(), ssl=context)
        except (OSError, TimeoutError) as error:
            raise NotServing(f"webhook server is not reachable: {error}") from None
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()

    def _own_address(self) -> tuple[str, int]:
        """Where this process finds it; one that listens at all addresses, at that of the machine itself."""
        assert self._listener is not None, "it listens"
        host, port = self._listener.sockets[0].getsockname()[:2]
        return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host), port  # noqa: S104 - it is not bound here

    # Certificates

    async def watch_certificates(self) -> None:
        """Make the authorities known, and look for new certificates, until cancelled."""
        while True:
            try:
                await self._refresh()
            except (CertificateError, APIError, TransportError) as error:
                log.error("the certificate of the webhooks is not refreshed: %s", error)
            await self._pause()

    async def _pause(self) -> None:
        """Until the next round, which comes early when something exists that the last one found missing.

        It alone writes: this replica may not know yet that another has renewed the certificate.
        """
        clock = self._world.clock
        until = clock.monotonic() + self._certificates.interval
        while self._ca_injector is not None and not self._ca_injector.complete and clock.monotonic() < until:
            await clock.sleep(_MISSING_SECONDS)
            with suppress(APIError, TransportError):  # the next round tells of it
                if await self._ca_injector.any_created():
                    return
        await clock.sleep(max(until - clock.monotonic(), 0.0))

    async def _refresh(self) -> None:
        statistics = self.dispatcher.statistics
        statistics.certificate_reads += 1
        try:
            found = await self._certificates.current()
        except CertificateError:
            statistics.certificate_errors += 1
            raise
        known = await self._inject_bundle(found)
        if found == self._certificate:
            return
        if known:  # perhaps just now, and perhaps by another replica
            await self._world.clock.sleep(_SPREAD_SECONDS)
        self._use(found)
        log.info("the webhooks have a new certificate")

    async def _inject_bundle(self, certificate: Certificate) -> bool:
        """Tell API servers who vouches for it; whether that is for this server to do."""
        if self._ca_injector is None or not certificate.authorities:
            return False
        await self._ca_injector.inject(certificate.authorities)
        return True

    def _use(self, certificate: Certificate) -> None:
        try:
            self._tls.use(certificate)
        except CertificateError:
            self.dispatcher.statistics.certificate_errors += 1
            raise
        self._certificate = certificate

    # HTTP

    async def _respond(self, request: web.BaseRequest) -> web.StreamResponse:
        from aiohttp import web  # noqa: PLC0415

        if request.method != "POST":
            return web.Response(status=405, text="reviews are posted\n", headers={"Allow": "POST"})

        async def read(most: int) -> bytes:
            return await _body(request, most)

        content_type = request.headers.get("Content-Type", "")
        posted = WebhookRequest(request.path, content_type, read, _seconds(request.query.get("timeout", "")))
        reply = await self.dispatcher.handle(posted)
        return web.Response(status=reply.status, body=reply.body, content_type=reply.content_type)


def _unsent(transport: asyncio.Transport) -> int:
    """How many bytes of answers wait; a TLS transport that was closed twice no longer knows."""
    try:
        return transport.get_write_buffer_size()
    except AttributeError:
        return 0


async def _body(request: web.BaseRequest, most: int) -> bytes:
    if (request.content_length or 0) > most:
        raise BodyTooLarge
    body = bytearray()
    async for chunk in request.content.iter_any():
        body += chunk
        if len(body) > most:
            raise BodyTooLarge
    return bytes(body)


def _seconds(text: str) -> float | None:
    """How long an API server waits: it says so in the query, `?timeout=10s`."""
    try:
        seconds = Duration.parse(text).seconds if text else 0.0
    except TimeError:
        return None
    return seconds if seconds > 0 else None
