"""Classification of the errors of lists and watches."""

from __future__ import annotations

from ostinato.api.errors import APIError, Expired, Gone, Timeout, TooManyRequests
from ostinato.api.status import RESOURCE_VERSION_TOO_LARGE
from ostinato.client.transport.protocol import TransportError

_TOO_LARGE = "Too large resource version"  # the message of servers that send no cause


class VeryShortWatch(TransportError):  # noqa: N818 - named after the event
    """A watch ended within a second without any event: a proxy on the way may not support watches."""


class ServerRestored(Exception):  # noqa: N818
    """The server's resourceVersion went back: it was restored from a backup, and a relist is necessary."""


def is_expired(error: Exception) -> bool:
    """Whether the server has compacted the requested resourceVersion (410)."""
    return isinstance(error, Expired | Gone)


def is_too_large(error: Exception) -> bool:
    """Whether the server has not reached the requested resourceVersion yet, and may never do so."""
    if not isinstance(error, APIError):
        return False
    if error.has_cause(RESOURCE_VERSION_TOO_LARGE):
        return True
    messages = [error.message, *(cause.message for cause in error.causes)]
    return isinstance(error, Timeout) and any(_TOO_LARGE in message for message in messages)


def is_transient(error: Exception) -> bool:
    """Whether a retry may succeed without a relist: no response, or 429."""
    return isinstance(error, TooManyRequests | TransportError)
