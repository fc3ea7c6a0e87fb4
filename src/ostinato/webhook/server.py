"""Webhook server: HTTPS in front of a dispatcher, with certificate rotation.

- Listens on port 9443 by default; TLS only.
- The certificate is reloaded periodically. The CA bundle of a new authority is injected before the server starts to
  listen, or some seconds before the new certificate is used, so that no call fails. Errors are logged and retried, with
  the previous certificate in use.
- Stopping lets running reviews finish, within a minute.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from contextlib import suppress
from typing import Final, Self

from ostinato.api.errors import APIError
from ostinato.api.time import Duration, TimeError
from ostinato.certificates.certificate import Certificate, CertificateError, CertificateSource, ServerTls
from ostinato.client import TransportError
from ostinato.http import server as http
from ostinato.webhook.ca_injector import CaInjector
from ostinato.webhook.dispatch import BodyTooLarge, Dispatcher, Hook, WebhookRequest
from ostinato.world import World

log = logging.getLogger(__name__)

PORT: Final = 9443
_PROPAGATION_SECONDS: Final = 5.0  # until all API servers use a new CA bundle
_STOP_SECONDS: Final = 60.0
_MISSING_SECONDS: Final = 2.0
_CHECK_SECONDS: Final = 10.0


class NotServing(Exception):  # noqa: N818 - named after the condition
    """The webhook server is not reachable."""


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
        - `certificates`: the source of the serving certificate.
        - `dispatcher`: the hooks and limits. Defaults to one without hooks.
        - `ca_injector`: injects the CA bundle. Defaults to none.
        - `host`: the address to listen on. Defaults to all.
        - `port`: the port to listen on; 0 is any free port. Defaults to 9443.
        - `client_authorities`: PEM; require client certificates of these. Defaults to none: any client may call.
        """
        self.dispatcher = dispatcher or Dispatcher(world)
        self._world = world
        self._certificates = certificates
        self._ca_injector = ca_injector
        self._host = host
        self._port = port
        self._tls = ServerTls(client_authorities)
        self._certificate: Certificate | None = None
        self._server: http.SmallHttpServer | None = None

    def add(self, *hooks: Hook) -> Self:
        """Serve these hooks. Raises ValueError if a path is taken."""
        self.dispatcher.add(hooks)
        return self

    @property
    def port(self) -> int:
        """The port."""
        return self._port if self._server is None else self._server.address[1]

    async def run(self) -> None:
        """Serve until cancelled; a second cancellation aborts running reviews."""
        await self.start()
        try:
            await self.watch_certificates()
        finally:
            await self.stop()

    async def start(self) -> None:
        """Listen. Raises CertificateError without a certificate, OSError if the port is in use."""
        self.dispatcher.conversions.check()
        self.dispatcher.statistics.certificate_reads += 1
        self._use(found := await self._certificates.current())
        try:
            async with self._world.clock.timeout(_PROPAGATION_SECONDS):
                await self._inject_bundle(found)
        except (APIError, TransportError, TimeoutError) as error:
            log.error("CA bundle not injected, retrying error=%s", str(error) or "timeout")
        server = http.SmallHttpServer(self._respond, self._world.clock)
        try:
            await server.start(self._host, self._port, self._tls.context)
        except OSError as error:
            raise OSError(error.errno, f"cannot serve webhooks: {error.strerror or error}") from None
        self._server = server
        log.info("serving webhooks port=%d paths=%s", self.port, ", ".join(self.dispatcher.paths) or "none")

    async def stop(self, seconds: float = _STOP_SECONDS) -> None:
        """Stop listening, and wait up to `seconds` for running reviews. No effect if not running."""
        server, self._server = self._server, None
        if server is not None:
            await server.stop(seconds)

    async def check(self) -> None:
        """Readiness check: raise NotServing unless the port accepts TLS connections."""
        if self._server is None:
            raise NotServing("webhook server has not been started yet")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE  # checks reachability only
        try:
            async with self._world.clock.timeout(_CHECK_SECONDS):
                _, writer = await asyncio.open_connection(*_reachable(*self._server.address), ssl=context)
        except (OSError, TimeoutError) as error:
            raise NotServing(f"webhook server is not reachable: {error}") from None
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()

    # Certificates

    async def watch_certificates(self) -> None:
        """Reload the certificate and inject its CA bundle periodically, until cancelled."""
        while True:
            try:
                await self._refresh()
            except (CertificateError, APIError, TransportError) as error:
                log.error("cannot refresh the webhook certificate, retrying error=%s", error)
            await self._pause()

    async def _pause(self) -> None:
        """Sleep until the next refresh, which is early if a missing target of the CA bundle was created.

        Only the refresh writes: another replica may have renewed the certificate meanwhile.
        """
        clock = self._world.clock
        until = clock.monotonic() + self._certificates.interval
        while self._ca_injector is not None and not self._ca_injector.complete and clock.monotonic() < until:
            await clock.sleep(_MISSING_SECONDS)
            with suppress(APIError, TransportError):  # reported by the next refresh
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
        injected = await self._inject_bundle(found)
        if found == self._certificate:
            return
        if injected:  # perhaps just now, or by another replica
            await self._world.clock.sleep(_PROPAGATION_SECONDS)
        self._use(found)
        log.info("webhook certificate renewed")

    async def _inject_bundle(self, certificate: Certificate) -> bool:
        """Inject the CA bundle; return whether this server is responsible for that."""
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

    async def _respond(self, request: http.HttpRequest) -> http.HttpResponse:
        if request.method != "POST":
            return http.HttpResponse(405, b"use POST\n", headers=[("Allow", "POST")])

        async def read(most: int) -> bytes:
            try:
                return await request.read(most)
            except http.BodyTooLarge:
                raise BodyTooLarge from None

        timeout = request.query.get("timeout", ("",))[0]
        review = WebhookRequest(request.path, request.headers.get("content-type", ""), read, _seconds(timeout))
        response = await self.dispatcher.handle(review)
        return http.HttpResponse(response.status, response.body, response.content_type)


def _reachable(host: str, port: int) -> tuple[str, int]:
    """Return the address to connect to: loopback, if it listens on all addresses."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host), port  # noqa: S104 - not bound here


def _seconds(text: str) -> float | None:
    """Parse the timeout of the API server, `?timeout=10s`."""
    try:
        seconds = Duration.parse(text).seconds if text else 0.0
    except TimeError:
        return None
    return seconds if seconds > 0 else None
