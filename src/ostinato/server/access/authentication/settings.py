"""What an operator decides about authentication; each field is an option of kube-apiserver."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ostinato.server.access.authentication.identity import DEFAULT_ISSUER


class AuthenticationSettingsError(Exception):
    """A file or value that an option names cannot be used; the message says which and why."""


class AccountSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Of service account tokens.

    - `issuers`: the first signs new tokens; tokens of all are accepted.
    - `signing_key`: private key, RSA or ECDSA in PEM.
    - `kept_key`: file of the key that the server makes itself if none is given. Defaults to none: see
      `keys.AccountKeys`.
    - `key_files`: further keys, public or private, whose tokens are accepted.
    - `jwks_uri`: where others find the keys, if that is not this server.
    - `extend_expiration`: tokens that admission adds to Pods live for a year, and only warn after an hour.
    - `max_expiration`: seconds for which tokens live at most; 0 is no limit.
    """

    issuers: tuple[str, ...] = (DEFAULT_ISSUER,)
    signing_key: Path | None = None
    kept_key: Path | None = None
    key_files: tuple[Path, ...] = ()
    jwks_uri: str = ""
    extend_expiration: bool = True
    max_expiration: int = 0


class AuthenticationSettings(msgspec.Struct, frozen=True, kw_only=True):
    """
    - `token_file`: static tokens, as CSV. Defaults to none.
    - `audiences`: for whom tokens must be that requests carry. Defaults to the issuers of service account tokens.
    - `accounts`: service account tokens.
    - `bootstrap_tokens`: Secrets of type bootstrap.kubernetes.io/token authenticate nodes that join.
    """

    token_file: Path | None = None
    audiences: tuple[str, ...] = ()
    accounts: AccountSettings = AccountSettings()
    bootstrap_tokens: bool = True

    @property
    def own_audiences(self) -> tuple[str, ...]:
        return self.audiences or self.accounts.issuers
