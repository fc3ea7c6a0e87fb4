"""Certificates from files, such as those of cert-manager or a mounted Secret.

The files are read every ten seconds, however they are replaced. A pair that does not match, because only one file has
been replaced so far, is skipped until the next read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ostinato.certificates.certificate import Certificate, CertificateError, check_pair
from ostinato.world import World

CERTIFICATE: Final = "tls.crt"
KEY: Final = "tls.key"
AUTHORITIES: Final = "ca.crt"


class CertificateFiles:
    """The files `tls.crt` and `tls.key` of a directory.

    With `authorities=True` the file `ca.crt` is the CA bundle, which the server injects. Defaults to False: it is
    managed elsewhere, such as by cert-manager's cainjector.
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
            raise CertificateError(f"{path}: cannot read: {error.strerror}") from None
