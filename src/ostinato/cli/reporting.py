"""Turn errors that a user can fix into CommandErrors: one line, no traceback. Other errors keep their traceback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol

from ostinato.api.errors import APIError
from ostinato.cache.sync_tracker import SyncError
from ostinato.certificates.certificate import CertificateError
from ostinato.cli.error import CommandError
from ostinato.client import TransportError
from ostinato.client.config.error import ConfigError
from ostinato.controllers.loop import ControllerError
from ostinato.manager import LeadershipLost, ShutdownTimedOut
from ostinato.manager.serving.endpoints import parse_address
from ostinato.manager.serving.metrics import MetricsOptions

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


class EndpointOptions(Protocol):
    """The options of `ostinato.cli.options.cluster.add_endpoints`."""

    @property
    def health(self) -> str: ...
    @property
    def metrics(self) -> str: ...
    @property
    def metrics_secure(self) -> bool: ...
    @property
    def metrics_cert_path(self) -> str: ...
    @property
    def profiler(self) -> str: ...


def check_endpoints(options: EndpointOptions) -> None:
    """Raise CommandError for a malformed listen address, or options that need others."""
    if options.metrics_secure and not options.metrics:
        raise CommandError("--metrics-secure needs --metrics [HOST]:PORT")
    if options.metrics_cert_path and not options.metrics_secure:
        raise CommandError("--metrics-cert-path needs --metrics-secure")
    addresses = {"--health": options.health, "--metrics": options.metrics, "--profiler": options.profiler}
    for option, address in addresses.items():
        try:
            if address:
                parse_address(address)
        except ValueError as error:
            raise CommandError(f"{option}: {error}") from None


def metrics_of(options: EndpointOptions) -> str | MetricsOptions:
    """Return the metrics endpoint of a manager."""
    if not options.metrics_secure:
        return options.metrics
    return MetricsOptions(options.metrics, certificates=options.metrics_cert_path)


def _text(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)
