"""What the errors of lists and watches mean to a reflector."""

from __future__ import annotations

from ostinato.api.errors import APIError, Expired, Gone, Timeout, TooManyRequests
from ostinato.api.status import RESOURCE_VERSION_TOO_LARGE
from ostinato.client.transport.protocol import TransportError

_TOO_LARGE = "Too large resource version"  # in the words of servers that give no cause


class VeryShortWatch(TransportError):  # noqa: N818 - what happened
    """A watch ended at once and told nothing. Something between here and the server does not let watches through."""


class ServerRestored(Exception):  # noqa: N818
    """The server is at an earlier state than it was: it was restored from a copy. Only a list tells what is there."""


def is_expired(error: Exception) -> bool:
    """Whether the server no longer has the state that it was asked for, or what happened since."""
    return isinstance(error, Expired | Gone)


def is_too_large(error: Exception) -> bool:
    """Whether the server has not seen the state yet that it was asked for, and may never do so."""
    if not isinstance(error, APIError):
        return False
    if error.has_cause(RESOURCE_VERSION_TOO_LARGE):
        return True
    words = [error.message, *(cause.message for cause in error.causes)]
    return isinstance(error, Timeout) and any(_TOO_LARGE in text for text in words)


def is_transient(error: Exception) -> bool:
    """Whether trying the same again later may help, without a list in between: no answer, or too many requests."""
    return isinstance(error, TooManyRequests | TransportError)
