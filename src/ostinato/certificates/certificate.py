"""Serving certificates, replaced without a restart.

- A `CertificateSource` returns the current certificate. It is read every `interval` seconds: files may have changed, or
  a renewal may be due.
- `ServerTls` is the TLS context of a listening server. A new certificate applies to new connections; an invalid pair is
  rejected, and the previous one stays in use.
"""

from __future__ import annotations

import ssl
from typing import Protocol

import msgspec

from ostinato.client.config.key_pair import load_key_pair


class CertificateError(Exception):
    """There is no usable certificate."""


class Certificate(msgspec.Struct, frozen=True):
    """A certificate with its key and authorities, all PEM."""

    certificate: bytes
    key: bytes
    authorities: bytes = b""  # the CA bundle; empty if it is managed elsewhere

    def __repr__(self) -> str:
        return f"<Certificate of {len(self.certificate)} bytes>"  # never log the key


class CertificateSource(Protocol):
    @property
    def interval(self) -> float:
        """Seconds between two calls of `current`."""

    async def current(self) -> Certificate:
        """Return the certificate to serve. Raises CertificateError if there is none."""


class ServerTls:
    """TLS 1.2 or later; requires client certificates if `client_authorities` (PEM) are given."""

    def __init__(self, client_authorities: bytes = b"") -> None:
        self._client_authorities = client_authorities
        self.context = self._make()

    def use(self, certificate: Certificate) -> None:
        """Use a certificate for new connections. Raises CertificateError, without a change, if it is invalid."""
        _load(self._make(), certificate)  # validates: a failed load may leave half of the pair
        _load(self.context, certificate)

    def _make(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        if self._client_authorities:
            try:
                context.load_verify_locations(cadata=self._client_authorities.decode("ascii"))
            except (ssl.SSLError, ValueError):
                raise CertificateError("client_authorities: not PEM certificates") from None
            context.verify_mode = ssl.CERT_REQUIRED
        return context


def check_pair(certificate: Certificate) -> None:
    """Raise CertificateError if the pair is invalid."""
    _load(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), certificate)


def _load(context: ssl.SSLContext, certificate: Certificate) -> None:
    try:
        load_key_pair(context, certificate.certificate, certificate.key)
    except (ssl.SSLError, ValueError) as error:
        reason = getattr(error, "reason", None) or "not PEM"
        raise CertificateError(f"certificate and key are not a pair in PEM without a passphrase: {reason}") from None
