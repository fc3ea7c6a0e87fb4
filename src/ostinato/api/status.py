"""Status: the response to a request that does not return an object.

It has the result and, for failures, a message, a machine-readable reason, and causes per field.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from ostinato.api.validation.field_errors import FieldError

UNEXPECTED_SERVER_RESPONSE: Final = "UnexpectedServerResponse"  # causes that are not about a field
FIELD_MANAGER_CONFLICT: Final = "FieldManagerConflict"
RESOURCE_VERSION_TOO_LARGE: Final = "ResourceVersionTooLarge"


class StatusCause(msgspec.Struct, frozen=True, omit_defaults=True):
    """One cause of a failure: reason, message and field."""

    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(msgspec.Struct, frozen=True, omit_defaults=True):
    """The object of a failed request. `kind` is the resource ("pods"); for Invalid the kind ("Pod")."""

    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[StatusCause, ...] = ()
    retry_after_seconds: int = msgspec.field(name="retryAfterSeconds", default=0)

    def to_dict(self) -> dict[str, Any]:
        details: dict[str, Any] = msgspec.to_builtins(self)
        if self.causes:
            details["causes"] = list(details["causes"])
        return details


class Status(msgspec.Struct, frozen=True):
    """A Status object of meta/v1."""

    status: str = "Failure"
    message: str = ""
    reason: str = ""
    details: StatusDetails | None = None
    code: int = 0
    metadata: Mapping[str, Any] = {}

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form: keys in the order of kube-apiserver, empty ones omitted."""
        answer: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": dict(self.metadata)}
        for key in ("status", "message", "reason"):
            if value := getattr(self, key):
                answer[key] = value
        if self.details is not None:
            answer["details"] = self.details.to_dict()
        if self.code:
            answer["code"] = self.code
        return answer

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> Status:
        """Decode the JSON form; fields of the wrong type are ignored, so that an error is always reported."""
        details = raw.get("details")
        return cls(
            status=_text(raw, "status"),
            message=_text(raw, "message"),
            reason=_text(raw, "reason"),
            details=_details(details) if isinstance(details, Mapping) else None,
            code=_number(raw, "code"),
            metadata=metadata if isinstance(metadata := raw.get("metadata"), dict) else {},
        )


def causes(errors: Iterable[FieldError]) -> tuple[StatusCause, ...]:
    """Return a cause for each field error, duplicates included."""
    return tuple(StatusCause(str(error.type), error.body, error.field) for error in errors)


def _details(raw: Mapping[str, Any]) -> StatusDetails:
    items = raw.get("causes")
    return StatusDetails(
        name=_text(raw, "name"),
        group=_text(raw, "group"),
        kind=_text(raw, "kind"),
        uid=_text(raw, "uid"),
        causes=tuple(
            StatusCause(_text(item, "reason"), _text(item, "message"), _text(item, "field"))
            for item in (items if isinstance(items, list) else ())
            if isinstance(item, Mapping)
        ),
        retry_after_seconds=_number(raw, "retryAfterSeconds"),
    )


def _text(raw: Mapping[str, Any], key: str) -> str:
    value = raw.get(key)
    return value if isinstance(value, str) else ""


def _number(raw: Mapping[str, Any], key: str) -> int:
    value = raw.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
