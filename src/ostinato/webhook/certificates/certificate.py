"""Certificates: what a webhook server shows, and changes without a restart.

- A `CertificateSource` says what is to be shown now. It is asked again every `interval` seconds: files may have
  changed, or time may have come to make a new one.
- `ServerTls` is the TLS of a listening server. A new certificate is shown to whoever connects from then on; one that
  is no pair in PEM is refused, and the old one goes on.
"""

from __future__ import annotations

import ssl
from typing import Protocol

import msgspec

from ostinato.client.config.key_pair import load_key_pair


class CertificateError(Exception):
    """There is no certificate that could be shown; the message says what to do."""


class Certificate(msgspec.Struct, frozen=True):
    """A certificate with its key, and those who vouch for it: all PEM."""

    certificate: bytes
    key: bytes
    authorities: bytes = b""  # what callers must trust; empty if somebody else tells them

    def __repr__(self) -> str:
        return f"<Certificate of {len(self.certificate)} bytes>"  # the key belongs into no log


class CertificateSource(Protocol):
    @property
    def interval(self) -> float:
        """Seconds after which it is worth asking again."""

    async def current(self) -> Certificate:
        """The certificate to show. CertificateError if there is none."""


class ServerTls:
    """TLS 1.2 at least; callers need a certificate only if `client_authorities` (PEM) are given."""

    def __init__(self, client_authorities: bytes = b"") -> None:
        self._client_authorities = client_authorities
        self.context = self._make()

    def use(self, certificate: Certificate) -> None:
        """Show this certificate to new connections. CertificateError, and no change, if it is unusable."""
        _load(self._make(), certificate)  # first where it does no harm: loading a wrong pair would leave half of it
        _load(self.context, certificate)

    def _make(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        if self._client_authorities:
            try:
                context.load_verify_locations(cadata=self._client_authorities.decode("ascii"))
            except (ssl.SSLError, ValueError):
                raise CertificateError("the authorities of clients are no certificates in PEM") from None
            context.verify_mode = ssl.CERT_REQUIRED
        return context


def check_pair(certificate: Certificate) -> None:
    """A CertificateError, if it cannot be shown."""
    _load(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), certificate)


def _load(context: ssl.SSLContext, certificate: Certificate) -> None:
    try:
        load_key_pair(context, certificate.certificate, certificate.key)
    except (ssl.SSLError, ValueError) as error:
        reason = getattr(error, "reason", None) or "no PEM"
        raise CertificateError(f"the certificate and its key are no pair in PEM without a password: {reason}") from None
