"""Status: the answer of an API server that is not the object asked for.

It says whether a request went well, and if not, why: in words, as a reason for programs, and field by field.
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
    """One of several things that went wrong: why, in words, and at which field."""

    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the failed request was about. `kind` holds the resource ("pods"), for Invalid the kind ("Pod")."""

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
    """A Status object: the answer of an API server that is not the object asked for."""

    status: str = "Failure"
    message: str = ""
    reason: str = ""
    details: StatusDetails | None = None
    code: int = 0
    metadata: Mapping[str, Any] = {}

    def to_dict(self) -> dict[str, Any]:
        """The JSON shape, keys in the order in which kube-apiserver writes them, empty ones left out."""
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
        """Read the JSON shape; what has a wrong type counts as absent, for an error should not fail to be told."""
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
    """A cause for each field error, in order, repeated ones too."""
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
