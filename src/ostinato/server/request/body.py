"""Request bodies: decode the object and check its kind against the path."""

from __future__ import annotations

import msgspec

from ostinato.api.errors import BadRequest, Invalid
from ostinato.api.gvk import GroupKind, GroupVersion, GroupVersionKind
from ostinato.api.schema import builtin_schemas
from ostinato.api.text.go_format import quote
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.api.wire import DecodeError, strict_errors
from ostinato.api.wire.duplicate_keys import decode_repeated, repeats_keys
from ostinato.server.request import Request
from ostinato.server.request.negotiate import Media
from ostinato.server.request.options import WriteOptions
from ostinato.server.resources.resource import Resource
from ostinato.server.resources.strategy import Json
from ostinato.server.schema.decoding.builtin import BadValue, TypeMismatch
from ostinato.server.schema.decoding.objects import NO_KIND, decode_value, not_registered

_QUOTED_BYTES = 30  # maximum bytes of a body that an error message quotes
_YAML_PROBLEMS = "yaml: unmarshal errors:\n"


def read(request: Request, resource: Resource, data: bytes, media: Media, options: WriteOptions) -> Json:
    """Decode and default the object in a body; it has kind, apiVersion and metadata.

    Unknown and duplicate fields are handled according to the client's `fieldValidation`.
    """
    value = _decoded(data, media, resource)
    if resource.custom:
        _check_custom_kind(value, resource, data)
    else:
        check_kind(value, resource, data)
    problems: list[str] = []
    if media == "json":
        if repeats_keys(data, value):
            if options.field_validation != "Ignore":
                problems = strict_errors(data, value, None if resource.custom else resource.schema)
            if not resource.custom and resource.schema is not None:
                value = decode_repeated(data, resource.schema)
    elif media == "yaml" and options.field_validation != "Ignore":
        problems = _yaml_problems(data)
    request.sent = lambda: value
    obj, unknown = _shaped(resource, value)
    if options.field_validation != "Ignore":
        known = set(problems)
        problems += [text for text in (f"unknown field {quote(path)}" for path in unknown) if text not in known]
        if problems:
            _report(request, resource, problems, options)
    resource.strategy.default(obj)
    if request.audit is not None:
        request.audit.note_object(resource, obj)
    return obj


def _decoded(data: bytes, media: Media, resource: Resource) -> Json:
    try:
        return decode_value(data, media)
    except DecodeError as error:
        if resource.custom and str(error).startswith(_BAD_NUMBER):  # the kind was decoded
            raise cannot_be_handled(resource, str(error).removeprefix(NO_KIND)) from error
        raise _unrecognized(resource.gvk.kind, str(error), data) from error


def decode(data: bytes, media: Media, kind: str) -> Json:
    """Decode the object in a body that should be of a kind; BadRequest if it cannot be decoded."""
    try:
        return decode_value(data, media)
    except DecodeError as error:
        raise _unrecognized(kind, str(error), data) from error


_BAD_NUMBER = f"{NO_KIND}json: cannot unmarshal number "


def _unrecognized(kind: str, why: str, data: bytes) -> BadRequest:
    return BadRequest.of(f"the object provided is unrecognized (must be of type {kind}): {why} ({_summary(data)})")


def _summary(data: bytes) -> str:
    if not data:
        return "<empty>"
    more = " ..." if len(data) > _QUOTED_BYTES else ""
    head = data[:_QUOTED_BYTES]
    return (head.decode(errors="replace") if data[:1] == b"{" else head.hex()) + more


def is_of_kind(value: Json, resource: Resource) -> bool:
    """Whether an object has the kind and apiVersion of a resource."""
    named = resource.named
    return value.get("kind") == named["kind"] and value.get("apiVersion") == named["apiVersion"]


def check_kind(value: Json, resource: Resource, data: bytes) -> None:
    """Check that the body has the kind and apiVersion of the path, or neither."""
    if is_of_kind(value, resource):
        return
    expected = resource.gvk
    kind, api_version = value.get("kind") or expected.kind, value.get("apiVersion") or expected.api_version
    if kind == expected.kind and api_version == expected.api_version:
        return
    try:
        given = GroupVersion.parse(api_version)
    except ValueError as error:
        raise _unrecognized(expected.kind, str(error), data) from error
    prefix = f"{kind} in version {quote(given.version)} cannot be handled as a {expected.kind}: "
    if not _is_registered(given.kind(kind), expected):
        raise BadRequest.of(prefix + not_registered(kind, api_version))
    if kind != expected.kind:
        group = expected.group.partition(".")[0] or "core"
        raise BadRequest.of(
            f"{prefix}converting ({given.version}.{kind}) to ({group}.{expected.kind}): unknown conversion"
        )
    raise BadRequest.of(
        f"the API version in the data ({api_version}) does not match the expected API version ({expected.api_version})"
    )


