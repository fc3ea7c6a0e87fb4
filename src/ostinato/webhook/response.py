"""Admission responses: allowed with an optional patch, or denied with a Status.

Warnings are limited to what API servers pass on: without control characters, for which the server would drop the
warning, and within the size of the response headers.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from ostinato.api.errors import APIError, Invalid
from ostinato.api.gvk import GroupKind
from ostinato.api.validation.field_errors import FieldError, joined

MOST_WARNINGS_LENGTH: Final = 4096  # characters in total; beyond that servers truncate each to LONGEST_WARNING
LONGEST_WARNING: Final = 256


class Denied(Exception):  # noqa: N818 - named after the decision
    """Raised by a hook to reject the request: `raise Denied("replicas must be even")`.

    With field errors the response is 422 Invalid, in the form of the server's own validation; with a string it is 403
    Forbidden. For any other status, raise an `ostinato.api.errors.APIError`.
    """

    def __init__(self, *reasons: str | FieldError) -> None:
        super().__init__(*reasons)
        self.texts = tuple(reason for reason in reasons if isinstance(reason, str))
        self.errors = tuple(reason for reason in reasons if isinstance(reason, FieldError))

    def status(self, kind: GroupKind, name: str) -> dict[str, Any]:
        """Return the Status for the client."""
        if self.errors and not self.texts:
            return Invalid.of(kind, name, self.errors).to_dict()
        message = "; ".join((*self.texts, *map(str, self.errors)))
        return _failure(message, 403, "Forbidden")

    def __str__(self) -> str:
        return "; ".join((*self.texts, *([joined(self.errors)] if self.errors else ())))


class AdmissionResponse(msgspec.Struct, frozen=True):
    """The response to one admission request."""

    allowed: bool
    status: Mapping[str, Any]
    patch: Sequence[Mapping[str, Any]] = ()


def allowed(patch: Sequence[Mapping[str, Any]] = ()) -> AdmissionResponse:
    return AdmissionResponse(allowed=True, status={"metadata": {}, "code": 200}, patch=patch)


def denied(status: Mapping[str, Any]) -> AdmissionResponse:
    return AdmissionResponse(allowed=False, status=status)


def errored(code: int, message: str) -> AdmissionResponse:
    """Return a denial because the hook could not decide."""
    return AdmissionResponse(allowed=False, status=_failure(message, code))


def refused(error: APIError) -> AdmissionResponse:
    return AdmissionResponse(allowed=False, status=error.to_dict())


def _failure(message: str, code: int, reason: str = "") -> dict[str, Any]:
    status = {"metadata": {}, "status": "Failure", "message": message, "reason": reason, "code": code}
    return {key: value for key, value in status.items() if value != ""}


def encode_review(
    answer: AdmissionResponse,
    uid: str,
    *,
    warnings: Iterable[str] = (),
    audit: Mapping[str, str] | None = None,
    api_version: str = "",
) -> bytes:
    """Encode the AdmissionReview of the response."""
    response: dict[str, Any] = {"uid": uid, "allowed": answer.allowed, "status": answer.status}
    if answer.patch:
        response["patch"] = base64.b64encode(msgspec.json.encode(answer.patch)).decode("ascii")
        response["patchType"] = "JSONPatch"
    if audit:
        response["auditAnnotations"] = audit
    if shown := sanitize_warnings(warnings):
        response["warnings"] = shown
    envelope = {"kind": "AdmissionReview", "apiVersion": api_version or "admission.k8s.io/v1", "response": response}
    return msgspec.json.encode(envelope)


def sanitize_warnings(warnings: Iterable[str]) -> list[str]:
    """Return the warnings as servers accept them: distinct, single-line, truncated if too long in total."""
    lines = list(dict.fromkeys(filter(None, map(_single_line, warnings))))
    if sum(map(len, lines)) <= MOST_WARNINGS_LENGTH:
        return lines
    most = MOST_WARNINGS_LENGTH // LONGEST_WARNING
    cut = [line if len(line) <= LONGEST_WARNING else line[: LONGEST_WARNING - 1] + "…" for line in lines]
    if len(cut) <= most:
        return cut
    return [*cut[: most - 1], f"… and {len(cut) - most + 1} more warnings"]


def _single_line(text: str) -> str:
    text = text.encode("utf-8", "replace").decode("utf-8")  # lone surrogates
    if text.isprintable():
        return text
    return " ".join("".join(character if character.isprintable() else " " for character in text).split())
