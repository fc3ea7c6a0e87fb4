"""Settings of authentication; each field is an option of kube-apiserver."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ostinato.server.access.authentication.identity import DEFAULT_ISSUER


class AuthenticationSettingsError(Exception):
    """An option's file or value cannot be used; the message names it and the reason."""


class ServiceAccountSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of service account tokens.

    - `issuers`: the first issues new tokens; tokens of all are accepted.
    - `signing_key`: private key, RSA or ECDSA in PEM.
    - `generated_key`: file of the key that the server generates if `signing_key` is None. Defaults to none: see
      `keys.ServiceAccountKeys`.
    - `key_files`: further keys, public or private, whose tokens are accepted.
    - `jwks_uri`: the published JWKS URI. Defaults to this server's.
    - `extend_expiration`: tokens injected by admission are valid for a year and report stale use after an hour.
    - `max_expiration`: maximum token lifetime in seconds; 0 is no limit.
    """

    issuers: tuple[str, ...] = (DEFAULT_ISSUER,)
    signing_key: Path | None = None
    generated_key: Path | None = None
    key_files: tuple[Path, ...] = ()
    jwks_uri: str = ""
    extend_expiration: bool = True
    max_expiration: int = 0


class OidcSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The --oidc-* options: one issuer of JSON web tokens.

    `username_prefix`: "" prefixes claims other than `email` with the issuer URL and "#"; "-" disables prefixing.
    """

    issuer_url: str
    client_id: str
    authority: Path | None = None
    username_claim: str = "sub"
    username_prefix: str = ""
    groups_claim: str = ""
    groups_prefix: str = ""
    required_claims: tuple[tuple[str, str], ...] = ()
    algorithms: tuple[str, ...] = ("RS256",)


class TokenWebhookSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`config`: a kubeconfig whose current context is the TokenReview backend."""

    config: Path
    version: str = "v1beta1"
    cache_seconds: float = 120.0


class RequestHeaderSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The --requestheader-* options. Header names are case-insensitive.

    - `authority`: PEM file of the CA that signs the proxies' certificates.
    - `allowed_names`: allowed common names of proxies; empty allows all.
    """

    authority: Path
    allowed_names: tuple[str, ...] = ()
    username_headers: tuple[str, ...] = ("x-remote-user",)
    uid_headers: tuple[str, ...] = ()
    group_headers: tuple[str, ...] = ("x-remote-group",)
    extra_prefixes: tuple[str, ...] = ("x-remote-extra-",)


class AuthenticationSettings(msgspec.Struct, frozen=True, kw_only=True):
    """
    - `token_file`: CSV file of static tokens. Defaults to none.
    - `audiences`: the API server's: tokens must be valid for one. Defaults to the service account issuers.
    - `accounts`: service account tokens.
    - `bootstrap_tokens`: Secrets of type bootstrap.kubernetes.io/token authenticate nodes that join.
    - `config`: AuthenticationConfiguration file, reloaded when it changes. Defaults to none.
    - `oidc`, `webhook`, `front_proxy`: further authenticators. Default to none.
    - `anonymous`: whether anonymous requests are allowed. None leaves it to `config`, which defaults to yes.
    - `client_authority`: PEM file of a further CA of client certificates. Defaults to none.
    """

    token_file: Path | None = None
    audiences: tuple[str, ...] = ()
    accounts: ServiceAccountSettings = ServiceAccountSettings()
    bootstrap_tokens: bool = True
    config: Path | None = None
    oidc: OidcSettings | None = None
    webhook: TokenWebhookSettings | None = None
    front_proxy: RequestHeaderSettings | None = None
    anonymous: bool | None = None
    client_authority: Path | None = None

    @property
    def own_audiences(self) -> tuple[str, ...]:
        return self.audiences or self.accounts.issuers
