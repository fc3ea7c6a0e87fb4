"""Reload of --authentication-config: a changed file replaces the configuration once its issuers are reachable.

- The file is polled every few seconds, in a worker thread. An invalid file is logged; the old configuration stays.
- A configuration whose issuers are not reachable within two minutes is retried with the next poll.
- `anonymous` cannot be changed without a restart, as in kube-apiserver.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path

from ostinato.api.validation.field_errors import FieldError, joined
from ostinato.api.validation.field_errors import Path as FieldPath
from ostinato.server.access.authentication.oidc.configuration import (
    AuthenticationConfiguration,
    ConfigurationError,
    read,
)
from ostinato.server.access.authentication.oidc.issuer import OidcAuthenticator
from ostinato.server.access.authentication.oidc.issuers import OidcAuthenticators
from ostinato.server.access.authentication.oidc.validation import Compiled, validate
from ostinato.server.access.authentication.settings import AuthenticationSettingsError
from ostinato.world import World

INTERVAL = 5.0  # seconds between two polls
_READY_SECONDS = 120.0  # for the issuers of a changed file
_POLL = 0.5
_logger = logging.getLogger(__name__)


class ConfigurationFile:
    """AuthenticationSettingsError if the file is invalid at start. `own_issuers`: service account issuers."""

    def __init__(self, world: World, path: Path, own_issuers: Sequence[str]) -> None:
        self._world = world
        self._path = path
        self._own_issuers = tuple(own_issuers)
        self._following: asyncio.Task[None] | None = None
        try:
            self._data = path.read_bytes()
            self.configuration = read(self._data)
        except (OSError, ConfigurationError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise AuthenticationSettingsError(
                f"failed to load authentication configuration from file {path}: {why}"
            ) from None
        self.compiled = check(self.configuration, self._own_issuers, f"{path}: ")

    def start(self, issuers: OidcAuthenticators) -> None:
        issuers.use(issuers.made(self.configuration, self.compiled))
        self._following = asyncio.get_running_loop().create_task(self._follow(issuers), name="authentication-config")

    def close(self) -> None:
        if self._following is not None:
            self._following.cancel()

    async def _follow(self, issuers: OidcAuthenticators) -> None:
        while True:
            await self._world.clock.sleep(INTERVAL)
            try:
                await self._look(issuers)
            except OSError as error:
                _logger.warning("cannot read authentication config file=%s error=%s", self._path, error.strerror)
            except Exception:
                _logger.exception("cannot reload authentication config file=%s", self._path)

    async def _look(self, issuers: OidcAuthenticators) -> None:
        data = await self._world.executor.run(self._path.read_bytes)
        if data == self._data:
            return
        try:
            configuration = read(data)
            compiled, errors = validate(configuration, self._own_issuers)
            if configuration.anonymous != self.configuration.anonymous:
                errors.append(FieldError.forbidden(FieldPath("anonymous"), "changed from initial configuration file"))
            if errors:
                raise ConfigurationError(joined(errors))
        except ConfigurationError as error:
            _logger.error("authentication config not reloaded file=%s error=%s", self._path, error)
            self._data = data  # not retried until it changes
            return
        made = issuers.made(configuration, compiled)
        if not await self._are_ready(made):
            return
        issuers.use(made)
        self._data = data
        _logger.info("authentication config reloaded file=%s", self._path)

    async def _are_ready(self, issuers: list[OidcAuthenticator]) -> bool:
        until = self._world.clock.monotonic() + _READY_SECONDS
        try:
            while faults := [issuer.keys.fault for issuer in issuers if not issuer.keys.is_ready]:
                if self._world.clock.monotonic() > until:
                    _logger.error("authentication config not reloaded file=%s error=%s", self._path, faults[0])
                    return False
                await self._world.clock.sleep(_POLL)
        finally:
            if any(not issuer.keys.is_ready for issuer in issuers):
                for issuer in issuers:
                    issuer.keys.close()
        return True


def check(configuration: AuthenticationConfiguration, own_issuers: Sequence[str], where: str) -> list[Compiled]:
    """Validate and return the compiled expressions; AuthenticationSettingsError names every invalid field."""
    compiled, errors = validate(configuration, own_issuers)
    if errors:
        raise AuthenticationSettingsError(f"{where}invalid authentication configuration: {joined(errors)}")
    return compiled
