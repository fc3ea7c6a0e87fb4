"""Headers of every request: user agent, compression and impersonation."""

from __future__ import annotations

import os
import re
import string
import sys
from functools import cache
from pathlib import Path
from typing import Final

from ostinato.client.config.config import Config, Impersonation
from ostinato.client.config.error import ConfigError
from ostinato.version import VERSION

# Bytes allowed in a header name, except the percent sign, which escapes the others.
_LEGAL: Final = frozenset((string.ascii_letters + string.digits + "!#$&'*+-.^_`|~").encode())
_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64", "i386": "386", "i686": "386"}
_CONTROL_CHARACTERS: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


def fixed_headers(config: Config) -> list[tuple[str, str]]:
    """Headers that are the same for all requests. Raises ConfigError if one cannot be sent."""
    headers = [
        ("User-Agent", config.user_agent or default_user_agent()),
        ("Accept-Encoding", "gzip" if config.compression else "identity"),
    ]
    for name, value in headers:
        _check(config, name, value)
    return headers


def impersonation_headers(config: Config) -> list[tuple[str, str]]:
    """Headers that have the server treat a request as another user's."""
    who = config.impersonate
    if who is None:
        return []
    headers = _impersonation(who)
    for name, value in headers:
        _check(config, name, value)
    return headers


def _impersonation(who: Impersonation) -> list[tuple[str, str]]:
    headers = [("Impersonate-User", who.user)]
    if who.uid:
        headers.append(("Impersonate-Uid", who.uid))
    headers += [("Impersonate-Group", group) for group in who.groups]
    for key, values in who.extra.items():
        headers += [(f"Impersonate-Extra-{escaped_key(key)}", value) for value in values]
    return headers


def escaped_key(key: str) -> str:
    """Escape a key for use in a header name: bytes that are not allowed there become %XX."""
    return "".join([chr(byte) if byte in _LEGAL else f"%{byte:02X}" for byte in key.encode()])


@cache
def default_user_agent() -> str:
    """`<program>/<version> (<os>/<architecture>) ostinato/<version>`."""
    machine = os.uname().machine if hasattr(os, "uname") else "unknown"
    return f"{_program()}/{VERSION} ({sys.platform}/{_ARCHITECTURES.get(machine, machine)}) ostinato/{VERSION}"


def _program() -> str:
    path = Path(sys.argv[0] if sys.argv else "")
    name = path.parent.name if path.name == "__main__.py" else path.name
    return re.sub(r"[^A-Za-z0-9._+-]", "", name).strip("-") or "python"


def _check(config: Config, name: str, value: str) -> None:
    if _CONTROL_CHARACTERS.search(value):
        raise ConfigError(
            f"{config.source}: {name}: contains control characters, which are not allowed in a header; remove them"
        )
