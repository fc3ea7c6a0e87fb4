"""Telling: what a user can mend is said in a line, without a traceback; what only we can mend keeps its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from ostinato.api.errors import APIError
from ostinato.cache.sync_tracker import SyncError
from ostinato.cli.error import Failure
from ostinato.client import TransportError
from ostinato.client.config.error import ConfigError
from ostinato.controllers.controller import ControllerError
from ostinato.manager import LeadershipLost, ShutdownTimedOut
from ostinato.manager.endpoints import parse_address
from ostinato.webhook.certificates.certificate import CertificateError

TOLD: Final = (
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
def told() -> Iterator[None]:
    """Make Failures of errors by which managers end, or do not begin, and for which they are not to blame."""
    try:
        yield
    except BaseExceptionGroup as group:
        mine, others = group.split(TOLD)
        if others is not None or mine is None:
            raise
        raise Failure("; ".join(map(_text, mine.exceptions))) from None
    except TOLD as error:
        raise Failure(_text(error)) from None


def check_addresses(*, health: str, metrics: str) -> None:
    """A Failure for what is no address to listen on."""
    for option, address in (("--health", health), ("--metrics", metrics)):
        try:
            if address:
                parse_address(address)
        except ValueError as error:
            raise Failure(f"{option}: {error}") from None


def _text(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)
