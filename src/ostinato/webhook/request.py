"""Admission requests: the request of an AdmissionReview.

A hook with a parameter `request` receives it: user, operation, dry run. `request.warn(text)` returns a warning to the
client, `request.audit(key, value)` adds an audit annotation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from ostinato.api.gvk import GroupVersionKind, GroupVersionResource
from ostinato.api.wire.json import DecodeError, decode_json

OPERATIONS: Final = ("CREATE", "UPDATE", "DELETE", "CONNECT")

_VERSION: Final = "admission.k8s.io/v1"


class ReviewError(Exception):
    """A review is invalid. `uid` and `api_version` are those of the review, if known."""

    def __init__(self, message: str, *, code: int = 400, uid: str = "", api_version: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.uid = uid
        self.api_version = api_version


class UserInfo(msgspec.Struct, frozen=True):
    """The authenticated user of the request."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, Sequence[str]] = {}


class AdmissionRequest:
    """One admission request.

    - `object`, `old_object`: the JSON as received, `b""` if absent.
    - `operation`: CREATE, UPDATE, DELETE or CONNECT.
    - `kind`, `resource`: in the version of the hook's rules; `request_kind`, `request_resource`: as the client sent it.
    - `name`: empty if the server has yet to generate it.
    - `dry_run`: the object will not be persisted; side effects are forbidden.
    """

    def __init__(self, wire: _Request) -> None:
        self.uid = wire.uid
        self.kind = GroupVersionKind(wire.kind.group, wire.kind.version, wire.kind.kind)
        self.resource = wire.resource.to_gvr()
        self.subresource = wire.sub_resource
        kind, resource = wire.request_kind or wire.kind, wire.request_resource or wire.resource
        self.request_kind = GroupVersionKind(kind.group, kind.version, kind.kind)
        self.request_resource = resource.to_gvr()
        self.request_subresource = wire.request_sub_resource
        self.name = wire.name
        self.namespace = wire.namespace
        self.operation = wire.operation
        self.user = wire.user_info.read()
        self.dry_run = bool(wire.dry_run)
        self.object = _present(wire.object)
        self.old_object = _present(wire.old_object)
        self._options = _present(wire.options)
        self.warnings: list[str] = []
        self.audit_annotations: dict[str, str] = {}

    @property
    def options(self) -> dict[str, Any]:
        """The CreateOptions, UpdateOptions, PatchOptions or DeleteOptions of the request; {} if absent."""
        try:
            options = decode_json(self._options) if self._options else {}
        except DecodeError:
            return {}
        return options if isinstance(options, dict) else {}

    def warn(self, text: str) -> None:
        """Return a warning to the client, whether the request is allowed or not."""
        self.warnings.append(text)

    def audit(self, key: str, value: str) -> None:
        """Add an audit annotation; the server prefixes the key with the webhook's name."""
        self.audit_annotations[key] = value

    def __str__(self) -> str:
        name = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.operation} of {self.kind.kind} {name or '(name to be generated)'}"


def read_review(body: bytes) -> AdmissionRequest:
    """Decode an AdmissionReview. Raises ReviewError if it is invalid."""
    if not body:
        raise ReviewError("request body is empty")
    try:
        review = _decoder.decode(body)
    except RecursionError:
        raise ReviewError("the review is nested too deeply") from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ReviewError(f"invalid AdmissionReview: {error}") from None
    uid = review.request.uid if review.request is not None else ""
    if (review.kind or "AdmissionReview") != "AdmissionReview":
        raise ReviewError(f"expected an AdmissionReview, got {review.api_version}, Kind={review.kind}", uid=uid)
    if (review.api_version or _VERSION) != _VERSION:
        raise ReviewError(
            f"unsupported AdmissionReview version {review.api_version}, only {_VERSION}; "
            'set admissionReviewVersions to ["v1"] in the webhook configuration',
            uid=uid,
            api_version=review.api_version,
        )
    if review.request is None:
        raise ReviewError("invalid AdmissionReview: no request")
    return AdmissionRequest(review.request)


class _Kind(msgspec.Struct):
    group: str = ""
    version: str = ""
    kind: str = ""


class _Resource(msgspec.Struct):
    group: str = ""
    version: str = ""
    resource: str = ""

    def to_gvr(self) -> GroupVersionResource:
        return GroupVersionResource(self.group, self.version, self.resource)


class _UserInfo(msgspec.Struct):
    username: str = ""
    uid: str = ""
    groups: list[str] | None = None
    extra: dict[str, list[str] | None] | None = None

    def read(self) -> UserInfo:
        extra = {key: values or [] for key, values in (self.extra or {}).items()}
        return UserInfo(self.username, self.uid, tuple(self.groups or ()), extra)


class _Request(msgspec.Struct, rename="camel"):
    uid: str = ""
    kind: _Kind = msgspec.field(default_factory=_Kind)
    resource: _Resource = msgspec.field(default_factory=_Resource)
    sub_resource: str = ""
    request_kind: _Kind | None = None
    request_resource: _Resource | None = None
    request_sub_resource: str = ""
    name: str = ""
    namespace: str = ""
    operation: str = ""
    user_info: _UserInfo = msgspec.field(default_factory=_UserInfo)
    object: msgspec.Raw = msgspec.Raw()
    old_object: msgspec.Raw = msgspec.Raw()
    dry_run: bool | None = None
    options: msgspec.Raw = msgspec.Raw()


class _Review(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    request: _Request | None = None


_decoder = msgspec.json.Decoder(_Review)


def _present(raw: msgspec.Raw) -> bytes:
    data = bytes(raw)
    return b"" if data == b"null" else data
