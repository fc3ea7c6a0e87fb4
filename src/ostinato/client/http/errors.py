"""What can go wrong with a request over HTTP, in words. They hold nothing of its headers, which may be secret."""

from __future__ import annotations

import ssl

from ostinato.client.http.connection import ConnectionClosed
from ostinato.client.http.message import InvalidHttp
from ostinato.client.transport.protocol import ConnectionLost, RequestTimedOut, TransportError, Unreachable


def failure(error: BaseException, what: str, when: str = "") -> TransportError:
    """What became of a connection that there was. `what` is the request in words, without its query."""
    when = f" {when}" if when else ""
    match error:
        case TransportError():
            return error
        case ConnectionClosed():
            return ConnectionLost(f"{what}: the server closed the connection{when}")
        case InvalidHttp():
            return ConnectionLost(f"{what}: the answer is not HTTP")
        case ssl.SSLError() if _is_alert(error):
            alert = error.reason.partition("ALERT_")[2].replace("_", " ").lower()
            return ConnectionLost(
                f"{what}: the server ended the TLS connection{when}: {alert}: "
                "check client-certificate and client-key of the configuration"
            )
        case TimeoutError():
            return RequestTimedOut(f"{what}: timed out{when or ' while an answer was awaited'}")
        case OSError():
            return ConnectionLost(f"{what}: the connection broke{when}: {reason_of(error)}")
        case _:
            return ConnectionLost(f"{what}: the connection broke{when}: {type(error).__name__}")


def is_reset(error: BaseException) -> bool:
    """Whether the server went away from a connection that there was: sending once more may help.

    It does not when the server says why it goes, as it does about certificates that it does not accept.
    """
    return (
        isinstance(error, ConnectionClosed | OSError) and not isinstance(error, TimeoutError) and not _is_alert(error)
    )


def unreachable(error: OSError, what: str) -> Unreachable:
    return Unreachable(f"{what}: the server cannot be reached: {reason_of(error)}")


def untrusted(error: BaseException, what: str) -> Unreachable:
    """The server's certificate is not accepted."""
    reason = getattr(error, "verify_message", "") or "it cannot be verified"
    return Unreachable(
        f"{what}: the server's certificate is not accepted: {reason}: "
        "check certificate-authority and tls-server-name of the configuration"
    )


def without_tls(error: ssl.SSLError, what: str) -> Unreachable:
    """No TLS connection could be made."""
    return Unreachable(f"{what}: no TLS connection: {error.reason or 'the handshake failed'}")


def _is_alert(error: BaseException) -> bool:
    return isinstance(error, ssl.SSLError) and "ALERT_" in (error.reason or "")


def reason_of(error: OSError) -> str:
    return error.strerror or str(error) or type(error).__name__
