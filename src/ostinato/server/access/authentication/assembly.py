"""Makes the authenticator that an operator's settings ask for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from ostinato.server.access.authentication.account_tokens import AccountTokens
from ostinato.server.access.authentication.authenticator import Authenticator
from ostinato.server.access.authentication.bootstrap_tokens import BootstrapTokens
from ostinato.server.access.authentication.identity import LocalTokens
from ostinato.server.access.authentication.keys import AccountKeys
from ostinato.server.access.authentication.legacy_tokens import LegacyTokens
from ostinato.server.access.authentication.settings import AuthenticationSettings
from ostinato.server.admission.objects import Kind
from ostinato.server.request import Answer, Request
from ostinato.server.resources.registry import Registry
from ostinato.world import World

_BOUND = {"ServiceAccount": "serviceaccounts", "Pod": "pods", "Secret": "secrets", "Node": "nodes"}


class Authentication:
    """The authenticator of a server, and what it is made of.

    - `authenticator`: says who sends a request.
    - `account_tokens`: issues tokens, too.
    - `kinds`: the objects that tokens may be bound to, by their kind.
    """

    def __init__(
        self,
        settings: AuthenticationSettings,
        registry: Registry,
        world: World,
        ask: Callable[[Request], Awaitable[Answer]],
    ) -> None:
        """AuthenticationSettingsError if a file of the settings cannot be used."""
        accounts, audiences = settings.accounts, settings.own_audiences
        self.settings = settings
        self.kinds: Mapping[str, Kind] = {kind: Kind(registry, "", "v1", name) for kind, name in _BOUND.items()}
        self._legacy = LegacyTokens(self.kinds, ask)
        keys = AccountKeys(world, signing=accounts.signing_key, kept=accounts.kept_key, verifying=accounts.key_files)
        if accounts.signing_key is not None or accounts.key_files:
            keys.load()  # what an operator named is wrong now or never
        self.account_tokens = AccountTokens(world.clock, keys, accounts.issuers, audiences, self.kinds, self._legacy)
        local: list[LocalTokens] = [self.account_tokens]
        if settings.bootstrap_tokens:
            local.append(BootstrapTokens(self.kinds["Secret"], world.clock, audiences))
        self.authenticator = Authenticator(local, audiences=audiences)
        if settings.token_file is not None:
            self.authenticator.add_file(settings.token_file)

    def close(self) -> None:
        self._legacy.close()
