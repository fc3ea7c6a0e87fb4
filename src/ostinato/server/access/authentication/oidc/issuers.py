"""The OIDC authenticators of a configuration, replaceable on reload."""

from __future__ import annotations

from collections.abc import Sequence

from ostinato.server.access.authentication.identity import Identity
from ostinato.server.access.authentication.oidc.configuration import AuthenticationConfiguration
from ostinato.server.access.authentication.oidc.issuer import OidcAuthenticator
from ostinato.server.access.authentication.oidc.key_set import Fetch, KeySet
from ostinato.server.access.authentication.oidc.validation import Compiled
from ostinato.server.access.authentication.tokens import jwt
from ostinato.server.access.authentication.tokens.static import server_identity
from ostinato.world import Clock


class OidcAuthenticators:
    """`audiences`: the API server's."""

    def __init__(self, clock: Clock, fetch: Fetch, algorithms: Sequence[str], audiences: Sequence[str]) -> None:
        self._clock = clock
        self._fetch = fetch
        self._algorithms = tuple(algorithms)
        self._audiences = tuple(audiences)
        self._issuers: list[OidcAuthenticator] = []

    def made(self, configuration: AuthenticationConfiguration, compiled: Sequence[Compiled]) -> list[OidcAuthenticator]:
        """Build authenticators and start fetching their keys."""
        made = []
        for settings, expressions in zip(configuration.jwt, compiled, strict=True):
            issuer = settings.issuer
            authority = issuer.certificate_authority.encode()
            keys = KeySet(self._clock, self._fetch, issuer.url, issuer.discovery_url, authority)
            keys.start()
            made.append(OidcAuthenticator(self._clock, settings, expressions, keys, self._algorithms))
        return made

    def use(self, issuers: list[OidcAuthenticator]) -> None:
        """Replace the authenticators in use."""
        old, self._issuers = self._issuers, issuers
        for issuer in old:
            issuer.keys.close()

    async def authenticate_token(self, token: str, audiences: Sequence[str]) -> Identity | None:
        try:
            parsed = jwt.parse(token)
        except jwt.MalformedToken:
            return None
        for issuer in self._issuers:
            if issuer.issued(parsed):
                return server_identity(await issuer.user(parsed), self._audiences, audiences)
        return None

    def close(self) -> None:
        self.use([])
