"""Build the authenticator from the server's settings."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from ostinato.server.access.authentication.anonymous import Anonymous
from ostinato.server.access.authentication.authenticator import Authenticator, CachedTokenAuthenticator
from ostinato.server.access.authentication.identity import RemoteTokenAuthenticator, TokenAuthenticator
from ostinato.server.access.authentication.service_accounts.legacy_tokens import LegacyTokenValidator
from ostinato.server.access.authentication.service_accounts.tokens import ServiceAccountTokens
from ostinato.server.access.authentication.settings import (
    AuthenticationSettings,
    AuthenticationSettingsError,
    OidcSettings,
    TokenWebhookSettings,
)
from ostinato.server.access.authentication.tokens.bootstrap import BootstrapTokenAuthenticator
from ostinato.server.access.authentication.tokens.keys import ALGORITHMS, ServiceAccountKeys
from ostinato.server.request import Answer, Request
from ostinato.server.resources.lister import Lister
from ostinato.server.resources.registry import Registry
from ostinato.server.webhooks import Webhooks
from ostinato.world import World

if TYPE_CHECKING:
    from ostinato.server.access.authentication.oidc.issuers import OidcAuthenticators
    from ostinato.server.access.authentication.oidc.reload import ConfigurationFile

_BOUND = {"ServiceAccount": "serviceaccounts", "Pod": "pods", "Secret": "secrets", "Node": "nodes"}


class Authentication:
    """The authenticator of a server and its parts.

    - `authenticator`: the union authenticator.
    - `account_tokens`: authenticates and issues service account tokens.
    - `kinds`: listers of the objects that tokens may be bound to, by kind.

    Modules of authenticators that few servers configure are imported on demand.
    """

    def __init__(
        self,
        settings: AuthenticationSettings,
        registry: Registry,
        world: World,
        webhooks: Webhooks,
        handle: Callable[[Request], Awaitable[Answer]],
    ) -> None:
        """AuthenticationSettingsError if a configured file cannot be used. `handle`: the server's."""
        self.settings = settings
        self._world = world
        self._webhooks = webhooks
        self.kinds: Mapping[str, Lister] = {kind: Lister(registry, "", "v1", name) for kind, name in _BOUND.items()}
        self._legacy = LegacyTokenValidator(self.kinds, handle)
        self._issuers: OidcAuthenticators | None = None
        self._file: ConfigurationFile | None = None
        self._start_issuers: Callable[[], None] | None = None
        self.account_tokens = self._account_tokens()
        self.authenticator = self._authenticator()

    def start(self) -> None:
        """Start fetching the keys of OIDC issuers."""
        if self._start_issuers is not None:
            self._start_issuers()

    def close(self) -> None:
        self.authenticator.close()
        self._legacy.close()
        if self._file is not None:
            self._file.close()
        if self._issuers is not None:
            self._issuers.close()

    def _account_tokens(self) -> ServiceAccountTokens:
        accounts = self.settings.accounts
        keys = ServiceAccountKeys(
            self._world, signing=accounts.signing_key, kept=accounts.generated_key, verifying=accounts.key_files
        )
        keys.check()
        audiences = self.settings.own_audiences
        return ServiceAccountTokens(self._world.clock, keys, accounts.issuers, audiences, self.kinds, self._legacy)

    def _authenticator(self) -> Authenticator:
        settings, audiences = self.settings, self.settings.own_audiences
        local: list[TokenAuthenticator] = [self.account_tokens]
        if settings.bootstrap_tokens:
            local.append(BootstrapTokenAuthenticator(self.kinds["Secret"], self._world.clock, audiences))
        remote: list[RemoteTokenAuthenticator] = []
        anonymous = Anonymous(enabled=settings.anonymous is not False)
        if settings.config is not None:
            self._file = self._configuration_file()
            anonymous = self._anonymous(self._file)
            remote.append(self._issuers_of(ALGORITHMS))
        elif settings.oidc is not None:
            remote.append(self._oidc(settings.oidc))
        if settings.webhook is not None:
            remote.append(self._webhook(settings.webhook))
        front_proxy = None
        if settings.front_proxy is not None:
            from ostinato.server.access.authentication.certificates.request_header import RequestHeaderAuthenticator  # noqa: PLC0415 - see above

            front_proxy = RequestHeaderAuthenticator(settings.front_proxy)
        authenticator = Authenticator(
            local,
            remote=CachedTokenAuthenticator(self._world.clock, remote) if remote else None,
            front_proxy=front_proxy,
            anonymous=anonymous,
            audiences=audiences,
        )
        if settings.token_file is not None:
            authenticator.add_file(settings.token_file)
        return authenticator

    def _configuration_file(self) -> ConfigurationFile:
        from ostinato.server.access.authentication.oidc.reload import ConfigurationFile  # noqa: PLC0415

        assert self.settings.config is not None
        file = ConfigurationFile(self._world, self.settings.config, self.settings.accounts.issuers)
        if self.settings.oidc is not None and file.configuration.jwt:
            raise AuthenticationSettingsError("authentication-config file and oidc-* flags are mutually exclusive")

        def start() -> None:
            assert self._issuers is not None
            file.start(self._issuers)

        self._start_issuers = start
        return file

    def _anonymous(self, file: ConfigurationFile) -> Anonymous:
        found = file.configuration.anonymous
        if found is None:
            return Anonymous(enabled=self.settings.anonymous is not False)
        if self.settings.anonymous is not None:
            raise AuthenticationSettingsError(
                "anonymous: Forbidden: --anonymous-auth flag cannot be set when anonymous field is configured in "
                "authentication configuration file"
            )
        paths = [condition.path for condition in found.conditions]
        return Anonymous(enabled=found.enabled, paths=paths or None)

    def _issuers_of(self, algorithms: tuple[str, ...]) -> OidcAuthenticators:
        from ostinato.server.access.authentication.oidc.issuers import OidcAuthenticators  # noqa: PLC0415

        self._issuers = OidcAuthenticators(
            self._world.clock, self._webhooks.fetch, algorithms, self.settings.own_audiences
        )
        return self._issuers

    def _oidc(self, settings: OidcSettings) -> OidcAuthenticators:
        from ostinato.server.access.authentication.oidc.flags import configuration_of  # noqa: PLC0415
        from ostinato.server.access.authentication.oidc.reload import check  # noqa: PLC0415

        for algorithm in settings.algorithms:
            if algorithm not in ALGORITHMS:
                raise AuthenticationSettingsError(f'oidc: unsupported signing alg: "{algorithm}"')
        configuration = configuration_of(settings)
        compiled = check(configuration, self.settings.accounts.issuers, "--oidc-*: ")
        issuers = self._issuers_of(settings.algorithms)
        self._start_issuers = lambda: issuers.use(issuers.made(configuration, compiled))
        return issuers

    def _webhook(self, settings: TokenWebhookSettings) -> RemoteTokenAuthenticator:
        from ostinato.client.config.error import ConfigError  # noqa: PLC0415
        from ostinato.server.access.authentication.tokens.webhook import WebhookTokenAuthenticator  # noqa: PLC0415
        from ostinato.server.webhooks.identity import backend_of  # noqa: PLC0415

        if settings.version not in ("v1", "v1beta1"):
            raise AuthenticationSettingsError(
                f'unsupported authentication webhook version "{settings.version}", '
                'supported versions are "v1", "v1beta1"'
            )
        try:
            backend = backend_of(settings.config)
        except ConfigError as error:
            raise AuthenticationSettingsError(f"--authentication-token-webhook-config-file: {error}") from None
        return WebhookTokenAuthenticator(
            self._world,
            backend,
            self._webhooks.call,
            settings.version,
            settings.cache_seconds,
            self.settings.own_audiences,
        )
