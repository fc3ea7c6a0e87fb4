"""Check for the packages of the `server` extra before a command loads the server."""

from __future__ import annotations

from ostinato.cli.error import CommandError


def require_server() -> None:
    """Raise CommandError unless `ostinato[server]` is installed."""
    from importlib.util import find_spec  # noqa: PLC0415 - `ostinato run` does not need it

    missing = [name for name in ("cryptography", "re2") if find_spec(name) is None]
    if missing:
        raise CommandError(
            f"this command needs the server; run pip install 'ostinato[server]' (missing: {', '.join(missing)})"
        )
