"""Errors of starting a server that its operator can correct."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from ostinato.cli.error import CommandError
from ostinato.cli.options.server import settings as server_options
from ostinato.server.access.authentication.settings import AuthenticationSettingsError
from ostinato.server.state import StateError
from ostinato.server.store.records import UnusableStore


@contextmanager
def startup_errors(listen: str) -> Iterator[None]:
    """Raise CommandError for the errors that the operator can correct. `listen`: the address of the command line."""
    try:
        yield
    except (StateError, AuthenticationSettingsError, UnusableStore) as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            host, port = server_options.address(listen)
            message = f"port {port} on {host} is in use; choose another with --listen, or port 0 for a free one"
            raise CommandError(message) from error
        raise CommandError(f"cannot listen on {listen}: {error.strerror or error}") from error
