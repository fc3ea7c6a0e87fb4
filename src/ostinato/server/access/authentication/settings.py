"""What an operator decides about authentication; each field is an option of kube-apiserver."""

from __future__ import annotations

from pathlib import Path

import msgspec


class AuthenticationSettingsError(Exception):
    """A file or value that an option names cannot be used; the message says which and why."""


class AuthenticationSettings(msgspec.Struct, frozen=True, kw_only=True):
    """
    - `token_file`: static tokens, as CSV. Defaults to none.
    - `bootstrap_tokens`: Secrets of type bootstrap.kubernetes.io/token authenticate nodes that join.
    """

    token_file: Path | None = None
    bootstrap_tokens: bool = True
