"""TLS: verification of the server and client certificate, reloaded when files change.

- At least TLS 1.2. The subject alternative names of the server's certificate are verified, not its common name. An
  intermediate CA is accepted as a trust anchor.
- Files are read again every five minutes. If one becomes unreadable or invalid, the last certificates remain in use.
- Private keys passed as data are not written to disk where the platform allows it.
"""

from __future__ import annotations

import logging
import ssl
from pathlib import Path
from typing import Final, NamedTuple

from ostinato.client.config.config import Config
from ostinato.client.config.credentials import ClientCertificate
from ostinato.client.config.error import ConfigError
from ostinato.client.config.key_pair import load_key_pair
from ostinato.client.config.secret import Secret
from ostinato.world import World

log = logging.getLogger(__name__)

_READ_AGAIN_AFTER: Final = 300.0  # seconds


class Material(NamedTuple):
    """Certificates of a TLS context."""

    authority: bytes  # PEM; empty for the system's root certificates
    certificate: ClientCertificate | None


class TlsFiles:
    """Certificates of a configuration, reloaded from files."""

    def __init__(self, config: Config, world: World) -> None:
        self._config = config
        self._world = world
        tls = config.tls
        self._has_files = any(
            path is not None and not data
            for path, data in (
                (tls.ca_file, tls.ca_data),
                (tls.certificate_file, tls.certificate_data),
                (tls.key_file, tls.key_data),
            )
        )
        self._material: Material | None = None
        self._context: ResumingContext | None = None  # of _material
        self._read_again_at = float("-inf")

    async def current(self) -> Material:
        """Return the certificates to use. Raises ConfigError if they could never be read."""
        if self._material is not None and (not self._has_files or self._world.clock.monotonic() < self._read_again_at):
            return self._material
        self._read_again_at = self._world.clock.monotonic() + _READ_AGAIN_AFTER
        before = self._material
        try:
            found, context = await self._world.executor.run(self._read)
        except ConfigError as error:
            if before is None:
                raise
            log.error("cannot reload certificates, using the last ones error=%s", error)
            return before
        if found != before:
            self._material, self._context = found, context
        assert self._material is not None
        return self._material

    def context(self, material: Material) -> ResumingContext:
        """Return the context of certificates, which may include a plugin's. Raises ConfigError if that is invalid."""
        if self._context is not None and material is self._material:
            return self._context
        return make_context(self._config, material)

    def _read(self) -> tuple[Material, ResumingContext]:
        tls = self._config.tls
        authority = tls.ca_data or self._file("certificate-authority", tls.ca_file)
        certificate = tls.certificate_data or self._file("client-certificate", tls.certificate_file)
        key = tls.key_data or Secret(self._file("client-key", tls.key_file).decode("latin-1"))
        material = Material(authority, ClientCertificate(certificate, key) if certificate else None)
        return material, make_context(self._config, material)  # validates them

    def _file(self, field: str, path: Path | None) -> bytes:
        if path is None:
            return b""
        try:
            data = path.read_bytes()
        except OSError as error:
            raise ConfigError(
                f"{self._config.source}: {field}: {path} cannot be read: {error.strerror}; "
                "correct the path or the file's permissions"
            ) from None
        if not data:
            raise ConfigError(f"{self._config.source}: {field}: {path} is empty; it must contain PEM")
        return data


class ResumingContext(ssl.SSLContext):
    """SSL context that resumes the session of an earlier connection to the same server name.

    Resumption halves the cost of a handshake. A session keeps the verified certificates: new ones need a new context.
    """

    _session: ssl.SSLSession | None = None
    _name: str | None = None  # server name of the session

    def remember(self, connected: ssl.SSLObject) -> None:
        """Store the session of this connection. Call after the first response: the server has sent its ticket."""
        if connected.session_reused:
            return  # already stored; reading `session` costs half a handshake
        session = connected.session
        if session is not None and session.has_ticket:
            self._session, self._name = session, connected.server_hostname

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        if session is None and server_hostname == self._name:
            session = self._session
        return super().wrap_bio(incoming, outgoing, server_side, server_hostname, session)


def make_context(config: Config, material: Material) -> ResumingContext:
    """Return the context for connections to the configured server. Raises ConfigError with the invalid field."""
    context = ResumingContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.set_alpn_protocols(["http/1.1"])
    if ssl.HAS_NEVER_CHECK_COMMON_NAME:
        context.hostname_checks_common_name = False
    if config.tls.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif material.authority:
        _load_authority(context, config, material.authority)
    else:
        context.load_default_certs()
    if material.certificate is not None:
        _load_certificate(context, config, material.certificate)
    return context


def _load_authority(context: ssl.SSLContext, config: Config, authority: bytes) -> None:
    try:
        context.load_verify_locations(cadata=authority.decode("ascii"))
    except (ssl.SSLError, UnicodeDecodeError, ValueError):
        raise ConfigError(
            f"{config.source}: certificate-authority: unable to load root certificates: no certificate in PEM"
        ) from None


def _load_certificate(context: ssl.SSLContext, config: Config, certificate: ClientCertificate) -> None:
    try:
        load_key_pair(context, certificate.certificate, certificate.key.reveal().encode("latin-1"))
    except (ssl.SSLError, ValueError):
        raise ConfigError(
            f"{config.source}: client-certificate: certificate and key are not a matching, unencrypted pair in PEM"
        ) from None
