"""Exchange: sends one request, raises error responses as exceptions, and reports warnings.

- A status other than 2xx is an `APIError`, with the server's message, or a generic one if the body is not a Status.
- So is a 2xx with a Status of `Failure`.
- A 404 that concerns the kind and not an object is `NoSuchKind`: the resource definition is missing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import msgspec

from ostinato.api.errors import APIError, NotFound, Unknown, from_response
from ostinato.api.gvk import GroupResource, GroupVersionKind
from ostinato.api.object import KindInfo
from ostinato.api.status import UNEXPECTED_SERVER_RESPONSE, Status, StatusDetails
from ostinato.api.text.go_format import quote
from ostinato.client.transport.protocol import Request, Response, Transport
from ostinato.client.transport.retry_policy import retry_after
from ostinato.client.views import JSON

WarningHandler = Callable[[str], object]
"""Called with the text of each `Warning` header of a response."""

_DECLARED = ("status", "scale")  # subresources that a kind has only if its definition declares them
_MAX_CACHED = 1000  # texts that are logged only once; beyond that every occurrence is
_logger = logging.getLogger("ostinato.client")


class NoSuchKind(NotFound):
    """The server does not serve this kind in this version."""

    @classmethod
    def of_kind(cls, gvk: GroupVersionKind, question: str = "") -> NoSuchKind:
        message = f"no matches for kind {quote(gvk.kind)} in version {quote(gvk.api_version)}{question}"
        return cls._make(message, StatusDetails(group=gvk.group, kind=gvk.kind))


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A request, and the resource it concerns."""

    method: str
    path: str
    query: Sequence[tuple[str, str]] = ()
    body: bytes = b""
    content_type: str = JSON
    accept: str = JSON
    headers: Sequence[tuple[str, str]] = ()
    stream: bool = False
    timeout: float | None = None
    info: KindInfo | None = None  # of the kind it concerns, if any
    name: str = ""  # of the object
    subresource: str = ""

    def request(self) -> Request:
        headers: Sequence[tuple[str, str]] = _headers(self.accept, self.content_type if self.body else "")
        if self.headers:
            headers = (*headers, *self.headers)
        query = self.query
        if self.timeout is not None and not self.stream:  # so that the server stops when the client does
            query = [*query, ("timeout", f"{self.timeout:.3f}s")]
        return Request(self.method, self.path, query, headers, self.body, self.stream, self.timeout)


class Exchange:
    def __init__(
        self,
        transport: Transport,
        warn: WarningHandler | None = None,
        on_missing_kind: Callable[[GroupVersionKind], object] | None = None,
    ) -> None:
        """
        - `warn`: receives the server's warnings. Defaults to `LogWarnings`.
        - `on_missing_kind`: called when the server does not serve a kind any more. Defaults to none.
        """
        self.transport = transport
        self._warn = warn or LogWarnings()
        self._on_missing_kind = on_missing_kind

    async def open(self, call: Call) -> Response:
        """Return a successful response, whose body is still to be read."""
        response = await self.transport.request(call.request())
        for warning in response.warnings:
            self._warn(warning)
        if 200 <= response.status < 300:
            return response
        raise self._error(call, response, await response.read())

    async def send(self, call: Call) -> bytes:
        """Return the body of a successful response."""
        response = await self.transport.request(call.request())
        for warning in response.warnings:
            self._warn(warning)
        body = await response.read()
        if not 200 <= response.status < 300:
            raise self._error(call, response, body)
        if b'"kind":"Status"' in body[:64]:
            _check_success(call, response, body)
        elif not body:
            raise Unknown.of(f"{call.method} {call.path}: empty response body", response.status)
        return body

    def _error(self, call: Call, response: Response, body: bytes) -> APIError:
        error = response_error(call, response.status, response.headers, body)
        if isinstance(error, NoSuchKind) and call.info is not None and self._on_missing_kind is not None:
            self._on_missing_kind(call.info.gvk)
        return error


class LogWarnings:
    """Logs each text once."""

    def __init__(self) -> None:
        self._logged: set[str] = set()

    def __call__(self, text: str) -> None:
        if text not in self._logged:
            if len(self._logged) < _MAX_CACHED:
                self._logged.add(text)
            _logger.warning("warning from the server text=%s", text)


@lru_cache(maxsize=256)
def _headers(accept: str, content_type: str) -> tuple[tuple[str, str], ...]:
    """Headers of a request; cached, as there are few combinations. `content_type`: "" without a body."""
    accepted = ("Accept", accept)
    return (accepted, ("Content-Type", content_type)) if content_type else (accepted,)


def response_error(call: Call, code: int, headers: Mapping[str, str], body: bytes) -> APIError:
    """Return the error for an unsuccessful response."""
    error = from_response(
        code,
        body,
        verb=call.method,
        resource=call.info.gvr.group_resource if call.info else GroupResource("", ""),
        name=call.name,
        content_type=headers.get("content-type", ""),
        retry_after=int(retry_after(headers) or 0),
    )
    if code == 404 and call.info is not None and _is_about_no_object(error):
        if not call.subresource:
            return _no_kind(call.info)
        if call.subresource in _DECLARED:
            return _no_subresource(call, call.info)
    return error


def _no_kind(info: KindInfo) -> NoSuchKind:
    question = f"; is its definition {info.plural}.{info.gvk.group} installed?" if "." in info.gvk.group else ""
    return NoSuchKind.of_kind(info.gvk, question)


def _no_subresource(call: Call, info: KindInfo) -> NotFound:
    """Return a specific error: the server's own only says that the requested resource was not found."""
    message = f"{info.gvk.kind} {call.name}: the kind has no subresource {quote(call.subresource)}"
    if "." in info.gvk.group:
        message += f"; declare it in the definition {info.plural}.{info.gvk.group}"
    return NotFound(Status(message=message, reason="NotFound", details=StatusDetails(group=info.gvk.group), code=404))


def _is_about_no_object(error: APIError) -> bool:
    return not error.details.name or error.has_cause(UNEXPECTED_SERVER_RESPONSE)


def _check_success(call: Call, response: Response, body: bytes) -> None:
    if Status.from_dict(msgspec.json.decode(body)).status != "Success":
        raise response_error(call, response.status, response.headers, body)
