"""Makes the authenticator that an operator's settings ask for."""

from __future__ import annotations

from ostinato.server.access.authentication.authenticator import Authenticator
from ostinato.server.access.authentication.bootstrap_tokens import BootstrapTokens
from ostinato.server.access.authentication.identity import DEFAULT_ISSUER, LocalTokens
from ostinato.server.access.authentication.settings import AuthenticationSettings
from ostinato.server.admission.objects import Kind
from ostinato.server.resources.registry import Registry
from ostinato.world import World


def make_authenticator(
    settings: AuthenticationSettings, registry: Registry, world: World, accounts: LocalTokens
) -> Authenticator:
    """AuthenticationSettingsError if a file of the settings cannot be used."""
    audiences = (DEFAULT_ISSUER,)
    local = [accounts]
    if settings.bootstrap_tokens:
        local.append(BootstrapTokens(Kind(registry, "", "v1", "secrets"), world.clock, audiences))
    authenticator = Authenticator(local, audiences=audiences)
    if settings.token_file is not None:
        authenticator.add_file(settings.token_file)
    return authenticator
