"""Turn errors that a user can fix into CommandErrors: one line, no traceback. Other errors keep their traceback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from ostinato.api.errors import APIError
from ostinato.cache.sync_tracker import SyncError
from ostinato.certificates.certificate import CertificateError
from ostinato.cli.error import CommandError
from ostinato.client import TransportError
from ostinato.client.config.error import ConfigError
from ostinato.controllers.controller import ControllerError
from ostinato.manager import LeadershipLost, ShutdownTimedOut
from ostinato.manager.endpoints import parse_address

USER_ERRORS: Final = (
    APIError,
    CertificateError,
    ConfigError,
    ControllerError,
    LeadershipLost,
    OSError,
    ShutdownTimedOut,
    SyncError,
    TransportError,
)


@contextmanager
def command_errors() -> Iterator[None]:
    """Raise CommandError for USER_ERRORS, and for groups that contain nothing else."""
    try:
        yield
    except BaseExceptionGroup as group:
        fixable, others = group.split(USER_ERRORS)
        if others is not None or fixable is None:
            raise
        raise CommandError("; ".join(map(_text, fixable.exceptions))) from None
    except USER_ERRORS as error:
        raise CommandError(_text(error)) from None


def check_addresses(*, health: str, metrics: str) -> None:
    """Raise CommandError for a malformed listen address."""
    for option, address in (("--health", health), ("--metrics", metrics)):
        try:
            if address:
                parse_address(address)
        except ValueError as error:
            raise CommandError(f"{option}: {error}") from None


def _text(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)
