"""API errors: a class per reason of a failed request, with the server's message.

- A server raises them (`raise NotFound.of(pods, "a")`) and responds with `to_dict()`; a client decodes the response
  to the same class (`from_response`), so that `except NotFound:` is the same on both sides.
- `str()` is the server's message.
- The class depends on the reason; on the HTTP code only if the reason is unknown. The codes 413 and 429 take precedence
  over the reason, as clients act on them.
"""

# The classes have the names of the reasons, which do not end in "Error".
# ruff: noqa: N818

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, Self

import msgspec

from ostinato.api.gvk import GroupKind, GroupResource
from ostinato.api.status import (
    RESOURCE_VERSION_TOO_LARGE,
    UNEXPECTED_SERVER_RESPONSE,
    Status,
    StatusCause,
    StatusDetails,
    causes,
)
from ostinato.api.text.go_format import quote
from ostinato.api.validation.field_errors import FieldError, joined

NAMESPACE_TERMINATING: Final = "NamespaceTerminating"
"""Cause of a `Forbidden`: no objects can be created in a namespace that is being deleted."""

_NO_RESOURCE: Final = GroupResource("", "")
_LONGEST_PLAIN_BODY: Final = 2048  # bytes of a body that is not a Status, quoted in the message


class APIError(Exception):
    """A request failed at the API server. Catch this for all reasons, a subclass for one."""

    _reason: ClassVar[str] = ""
    _code: ClassVar[int] = 500

    def __init__(self, status: Status) -> None:
        super().__init__(status)
        self.status = status

    @classmethod
    def _make(cls, message: str, details: StatusDetails | None = None, *, code: int = 0) -> Self:
        return cls(Status(message=message, reason=cls._reason, details=details, code=code or cls._code))

    @property
    def code(self) -> int:
        """The HTTP status code."""
        return self.status.code

    @property
    def reason(self) -> str:
        """The machine-readable reason; "" if the server sent none."""
        return self.status.reason

    @property
    def message(self) -> str:
        return self.status.message

    @property
    def details(self) -> StatusDetails:
        """The object of the request and the causes; empty if the server sent none."""
        return self.status.details or StatusDetails()

    @property
    def causes(self) -> tuple[StatusCause, ...]:
        return self.details.causes

    def has_cause(self, reason: str) -> bool:
        return any(cause.reason == reason for cause in self.causes)

    @property
    def retry_after(self) -> int | None:
        """Seconds after which to retry; None if the server does not suggest it."""
        if self.status.details is None:
            return None
        seconds = self.status.details.retry_after_seconds
        return seconds if seconds > 0 or self.reason == ServerTimeout._reason else None

    def to_dict(self) -> dict[str, Any]:
        """Return the response body: a Status as kube-apiserver writes it."""
        return self.status.to_dict()

    def __str__(self) -> str:
        return self.message

    def __repr__(self) -> str:
        """Object without the message, which may quote values of a Secret."""
        about = f" {self.details.kind}" if self.details.kind else ""
        name = f" {quote(self.details.name)}" if self.details.name else ""
        return f"<{type(self).__name__} {self.code}{about}{name}>"


class BadRequest(APIError):
    _reason, _code = "BadRequest", 400

    @classmethod
    def of(cls, message: str) -> Self:
        return cls._make(message)


class Unauthorized(APIError):
    _reason, _code = "Unauthorized", 401

    @classmethod
    def of(cls, message: str = "") -> Self:
        return cls._make(message or "not authorized")


class Forbidden(APIError):
    _reason, _code = "Forbidden", 403

    @classmethod
    def of(cls, resource: GroupResource, name: str, why: object) -> Self:
        if resource == _NO_RESOURCE:
            about = "forbidden"
        else:
            about = f"{resource} {quote(name)} is forbidden" if name else f"{resource} is forbidden"
        return cls._make(f"{about}: {why}", _about(resource, name))


class NotFound(APIError):
    _reason, _code = "NotFound", 404

    @classmethod
    def of(cls, resource: GroupResource, name: str) -> Self:
        return cls._make(f"{resource} {quote(name)} not found", _about(resource, name))


class MethodNotAllowed(APIError):
    _reason, _code = "MethodNotAllowed", 405

    @classmethod
    def of(cls, resource: GroupResource, action: str) -> Self:
        message = f"{action} is not supported on resources of kind {quote(str(resource))}"
        return cls._make(message, _about(resource))


class NotAcceptable(APIError):
    """The server supports none of the media types that the client accepts."""

    _reason, _code = "NotAcceptable", 406

    @classmethod
    def of(cls, accepted: Sequence[str], *, converting_to: str = "") -> Self:
        what = f" when converting to {converting_to}" if converting_to else ""
        return cls._make(f"only the following media types are accepted{what}: {', '.join(accepted)}")


