"""Errors of HTTP requests. Messages never contain headers, which may be secret."""

from __future__ import annotations

import ssl

from ostinato.client.http.connection import ConnectionClosed
from ostinato.client.transport.protocol import ConnectionLost, RequestTimedOut, TransportError, Unreachable
from ostinato.http.errors import InvalidHttp


def failure(error: BaseException, what: str, when: str = "") -> TransportError:
    """Return the `TransportError` for an error on an open connection. `what`: method and path of the request."""
    when = f" {when}" if when else ""
    match error:
        case TransportError():
            return error
        case ConnectionClosed():
            return ConnectionLost(f"{what}: the server closed the connection{when}")
        case InvalidHttp():
            return ConnectionLost(f"{what}: the response is not valid HTTP")
        case ssl.SSLError() if _is_alert(error):
            alert = error.reason.partition("ALERT_")[2].replace("_", " ").lower()
            return ConnectionLost(
                f"{what}: the server ended the TLS connection{when}: {alert}; "
                "check client-certificate and client-key of the configuration"
            )
        case TimeoutError():
            return RequestTimedOut(f"{what}: timed out{when or ' while waiting for the response'}")
        case OSError():
            return ConnectionLost(f"{what}: the connection was lost{when}: {reason_of(error)}")
        case _:
            return ConnectionLost(f"{what}: the connection was lost{when}: {type(error).__name__}")


def is_reset(error: BaseException) -> bool:
    """Whether the server closed or reset an open connection, so that a retry may succeed.

    Not after a TLS alert: a server that rejects the client certificate rejects it again.
    """
    return (
        isinstance(error, ConnectionClosed | OSError)
        and not isinstance(error, InvalidHttp | TimeoutError)
        and not _is_alert(error)
    )


def unreachable(error: OSError, what: str) -> Unreachable:
    return Unreachable(f"{what}: the server cannot be reached: {reason_of(error)}")


def untrusted(error: BaseException, what: str) -> Unreachable:
    """Return the error for a server certificate that cannot be verified."""
    reason = getattr(error, "verify_message", "") or "verification failed"
    return Unreachable(
        f"{what}: cannot verify the server's certificate: {reason}; "
        "check certificate-authority and tls-server-name of the configuration"
    )


def without_tls(error: ssl.SSLError, what: str) -> Unreachable:
    """Return the error for a failed TLS handshake."""
    return Unreachable(f"{what}: TLS handshake failed: {error.reason or 'unknown reason'}")


def _is_alert(error: BaseException) -> bool:
    return isinstance(error, ssl.SSLError) and "ALERT_" in (error.reason or "")


def reason_of(error: OSError) -> str:
    return error.strerror or str(error) or type(error).__name__
