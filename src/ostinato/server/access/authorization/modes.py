"""Build the configured chain of authorizers and reload it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from ostinato.server.access.authorization.authorizer import Authorizer
from ostinato.server.access.authorization.configuration import ConfigurationError, Configured, load
from ostinato.server.access.authorization.decision import Mode
from ostinato.server.access.authorization.fixed import AlwaysAllow, AlwaysDeny
from ostinato.server.access.authorization.node import NodeAuthorizer
from ostinato.server.access.authorization.rbac import Rbac
from ostinato.server.access.authorization.rules import Rule
from ostinato.world import World

if TYPE_CHECKING:
    from ostinato.server.access.authorization.webhook import WebhookAuthorizer
    from ostinato.server.resources.registry import Registry

DEFAULT: Final = (Configured("Node", "node"), Configured("RBAC", "rbac"))
_POLL_INTERVAL: Final = 10.0  # seconds between two polls of the file
_logger = logging.getLogger(__name__)


class AuthorizationSettings(msgspec.Struct, frozen=True, kw_only=True):
    """
    - `chain`: the authorizers, in order of evaluation.
    - `file`: the AuthorizationConfiguration that `chain` was read from; reloaded when it changes. Defaults to none.
    """

    chain: tuple[Configured, ...] = DEFAULT
    file: Path | None = None


class Authorization:
    """The authorizer of a server and its modes."""

    def __init__(
        self, registry: Registry, world: World, settings: AuthorizationSettings, node_rules: Callable[[], list[Rule]]
    ) -> None:
        """`node_rules`: the bootstrap rules of the ClusterRole system:node."""
        self._world = world
        self._chain = settings.chain
        self._file = settings.file
        self._rbac = Rbac(registry)
        self._nodes = NodeAuthorizer(registry, node_rules)
        self._webhooks: list[WebhookAuthorizer] = []
        self._following: asyncio.Task[None] | None = None
        self.authorizer = Authorizer(self._rbac, [self._made(each) for each in settings.chain])

    def start(self) -> None:
        """Start polling the file, if there is one."""
        if self._file is not None:
            self._following = asyncio.get_running_loop().create_task(self._follow(self._file))

    async def close(self) -> None:
        if self._following is not None:
            self._following.cancel()
        for webhook in self._webhooks:
            await webhook.close()

    def _modes(self, chain: Sequence[Configured]) -> list[Mode]:
        """Build the modes; unchanged webhooks are reused with their caches."""
        known = dict(zip(self._chain, self.authorizer.modes, strict=True))
        return [known.get(each) or self._made(each) for each in chain]

    def _made(self, configured: Configured) -> Mode:
        if configured.type == "Webhook":
            from ostinato.server.access.authorization.webhook import WebhookAuthorizer  # noqa: PLC0415 - an HTTP client

            webhook = WebhookAuthorizer(self._world, configured)
            self._webhooks.append(webhook)
            return webhook
        fixed: dict[str, Mode] = {
            "Node": self._nodes,
            "RBAC": self._rbac,
            "AlwaysAllow": AlwaysAllow(),
            "AlwaysDeny": AlwaysDeny(),
        }
        return fixed[configured.type]

    async def _follow(self, file: Path) -> None:
        while True:
            await self._world.clock.sleep(_POLL_INTERVAL)
            try:
                self.reload(file)
            except ConfigurationError as error:
                _logger.error("authorization configuration not reloaded file=%s error=%s", file, error)
            except Exception:
                _logger.exception("authorization configuration not reloaded file=%s", file)

    def reload(self, file: Path) -> None:
        """Replace the modes by those of the file; ConfigurationError leaves them unchanged.

        Types other than Webhook must be those that the server started with.
        """
        began_with = {each.type for each in self._chain} - {"Webhook"}
        chain = load(file, began_with)
        added = {each.type for each in chain} - began_with - {"Webhook"}
        if added:
            name = min(added)
            raise ConfigurationError(
                f"authorizer type {name} is not allowed if it was not enabled at initial server startup"
            )
        if chain != self._chain:
            self.authorizer.modes = self._modes(chain)
            self._chain = chain
            _logger.warning("authorization configuration reloaded file=%s", file)