def _is_registered(kind: GroupVersionKind, expected: GroupVersionKind) -> bool:
    """Whether kube-apiserver's scheme has a kind, in a version that it may no longer serve."""
    if builtin_schemas().of(kind) is not None or kind == GroupVersionKind("", "v1", "List"):
        return True
    return kind.kind == expected.kind and kind.version in _OLD_VERSIONS.get(kind.group, ())


_OLD_VERSIONS = {
    "admissionregistration.k8s.io": ("v1alpha1", "v1beta1"),
    "apiextensions.k8s.io": ("v1beta1",),
    "apps": ("v1beta1", "v1beta2"),
    "batch": ("v1beta1",),
    "certificates.k8s.io": ("v1alpha1", "v1beta1"),
    "coordination.k8s.io": ("v1beta1",),
    "discovery.k8s.io": ("v1beta1",),
    "events.k8s.io": ("v1beta1",),
    "extensions": ("v1beta1",),
    "flowcontrol.apiserver.k8s.io": ("v1beta1", "v1beta2", "v1beta3"),
    "networking.k8s.io": ("v1beta1",),
    "node.k8s.io": ("v1alpha1", "v1beta1"),
    "policy": ("v1beta1",),
    "rbac.authorization.k8s.io": ("v1alpha1", "v1beta1"),
    "scheduling.k8s.io": ("v1alpha1", "v1beta1"),
    "storage.k8s.io": ("v1alpha1", "v1beta1"),
}


def _check_custom_kind(value: Json, resource: Resource, data: bytes) -> None:
    """Check that a custom object has both kind and apiVersion."""
    if is_of_kind(value, resource):
        return
    expected = resource.gvk
    kind, api_version = value.get("kind") or "", value.get("apiVersion") or ""
    if not kind:
        raise _unrecognized(expected.kind, f"Object 'Kind' is missing in '{data.decode(errors='replace')}'", data)
    if api_version != expected.api_version:
        raise BadRequest.of(
            f"the API version in the data ({api_version}) does not match the expected API version "
            f"({expected.api_version})"
        )
    try:
        resource.read(value)
    except (TypeMismatch, BadValue) as error:
        raise cannot_be_handled(resource, error, kind) from error
    name = (value.get("metadata") or {}).get("name") or ""
    fault = FieldError.invalid(Path("kind"), kind, f"must be {expected.kind}")
    raise Invalid.of(GroupKind(expected.group, kind), name, [fault])


def shaped(resource: Resource, value: Json) -> Json:
    """An applied value decoded to its kind and defaulted; unknown fields are dropped silently.

    Custom objects are not pruned here, nor are nulls dropped: schema validation reports them.
    """
    if resource.custom:
        obj = {"metadata": {}, **msgspec.json.decode(msgspec.json.encode(value))}
    else:
        obj, _ = _shaped(resource, value)
    resource.strategy.default(obj)
    return obj


def _shaped(resource: Resource, value: Json) -> tuple[Json, list[str]]:
    try:
        return typed(resource, value)
    except (TypeMismatch, BadValue) as error:
        raise cannot_be_handled(resource, error) from error


def typed(resource: Resource, value: Json, old: Json | None = None, subresource: str = "") -> tuple[Json, list[str]]:
    """Decode a value to its kind; return it and the paths of its unknown fields. TypeMismatch or BadValue if it fails.

    `old`: the stored object that the value was derived from, if any. `subresource`: that is written.
    """
    read_update = resource.read_update or (resource.read_status_update if subresource == "status" else None)
    obj, unknown = resource.read(value) if old is None or read_update is None else read_update(value, old)
    obj.update(resource.named)
    metadata = obj.setdefault("metadata", {})
    if (value.get("metadata") or {}).get("managedFields") == []:  # an empty list resets all field managers
        metadata["managedFields"] = []
    return obj, unknown


def _yaml_problems(data: bytes) -> list[str]:
    """The duplicate keys of a YAML body, as one problem."""
    from ostinato.api.wire.yaml import decode_yaml  # noqa: PLC0415 - loads only where it is needed

    try:
        decode_yaml(data, strict=True)
    except DecodeError as error:
        return [str(error)]
    return []


def _report(request: Request, resource: Resource, problems: list[str], options: WriteOptions) -> None:
    if options.field_validation == "Strict":
        raise cannot_be_handled(resource, f"strict decoding error: {', '.join(problems)}")
    for problem in problems:
        request.warnings.extend(line.strip() for line in problem.removeprefix(_YAML_PROBLEMS).split("\n"))


def cannot_be_handled(resource: Resource, why: object, kind: str = "") -> BadRequest:
    """The error for a body that is not of the expected kind. `kind`: the kind that it has, if it is another one."""
    expected = resource.gvk
    version = quote(expected.version)
    return BadRequest.of(f"{kind or expected.kind} in version {version} cannot be handled as a {expected.kind}: {why}")
