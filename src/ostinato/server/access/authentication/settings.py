"""What an operator decides about authentication; each field is an option of kube-apiserver."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ostinato.server.access.authentication.identity import DEFAULT_ISSUER


class AuthenticationSettingsError(Exception):
    """A file or value that an option names cannot be used; the message says which and why."""


class ServiceAccountSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Of service account tokens.

    - `issuers`: the first signs new tokens; tokens of all are accepted.
    - `signing_key`: private key, RSA or ECDSA in PEM.
    - `generated_key`: file of the key that the server makes itself if none is given. Defaults to none: see
      `keys.ServiceAccountKeys`.
    - `key_files`: further keys, public or private, whose tokens are accepted.
    - `jwks_uri`: where others find the keys, if that is not this server.
    - `extend_expiration`: tokens that admission adds to Pods live for a year, and only warn after an hour.
    - `max_expiration`: seconds for which tokens live at most; 0 is no limit.
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

    `username_prefix`: "" is the issuer's URL and "#" for claims other than `email`, "-" is none.
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
    """`config`: a kubeconfig whose current context is the backend of token reviews."""

    config: Path
    version: str = "v1beta1"
    cache_seconds: float = 120.0


class RequestHeaderSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The --requestheader-* options. Names of headers are in any case.

    - `authority`: signs the certificates of proxies, as a PEM file.
    - `allowed_names`: common names of proxies; empty is any that is signed.
    """

    authority: Path
    allowed_names: tuple[str, ...] = ()
    username_headers: tuple[str, ...] = ("x-remote-user",)
    uid_headers: tuple[str, ...] = ()
    group_headers: tuple[str, ...] = ("x-remote-group",)
    extra_prefixes: tuple[str, ...] = ("x-remote-extra-",)


class AuthenticationSettings(msgspec.Struct, frozen=True, kw_only=True):
    """
    - `token_file`: static tokens, as CSV. Defaults to none.
    - `audiences`: for whom tokens must be that requests carry. Defaults to the issuers of service account tokens.
    - `accounts`: service account tokens.
    - `bootstrap_tokens`: Secrets of type bootstrap.kubernetes.io/token authenticate nodes that join.
    - `config`: an AuthenticationConfiguration, followed while the server runs. Defaults to none.
    - `oidc`, `webhook`, `front_proxy`: further ways to tell who asks. Default to none.
    - `anonymous`: whether requests need no credentials. None leaves it to `config`, which defaults to yes.
    - `client_authority`: signs client certificates, beside the server's own authority. A PEM file; defaults to none.
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
