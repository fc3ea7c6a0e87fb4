"""Credentials of requests, obtained when needed and renewed.

- `current()` returns the credential to send; it may read a file or run a plugin, and caches the result.
- `rejected(credential)` reports that the server responded with 401, and returns whether another credential is available
  for a retry. That is immediate if the credential has already been replaced.
- A token, a password or a certificate takes precedence over a plugin.
"""

from __future__ import annotations

import asyncio
import logging
import re
from base64 import b64encode
from pathlib import Path
from typing import Final, Protocol

from ostinato.client.config.config import Config
from ostinato.client.config.error import ConfigError
from ostinato.client.config.secret import Secret
from ostinato.client.transport.metrics import ClientMetrics
from ostinato.client.transport.protocol import TransportError
from ostinato.world import World

log = logging.getLogger(__name__)

_TOKEN_REFRESH: Final = 50.0  # seconds: the minute of the kubelet's token refresh, less some leeway
_TOKEN_RETRY: Final = 1.0  # seconds, after a failed read
_MAX_TOKEN: Final = 1024 * 1024  # bytes
_IN_HEADER: Final = re.compile(r"[^\x00-\x1f\x7f]+")


class CredentialsError(TransportError):
    """No credential available: the file cannot be read, or the plugin failed."""


class ClientCertificate:
    """Certificate and key in PEM, compared by value."""

    __slots__ = ("certificate", "key")

    def __init__(self, certificate: bytes, key: Secret) -> None:
        self.certificate = certificate
        self.key = key

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ClientCertificate):
            return NotImplemented
        return self.certificate == other.certificate and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.certificate)


class Credential:
    """Authorization header, client certificate, both or neither. Compared by identity."""

    __slots__ = ("authorization", "certificate")

    def __init__(self, authorization: Secret | None = None, certificate: ClientCertificate | None = None) -> None:
        self.authorization = authorization
        self.certificate = certificate


class Credentials(Protocol):
    async def current(self) -> Credential:
        """Return the credential to send. Raises CredentialsError if there is none."""

    async def rejected(self, credential: Credential) -> bool:
        """Report a 401 for this credential. Returns whether `current()` now returns another."""


class FixedCredentials:
    """A credential that does not change."""

    def __init__(self, credential: Credential) -> None:
        self._credential = credential

    async def current(self) -> Credential:
        return self._credential

    async def rejected(self, credential: Credential) -> bool:
        return credential is not self._credential


class TokenFile:
    """A token that is renewed in a file. If the file becomes unreadable, the last token remains in use."""

    def __init__(self, path: Path, world: World, first: Secret | None = None) -> None:
        """`first`: used until the file can be read. Defaults to None."""
        self._path = path
        self._world = world
        self._lock = asyncio.Lock()  # one read at a time
        self._credential = Credential(bearer(first)) if first else None
        self._read_again_at = float("-inf")

    async def current(self) -> Credential:
        if self._credential is not None and self._world.clock.monotonic() < self._read_again_at:
            return self._credential
        async with self._lock:
            if self._credential is None or self._world.clock.monotonic() >= self._read_again_at:
                self._credential = await self._read(self._credential)
            return self._credential

    async def rejected(self, credential: Credential) -> bool:
        if credential is self._credential:
            self._read_again_at = float("-inf")
        return await self.current() is not credential

    async def _read(self, before: Credential | None) -> Credential:
        now = self._world.clock.monotonic()
        try:
            token = await self._world.executor.run(_read_token, self._path)
        except CredentialsError as error:
            if before is None:
                raise
            log.error("cannot refresh token, using the last one error=%s", error)
            self._read_again_at = now + _TOKEN_RETRY
            return before
        self._read_again_at = now + _TOKEN_REFRESH
        if before is not None and before.authorization == bearer(token):
            return before
        return Credential(bearer(token))


def bearer(token: Secret) -> Secret:
    return Secret(f"Bearer {token.reveal()}")


def credentials_for(config: Config, world: World, metrics: ClientMetrics | None = None) -> Credentials:
    """Return the credentials of a configuration; none over plain HTTP, where they could be intercepted."""
    if not config.secure:
        return FixedCredentials(Credential())
    if config.token_file is not None:
        return TokenFile(config.token_file, world, _checked(config, "token", config.token))
    if config.token:
        token = _checked(config, "token", config.token)
        assert token is not None
        return FixedCredentials(Credential(bearer(token)))
    if config.username or config.password:
        password = config.password.reveal() if config.password else ""
        pair = b64encode(f"{config.username}:{password}".encode()).decode()
        return FixedCredentials(Credential(Secret(f"Basic {pair}")))
    if config.exec_plugin is not None and not config.tls.has_certificate:
        from ostinato.client.config.exec_plugin import ExecCredentials  # noqa: PLC0415 - rarely needed

        return ExecCredentials(config, world, metrics)
    return FixedCredentials(Credential())


def _checked(config: Config, field: str, secret: Secret | None) -> Secret | None:
    if secret is None:
        return None
    text = secret.reveal().strip()
    if not _IN_HEADER.fullmatch(text):
        raise ConfigError(
            f"{config.source}: {field}: is empty or contains characters not allowed in a header; correct it"
        )
    return Secret(text)


def _read_token(path: Path) -> Secret:
    try:
        with path.open("rb") as file:
            text = file.read(_MAX_TOKEN + 1).decode().strip()
    except OSError as error:
        raise CredentialsError(f'failed to read token file "{path}": {error.strerror}') from None
    except UnicodeDecodeError:
        raise CredentialsError(f'token file "{path}" is not text') from None
    if not text:
        raise CredentialsError(f'read empty token from file "{path}"')
    if len(text) > _MAX_TOKEN or not _IN_HEADER.fullmatch(text):
        raise CredentialsError(f'token file "{path}" is not a single token')
    return Secret(text)