class AlreadyExists(APIError):
    _reason, _code = "AlreadyExists", 409

    @classmethod
    def of(cls, resource: GroupResource, name: str) -> Self:
        return cls._make(f"{resource} {quote(name)} already exists", _about(resource, name))

    @classmethod
    def name_not_generated(cls, resource: GroupResource, name: str, retry_after: int) -> Self:
        """The server could not generate a unique name for `generateName`."""
        message = (
            f"{resource} {quote(name)} already exists, the server was not able to generate a unique name for the object"
        )
        return cls._make(message, _about(resource, name, retry_after=retry_after))


class Conflict(APIError):
    _reason, _code = "Conflict", 409

    @classmethod
    def of(cls, resource: GroupResource, name: str, why: object) -> Self:
        message = f"Operation cannot be fulfilled on {resource} {quote(name)}: {why}"
        return cls._make(message, _about(resource, name))

    @classmethod
    def of_apply(cls, causes: Sequence[StatusCause], message: str) -> Self:
        """An apply would change fields of other managers; one cause per field."""
        return cls._make(message, StatusDetails(causes=tuple(causes)))


class Gone(APIError):
    _reason, _code = "Gone", 410

    @classmethod
    def of(cls, message: str) -> Self:
        return cls._make(message)


class Expired(APIError):
    """The resourceVersion or the continue token is too old: relist."""

    _reason, _code = "Expired", 410

    @classmethod
    def of(cls, message: str) -> Self:
        return cls._make(message)


class RequestEntityTooLarge(APIError):
    _reason, _code = "RequestEntityTooLarge", 413

    @classmethod
    def of(cls, message: str) -> Self:
        return cls._make(f"Request entity too large: {message}")


class UnsupportedMediaType(APIError):
    """The server does not support the content type of the request."""

    _reason, _code = "UnsupportedMediaType", 415

    @classmethod
    def of(cls, accepted: Sequence[str]) -> Self:
        return cls._make(
            "the body of the request was in an unknown format - accepted media types include: " + ", ".join(accepted)
        )


class Invalid(APIError):
    """The object failed validation; the causes name the fields."""

    _reason, _code = "Invalid", 422

    @classmethod
    def of(cls, kind: GroupKind, name: str, errors: Sequence[FieldError]) -> Self:
        message = f"{kind} {quote(name)} is invalid"
        if errors:
            message = f"{message}: {joined(errors)}"
        details = StatusDetails(name=name, group=kind.group, kind=kind.kind, causes=causes(errors))
        return cls._make(message, details)


class TooManyRequests(APIError):
    _reason, _code = "TooManyRequests", 429

    @classmethod
    def of(cls, message: str, retry_after: int) -> Self:
        return cls._make(message, StatusDetails(retry_after_seconds=retry_after))

    @classmethod
    def overloaded(cls, message: str) -> Self:
        """The server is overloaded; the delay is in the Retry-After header only."""
        return cls._make(f"Too many requests: {message}")


class InternalError(APIError):
    _reason, _code = "InternalError", 500

    @classmethod
    def of(cls, why: object) -> Self:
        return cls._make(f"Internal error occurred: {why}", StatusDetails(causes=(StatusCause(message=str(why)),)))


class ServerTimeout(APIError):
    """The server could not process the request in time and made no change: retry."""

    _reason, _code = "ServerTimeout", 500

    @classmethod
    def of(cls, resource: GroupResource, operation: str, retry_after: int) -> Self:
        message = f"The {operation} operation against {resource} could not be completed at this time, please try again."
        return cls._make(message, _about(resource, operation, retry_after=retry_after))


class StorageReadError(APIError):
    """The stored object cannot be decoded."""

    _reason, _code = "StorageReadError", 500

    @classmethod
    def of(cls, message: str) -> Self:
        return cls._make(message)


class ServiceUnavailable(APIError):
    _reason, _code = "ServiceUnavailable", 503

    @classmethod
    def of(cls, message: str) -> Self:
        return cls._make(message)


class Timeout(APIError):
    """The server did not finish in time; it may still process the request."""

    _reason, _code = "Timeout", 504

    @classmethod
    def of(cls, message: str, retry_after: int) -> Self:
        return cls._make(f"Timeout: {message}", StatusDetails(retry_after_seconds=retry_after))

    @classmethod
    def resource_version_too_large(cls, wanted: int, current: int, retry_after: int = 1) -> Self:
        """A read requests a resourceVersion that this server has not reached."""
        details = StatusDetails(
            causes=(StatusCause(RESOURCE_VERSION_TOO_LARGE, "Too large resource version"),),
            retry_after_seconds=retry_after,
        )
        return cls._make(f"Timeout: Too large resource version: {wanted}, current: {current}", details)


