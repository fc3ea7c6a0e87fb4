"""An answer over HTTP, as the transport protocol has it; and aiohttp's errors in the words of ours."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import NamedTuple

import aiohttp

from ostinato.client.closable import Closable
from ostinato.client.transport import (
    LONGEST_ANSWER,
    AnswerTooLarge,
    ConnectionLost,
    RequestTimedOut,
    TransportError,
)
from ostinato.client.warning import warning_texts
from ostinato.world import Clock

_DRAINED = 2048  # bytes of an answer nobody wants that are read, so that its connection can serve again


OnClose = Callable[[int | None], None]
"""Told once, when an answer is closed: how many bytes it had, None if it was not read to its end."""


class Bounds(NamedTuple):
    """When the reading of an answer must be done, on the clock, and how many bytes `read` collects."""

    until: float | None = None
    longest: int = LONGEST_ANSWER


class HttpAnswer(Closable):
    """A Response. `what` is the request in words, without its query: for messages."""

    __slots__ = ("_answer", "_clock", "_on_close", "_size", "bounds", "headers", "status", "warnings", "what")

    def __init__(self, answer: aiohttp.ClientResponse, what: str, clock: Clock, on_close: OnClose) -> None:
        self._answer = answer
        self._clock = clock
        self._on_close: OnClose | None = on_close
        self._size = 0
        self.what = what
        self.bounds = Bounds()
        self.status = answer.status
        headers: dict[str, str] = {}
        for name, value in answer.headers.items():
            headers.setdefault(name.lower(), value)
        self.headers: Mapping[str, str] = headers
        self.warnings: Sequence[str] = warning_texts(answer.headers.getall("Warning")) if "warning" in headers else ()

    async def read(self) -> bytes:
        parts: list[bytes] = []
        longest = self.bounds.longest
        async for chunk in self.chunks():
            parts.append(chunk)
            if self._size > longest:
                self.close()
                raise AnswerTooLarge(f"{self.what}: the answer is longer than {longest} bytes: ask for it in pages")
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def chunks(self) -> AsyncIterator[bytes]:
        try:
            while chunk := await self._next():
                self._size += len(chunk)
                yield chunk
        finally:
            self.close()

    async def _next(self) -> bytes:
        content = self._answer.content
        try:
            if self.bounds.until is None:
                return await content.readany()
            async with self._clock.deadline(self.bounds.until):
                return await content.readany()
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise failure(error, self.what, "while its answer was read") from None

    def close(self) -> None:
        if self._on_close is None:
            return
        tell, self._on_close = self._on_close, None
        complete = self._answer.content.at_eof()
        if complete:
            self._answer.release()  # the connection serves again
        else:
            self._answer.close()
        tell(self._size if complete else None)

    async def drain(self) -> None:
        """Read the rest of a short answer, so that the connection can be used again; drop it otherwise."""
        length = self._answer.content_length
        if length is None or length <= _DRAINED:
            with contextlib.suppress(TransportError):  # nobody wants it
                while self._size <= _DRAINED and (chunk := await self._next()):
                    self._size += len(chunk)
        self.close()


def failure(error: BaseException, what: str, when: str = "") -> TransportError:
    """Our error for one of aiohttp's. It holds nothing of the request, whose headers may have been secret."""
    when = f" {when}" if when else ""
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return untrusted(error.certificate_error, what)
        case aiohttp.ClientConnectorError() if isinstance(error.os_error, ssl.SSLError):
            return without_tls(error.os_error, what)
        case aiohttp.ClientHttpProxyError():
            return ConnectionLost(f"{what}: the proxy refused with {error.status}: check proxy-url and its password")
        case aiohttp.ClientProxyConnectionError():
            return ConnectionLost(f"{what}: the proxy cannot be reached: {_reason(error.os_error)}: check proxy-url")
        case aiohttp.ClientConnectorError():
            return ConnectionLost(f"{what}: the server cannot be reached: {_reason(error.os_error)}")
        case aiohttp.ServerDisconnectedError():
            return ConnectionLost(f"{what}: the server closed the connection{when}")
        case aiohttp.ClientResponseError():
            return ConnectionLost(f"{what}: the answer is not HTTP")
        case aiohttp.ConnectionTimeoutError():
            return RequestTimedOut(f"{what}: no connection in time")
        case TimeoutError():
            return RequestTimedOut(f"{what}: timed out{when or ' while an answer was awaited'}")
        case OSError():
            return ConnectionLost(f"{what}: the connection broke{when}: {_reason(error)}")
        case _:
            return ConnectionLost(f"{what}: the connection broke{when}: {type(error).__name__}")


def untrusted(error: BaseException, what: str) -> ConnectionLost:
    """The server's certificate is not accepted."""
    reason = getattr(error, "verify_message", "") or "it cannot be verified"
    return ConnectionLost(
        f"{what}: the server's certificate is not accepted: {reason}: "
        "check certificate-authority and tls-server-name of the configuration"
    )


def without_tls(error: ssl.SSLError, what: str) -> ConnectionLost:
    """No TLS connection could be made."""
    return ConnectionLost(f"{what}: no TLS connection: {error.reason or 'the handshake failed'}")


def closed_by_server() -> Exception:
    """What `failure` tells as a server that closed the connection."""
    return aiohttp.ServerDisconnectedError()


def is_reset(error: BaseException) -> bool:
    """Whether the server went away from a connection that there was: sending once more may help."""
    if isinstance(error, aiohttp.ClientConnectorError | TimeoutError):
        return False
    return isinstance(error, aiohttp.ServerDisconnectedError | aiohttp.ClientOSError | ConnectionError)


def _reason(error: OSError) -> str:
    return error.strerror or type(error).__name__
