"""The certificate of a listening server, read from its source and replaced without a restart."""

from __future__ import annotations

import asyncio
import logging
import ssl

from ostinato.certificates.certificate import Certificate, CertificateError, CertificateSource, ServerTls
from ostinato.world import Clock
from ostinato.world.cancellation import cancel_repeatedly
from ostinato.world.supervision import supervised

_logger = logging.getLogger(__name__)


class ServedCertificate:
    """`start` it before the server listens, `stop` it afterwards. Errors of a renewal are logged and retried."""

    def __init__(self, source: CertificateSource, clock: Clock) -> None:
        self._source = source
        self._clock = clock
        self._tls = ServerTls()
        self._used: Certificate | None = None
        self._watching: asyncio.Task[None] | None = None

    async def start(self) -> ssl.SSLContext:
        """Read the certificate and return the context of the server. Raises CertificateError."""
        await self._read()
        watch = supervised("serving certificate", self._watch, self._clock)
        self._watching = asyncio.get_running_loop().create_task(watch, name="serving certificate")
        return self._tls.context

    async def stop(self) -> None:
        watching, self._watching = self._watching, None
        if watching is not None:
            await cancel_repeatedly([watching], self._clock)

    async def _watch(self) -> None:
        while True:
            await self._clock.sleep(self._source.interval)
            try:
                await self._read()
            except CertificateError as error:
                _logger.error("cannot renew the serving certificate, retrying error=%s", error)

    async def _read(self) -> None:
        found = await self._source.current()
        if found != self._used:
            self._tls.use(found)
            self._used = found
