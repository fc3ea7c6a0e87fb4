"""The head of an HTTP/1.1 request: request line and headers.

The encoded headers are cached, as callers send the same few sets of headers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from ostinato.client.config.credentials import Credential
from ostinato.client.transport.protocol import Request
from ostinato.http.encoding import field_lines, request_line

Header = tuple[str, str]

_MAX_CACHED: Final = 4096  # nodes of one process share a transport, and each has a header of its own
_OF_THE_CONNECTION: Final = ("host", "content-length", "transfer-encoding")  # set here, never taken from a request
_WITHOUT_BODY: Final = ("GET", "HEAD")


class AddedHeaders(NamedTuple):
    """Headers added to requests that do not set them; the impersonation headers only all together."""

    fixed: Sequence[Header]
    impersonation: Sequence[Header]


class RequestHeads:
    """Encoder of request heads for one server."""

    def __init__(self, added: AddedHeaders, prefix: str, headers: Sequence[Header]) -> None:
        """`prefix`: put before each path. `headers`: those that the route to the server requires, such as `Host`."""
        self._prefix = prefix
        self._headers = headers
        self._added = added
        self._credential: Credential | None = None
        self._written: dict[tuple[Header, ...], bytes] = {}  # by the headers of the request; for _credential only

    def of(self, request: Request, credential: Credential) -> bytes:
        """Encode the head. Raises ValueError if path or headers could be misread as something else."""
        try:
            first = request_line(request.method, self._prefix + request.target)
        except ValueError as error:
            raise ValueError(f"{request.method} {request.path!r}: {error}") from None
        headers = tuple(request.headers)
        if credential is not self._credential:
            self._credential = credential
            self._written.clear()
        written = self._written.get(headers)
        if written is None:
            if len(self._written) >= _MAX_CACHED:
                del self._written[next(iter(self._written))]
            written = self._written[headers] = self._write(request, credential)
        body = request.body
        if not isinstance(body, bytes):
            return b"%b\r\n%bTransfer-Encoding: chunked\r\n\r\n" % (first, written)
        if not body and request.method in _WITHOUT_BODY:
            return b"%b\r\n%b\r\n" % (first, written)
        return b"%b\r\n%bContent-Length: %d\r\n\r\n" % (first, written, len(body))

    def all(self, headers: Sequence[Header], credential: Credential) -> list[Header]:
        """Return the headers of a request with the added ones."""
        given = {name.lower() for name, _ in headers}
        found = [*self._headers, *((name, value) for name, value in headers if name.lower() not in _OF_THE_CONNECTION)]
        found += [(name, value) for name, value in self._added.fixed if name.lower() not in given]
        if credential.authorization is not None and "authorization" not in given:
            found.append(("Authorization", credential.authorization.reveal()))
        if "impersonate-user" not in given:
            found += self._added.impersonation
        return found

    def _write(self, request: Request, credential: Credential) -> bytes:
        try:
            return field_lines(self.all(request.headers, credential))
        except ValueError as error:
            raise ValueError(f"{request.method} {request.path}: {error}") from None