class Unknown(APIError):
    """The server sent no reason, or an unknown one."""

    @classmethod
    def of(cls, message: str, code: int = 500) -> Self:
        return cls._make(message, code=code)


_CLASSES: Final[tuple[type[APIError], ...]] = (
    BadRequest,
    Unauthorized,
    Forbidden,
    NotFound,
    MethodNotAllowed,
    NotAcceptable,
    Conflict,
    AlreadyExists,
    Gone,
    Expired,
    RequestEntityTooLarge,
    UnsupportedMediaType,
    Invalid,
    TooManyRequests,
    InternalError,
    ServerTimeout,
    StorageReadError,
    ServiceUnavailable,
    Timeout,
)
_BY_REASON: Final = {cls._reason: cls for cls in _CLASSES}
_BY_CODE: Final = {cls._code: cls for cls in reversed(_CLASSES)}  # of several with the same code, the first
_CODE_DECIDES: Final = frozenset({RequestEntityTooLarge._code, TooManyRequests._code})

_GENERIC_MESSAGES: Final = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    409: "the server reported a conflict",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}


def from_status(raw: Mapping[str, Any] | Status, http_code: int = 0) -> APIError:
    """Return the error for a Status object; the HTTP code is used if the object has none."""
    status = raw if isinstance(raw, Status) else Status.from_dict(raw)
    if not status.code and http_code:
        status = msgspec.structs.replace(status, code=http_code)
    if status.code in _CODE_DECIDES:
        return _BY_CODE[status.code](status)
    kind = _BY_REASON.get(status.reason) or _BY_CODE.get(status.code, Unknown)
    return kind(status)


def from_response(
    http_code: int,
    body: bytes,
    *,
    verb: str = "",
    resource: GroupResource = _NO_RESOURCE,
    name: str = "",
    content_type: str = "",
    retry_after: int = 0,
) -> APIError:
    """Return the error for a failed response, from its Status, or from the HTTP code if the body is not a Status.

    - `verb`: the HTTP method.
    - `content_type`: a body that is not a Status is quoted if its type is text or unknown.
    - `retry_after`: seconds of the Retry-After header.
    """
    try:
        raw = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raw = None
    if isinstance(raw, dict) and raw.get("kind") == "Status" and raw.get("apiVersion") in ("v1", "meta.k8s.io/v1"):
        return from_status(raw, http_code)
    message = "unknown"
    if not content_type or content_type.startswith("text/"):
        message = body[:_LONGEST_PLAIN_BODY].decode(errors="replace").strip()
    return generic(http_code, verb, resource, name, message, retry_after=retry_after)


def from_stream(data: bytes) -> APIError:
    """Return the error for the Status at the end of a stream. Nodes send it without `kind`."""
    try:
        raw = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raw = None
    if isinstance(raw, dict) and raw.get("status") in ("Success", "Failure"):
        return from_status(raw, 500)
    return from_response(500, data)


def generic(
    code: int,
    verb: str,
    resource: GroupResource = _NO_RESOURCE,
    name: str = "",
    server_message: str = "",
    *,
    retry_after: int = 0,
    unexpected: bool = True,
) -> APIError:
    """Return the error for an HTTP code without a Status; `unexpected`: the response may be from a proxy."""
    reason, message = _generic_reason(code, verb), _generic_message(code, server_message)
    if resource != _NO_RESOURCE:
        about = f"{verb.lower()} {resource} {name}" if name else f"{verb.lower()} {resource}"
        message = f"{message} ({about})"
    why = (StatusCause(UNEXPECTED_SERVER_RESPONSE, server_message),) if unexpected else ()
    details = _about(resource, name, causes=why, retry_after=retry_after)
    return from_status(Status(message=message, reason=reason, details=details, code=code))


def _generic_reason(code: int, verb: str) -> str:
    if code == 409 and verb == "POST":
        return AlreadyExists._reason
    if code in _GENERIC_MESSAGES or code in (403, 406, 415):
        return _BY_CODE[code]._reason
    return InternalError._reason if code >= 500 else ""


def _generic_message(code: int, server_message: str) -> str:
    if code in (403, 415):  # the server's message names the user, or the supported types
        return server_message
    if code == 406:
        unable = "the server was unable to respond with a content type that the client supports"
        return unable if server_message in ("", "unknown") else server_message
    if code in _GENERIC_MESSAGES:
        return _GENERIC_MESSAGES[code]
    if code >= 500:
        return f"an error on the server ({quote(server_message)}) has prevented the request from succeeding"
    return f"the server responded with the status code {code} but did not return more information"


def _about(
    resource: GroupResource, name: str = "", *, causes: tuple[StatusCause, ...] = (), retry_after: int = 0
) -> StatusDetails:
    return StatusDetails(
        name=name, group=resource.group, kind=resource.resource, causes=causes, retry_after_seconds=retry_after
    )
