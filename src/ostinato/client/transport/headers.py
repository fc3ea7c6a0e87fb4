"""The headers that every request has: who sends it, and whom it acts as."""

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

# What may stand in the name of a header, without the percent sign, which marks what is written in hexadecimal.
_LEGAL: Final = frozenset((string.ascii_letters + string.digits + "!#$&'*+-.^_`|~").encode())
_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64", "i386": "386", "i686": "386"}
_CONTROL_CHARACTERS: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


def fixed_headers(config: Config) -> list[tuple[str, str]]:
    """Those that do not change from one request to the next. ConfigError if one cannot be sent."""
    headers = [
        ("User-Agent", config.user_agent or default_user_agent()),
        ("Accept-Encoding", "gzip" if config.compression else "identity"),
    ]
    for name, value in headers:
        _check(config, name, value)
    return headers


def impersonation_headers(config: Config) -> list[tuple[str, str]]:
    """Those that make the server treat a request as somebody else's."""
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
    """A key as part of a header's name: bytes that are not legal there become %XX."""
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
        raise ConfigError(f"{config.source}: {name}: holds control characters, which no header can: remove them")
