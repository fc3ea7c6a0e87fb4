"""Reviews: decode a webhook's response, with kube-apiserver's messages for an invalid one."""

from __future__ import annotations

from typing import Any, Final

from ostinato.api.gvk import GroupVersionKind
from ostinato.api.wire import DecodeError
from ostinato.server.schema.decoding.builtin import json_type
from ostinato.server.schema.decoding.objects import decode_value, not_registered
from ostinato.server.webhooks.target import CallError, Json

VERSIONS: Final = ("v1", "v1beta1")  # supported review versions
_SCHEME: Final = "pkg/runtime/scheme.go:111"
_GO_TYPES: Final[dict[type, str]] = {bool: "bool", str: "string", list: "[]string", dict: "v1.Status"}


def version_of(versions: list[str]) -> str:
    """The first review version that both sides support, "" if there is none."""
    return next((version for version in versions if version in VERSIONS), "")


def decoded(data: bytes, expected: GroupVersionKind) -> Json:
    """Decode the review in a response; CallError if version or kind differ from the expected ones.

    A review without version and kind is accepted.
    """
    try:
        value = decode_value(data, "json" if data.lstrip()[:1] == b"{" else "yaml")
    except DecodeError as error:
        raise CallError(str(error)) from None
    kind = value.get("kind") or expected.kind
    api_version = value.get("apiVersion") or expected.api_version
    if (kind, api_version) == (expected.kind, expected.api_version):
        return value
    version = api_version.rpartition("/")[2]
    if (kind, api_version) in (
        ("Status", "v1"),
        *((expected.kind, f"{expected.group}/{other}") for other in VERSIONS),
    ):
        why = f"converting ({version}.{kind}) to ({expected.version}.{expected.kind}): unknown conversion"
    else:
        why = not_registered(kind, api_version, _SCHEME)
    raise CallError(why)


def check_kind(review: Json, expected: GroupVersionKind) -> str:
    """The error of a review without apiVersion and kind, "" if it has both."""
    kind, api_version = review.get("kind") or "", review.get("apiVersion") or ""
    if (kind, api_version) == (expected.kind, expected.api_version):
        return ""
    group, _, version = api_version.rpartition("/")
    return f"expected webhook response of {expected}, got {group}/{version}, Kind={kind}"


def field(value: Json, name: str, kind: type, where: str, go_type: str = "") -> Any:
    """A field of a response, None if absent; CallError for another type.

    - `where`: the Go struct and the path of the field, for the message.
    - `go_type`: the Go type of the field. Defaults to that of `kind`.
    """
    found = value.get(name)
    if found is None or isinstance(found, kind):
        return found
    wanted = go_type or _GO_TYPES[kind]
    raise CallError(f"json: cannot unmarshal {json_type(found)} into Go struct field {where}.{name} of type {wanted}")
