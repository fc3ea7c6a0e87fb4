"""Credentials: what a request shows so that the server knows who asks, fetched when it is needed and kept fresh.

- `current()` gives what to send now; it may read a file or run a program, but mostly it remembers.
- `rejected(credential)` is told when the server answered 401 to one. It says whether another can be had, so that the
  request is worth sending once more. Who comes late with a credential that is replaced already is told so at once.
- Of several ways in one configuration a token, a password or a certificate beats a plugin.
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

_TOKEN_KEPT: Final = 50.0  # seconds: a minute, as the kubelet renews tokens, less some leeway
_TOKEN_TRIED_AGAIN: Final = 1.0  # seconds, when a file that was readable is not
_MAX_TOKEN: Final = 1024 * 1024  # bytes
_IN_HEADER: Final = re.compile(r"[^\x00-\x1f\x7f]+")


class CredentialsError(TransportError):
    """There are no credentials to send: the file cannot be read, the program failed."""


class ClientCertificate:
    """A certificate and its key, PEM both. Two are equal if they hold the same."""

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
    """What to show: the value of the Authorization header, a certificate, both or neither. Each is itself alone."""

    __slots__ = ("authorization", "certificate")

    def __init__(self, authorization: Secret | None = None, certificate: ClientCertificate | None = None) -> None:
        self.authorization = authorization
        self.certificate = certificate


class Credentials(Protocol):
    async def current(self) -> Credential:
        """What to send now. CredentialsError if there is nothing."""

    async def rejected(self, credential: Credential) -> bool:
        """The server said 401 to this one. Whether `current()` gives another now."""


class FixedCredentials:
    """Always the same."""

    def __init__(self, credential: Credential) -> None:
        self._credential = credential

    async def current(self) -> Credential:
        return self._credential

    async def rejected(self, credential: Credential) -> bool:
        return credential is not self._credential


class TokenFile:
    """A token that somebody else renews in a file. When it cannot be read any more, the last one goes on to be used."""

    def __init__(self, path: Path, world: World, first: Secret | None = None) -> None:
        """`first` is used until the file can be read."""
        self._path = path
        self._world = world
        self._lock = asyncio.Lock()  # so that the file is read once, however many wait for it
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
            log.error("unable to rotate the token: %s", error)
            self._read_again_at = now + _TOKEN_TRIED_AGAIN
            return before
        self._read_again_at = now + _TOKEN_KEPT
        if before is not None and before.authorization == bearer(token):
            return before
        return Credential(bearer(token))


def bearer(token: Secret) -> Secret:
    return Secret(f"Bearer {token.reveal()}")


def credentials_for(config: Config, world: World, metrics: ClientMetrics | None = None) -> Credentials:
    """The credentials of a configuration. Over plain HTTP there are none: they would be for everybody to read."""
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
        from ostinato.client.config.exec_plugin import ExecCredentials  # noqa: PLC0415 - few need it

        return ExecCredentials(config, world, metrics)
    return FixedCredentials(Credential())


def _checked(config: Config, field: str, secret: Secret | None) -> Secret | None:
    if secret is None:
        return None
    text = secret.reveal().strip()
    if not _IN_HEADER.fullmatch(text):
        raise ConfigError(f"{config.source}: {field}: is empty or holds characters that no header can: correct it")
    return Secret(text)


def _read_token(path: Path) -> Secret:
    try:
        with path.open("rb") as file:
            text = file.read(_MAX_TOKEN + 1).decode().strip()
    except OSError as error:
        raise CredentialsError(f'failed to read token file "{path}": {error.strerror}') from None
    except UnicodeDecodeError:
        raise CredentialsError(f'token file "{path}" does not hold text') from None
    if not text:
        raise CredentialsError(f'read empty token from file "{path}"')
    if len(text) > _MAX_TOKEN or not _IN_HEADER.fullmatch(text):
        raise CredentialsError(f'token file "{path}" does not hold one token')
    return Secret(text)
