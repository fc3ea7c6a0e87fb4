"""Certificates from files, as cert-manager or a mounted Secret brings them.

The files are read again every ten seconds, whatever happened to them: written, renamed, replaced by a link. A pair that
does not fit together, because only one file has been replaced so far, is passed over until the next time.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ostinato.webhook.certificates.certificate import Certificate, CertificateError, check_pair
from ostinato.world import World

CERTIFICATE: Final = "tls.crt"
KEY: Final = "tls.key"
AUTHORITIES: Final = "ca.crt"


class CertificateFiles:
    """The files `tls.crt` and `tls.key` of a directory.

    With `authorities=True` the file `ca.crt` says what callers must trust, and is put where they look for it. Otherwise
    that is somebody else's affair, such as cert-manager's.
    """

    def __init__(
        self, world: World, directory: Path | str, *, authorities: bool = False, interval: float = 10.0
    ) -> None:
        self._world = world
        self._directory = Path(directory)
        self._authorities = authorities
        self.interval = interval

    async def current(self) -> Certificate:
        return await self._world.executor.run(self._read)

    def _read(self) -> Certificate:
        authorities = self._file(AUTHORITIES) if self._authorities else b""
        certificate = Certificate(self._file(CERTIFICATE), self._file(KEY), authorities)
        try:
            check_pair(certificate)
        except CertificateError as error:
            raise CertificateError(f"{self._directory}: {error}") from None
        return certificate

    def _file(self, name: str) -> bytes:
        path = self._directory / name
        try:
            return path.read_bytes()
        except OSError as error:
            raise CertificateError(f"{path} cannot be read: {error.strerror}") from None
