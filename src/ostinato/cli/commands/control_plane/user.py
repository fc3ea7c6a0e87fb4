"""`ostinato user`: write kubeconfigs with client certificates signed by the server's certificate authority."""

from __future__ import annotations

import argparse
import os
import re
import sys
from datetime import timedelta
from pathlib import Path

from ostinato.cli.error import CommandError
from ostinato.cli.options.server.storage import default_state
from ostinato.client.config.config import Config
from ostinato.client.config.error import ConfigError
from ostinato.server.access.authority import Authority
from ostinato.server.access.kubeconfig import kubeconfig
from ostinato.server.state import StateError
from ostinato.world import World

_UNITS = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds"}
_SHORTEST = timedelta(minutes=10)
_LONGEST_NAME = 64  # characters of a common name or an organisation, by X.509


def add(options: argparse.Namespace) -> None:
    """Write a kubeconfig for a user."""
    name, groups = options.name, options.group
    for kind, text in (("user", name), *(("group", group) for group in groups)):
        _check(kind, text, allow_system=options.allow_system)
    lifetime = _lifetime(options.expires)
    state = Path(options.state) if options.state else default_state()
    if not (state / "ca.key").exists():
        raise CommandError(f"{state} has no ca.key; start the server once with this --state, or give another --state")
    server, server_name = _server(state, options.server)
    try:
        authority = Authority(World.real(), state)
        issued = authority.user(name, groups, lifetime)
    except (StateError, OSError) as error:
        raise CommandError(str(error)) from error
    text = kubeconfig(server, authority.certificate, name, issued.certificate, issued.key, server_name=server_name)
    out = Path(options.out) if options.out else Path(f"{re.sub(r'[^A-Za-z0-9._-]', '_', name)}.kubeconfig")
    _write(out, text)
    member = f" in {', '.join(groups)}" if groups else ""
    sys.stdout.write(f"wrote {out}: user {name}{member}, valid until {issued.not_after:%Y-%m-%d %H:%M} UTC\n")


def _check(kind: str, text: str, *, allow_system: bool) -> None:
    if not text or len(text) > _LONGEST_NAME or not text.isprintable():
        raise CommandError(f"{kind} {text!r}: want 1 to {_LONGEST_NAME} printable characters")
    if text.startswith("system:") and not allow_system:
        raise CommandError(
            f"{kind} {text}: the prefix system: is reserved for Kubernetes; give --allow-system to use it"
        )


def _lifetime(text: str) -> timedelta:
    found = re.fullmatch(r"([0-9]{1,6})([dhms])", text)
    lifetime = timedelta(**{_UNITS[found[2]]: int(found[1])}) if found else timedelta()
    if lifetime < _SHORTEST:
        raise CommandError(f"--expires {text}: want at least 10m, for example 365d, 12h or 30m")
    return lifetime


def _server(state: Path, given: str | None) -> tuple[str, str]:
    """URL and TLS server name of the server, from its own kubeconfig unless `given`."""
    try:
        config = Config.load(path=state / "admin.kubeconfig")
        return given or config.url, config.tls.server_name
    except (ConfigError, OSError) as error:
        if given:
            return given, ""
        raise CommandError(f"cannot find the server's URL; start the server once, or give --server: {error}") from error


def _write(path: Path, text: str) -> None:
    """Create a file with mode 0600; an existing file is an error, it may be in use."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise CommandError(f"{path} exists; remove it or choose another file with --out") from None
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror}") from error
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
