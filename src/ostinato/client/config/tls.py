"""TLS: how the server is known, and the certificate that it is shown, kept up with files that change.

- TLS 1.2 at least. The name in the server's certificate counts, not its common name; a certificate authority that is
  itself signed by another may stand alone.
- Files are read again every five minutes. One that cannot be read any more, or holds nonsense, changes nothing: what
  was read last goes on to be used.
- Private keys that are given as data never touch a disk where the system can help it.
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
    """What a TLS context is made of."""

    authority: bytes  # PEM; empty for the roots of this machine
    certificate: ClientCertificate | None


class TlsFiles:
    """The certificates of a configuration."""

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
        self._context: ResumingContext | None = None  # of the material
        self._read_again_at = float("-inf")

    async def current(self) -> Material:
        """What is to be used now. ConfigError if it cannot be read, and never could."""
        if self._material is not None and (not self._has_files or self._world.clock.monotonic() < self._read_again_at):
            return self._material
        self._read_again_at = self._world.clock.monotonic() + _READ_AGAIN_AFTER
        before = self._material
        try:
            found, context = await self._world.executor.run(self._read)
        except ConfigError as error:
            if before is None:
                raise
            log.error("certificates are not renewed: %s", error)
            return before
        if found != before:
            self._material, self._context = found, context
        assert self._material is not None
        return self._material

    def context(self, material: Material) -> ResumingContext:
        """A context of this material, which may have got a plugin's certificate. ConfigError if that is none."""
        if self._context is not None and material is self._material:
            return self._context
        return make_context(self._config, material)

    def _read(self) -> tuple[Material, ResumingContext]:
        tls = self._config.tls
        authority = tls.ca_data or self._file("certificate-authority", tls.ca_file)
        certificate = tls.certificate_data or self._file("client-certificate", tls.certificate_file)
        key = tls.key_data or Secret(self._file("client-key", tls.key_file).decode("latin-1"))
        material = Material(authority, ClientCertificate(certificate, key) if certificate else None)
        return material, make_context(self._config, material)  # so nonsense is noticed before anybody uses it

    def _file(self, field: str, path: Path | None) -> bytes:
        if path is None:
            return b""
        try:
            data = path.read_bytes()
        except OSError as error:
            raise ConfigError(
                f"{self._config.source}: {field}: {path} cannot be read: {error.strerror}: "
                "correct the path, or the file's permissions"
            ) from None
        if not data:
            raise ConfigError(f"{self._config.source}: {field}: {path} is empty: put the PEM there")
        return data


class ResumingContext(ssl.SSLContext):
    """Goes on with the session of an earlier connection to the same name, which saves both sides half of the work.

    What a server has shown of itself, and was shown, holds for the session: new certificates need a new context.
    """

    _session: ssl.SSLSession | None = None
    _name: str | None = None  # of the server that the session is with

    def remember(self, connected: ssl.SSLObject) -> None:
        """Go on with the session of this connection. A server gives what that needs before its first answer."""
        if connected.session_reused:
            return  # it is known; to look at one takes as long as half of a handshake
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
    """The context for connections to the configured server. ConfigError names the field that is wrong."""
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
            f"{config.source}: certificate-authority: unable to load root certificates: it holds no certificate in PEM"
        ) from None


def _load_certificate(context: ssl.SSLContext, config: Config, certificate: ClientCertificate) -> None:
    try:
        load_key_pair(context, certificate.certificate, certificate.key.reveal().encode("latin-1"))
    except (ssl.SSLError, ValueError):
        raise ConfigError(
            f"{config.source}: client-certificate: the certificate and its key are no pair in PEM without a password"
        ) from None
