"""Bodies: the object that a client sent, decoded once and checked against what the path expects."""

from __future__ import annotations

from typing import Any

from ostinato.api.errors import BadRequest
from ostinato.api.gvk import GroupVersion
from ostinato.api.quoting import quote
from ostinato.api.schema import builtin_schemas
from ostinato.api.wire import DecodeError, decode_json, strict_errors
from ostinato.server.negotiate import BUILTIN, CUSTOM, Media, body_media
from ostinato.server.options import WriteOptions
from ostinato.server.request import Request
from ostinato.server.resources.resource import Resource
from ostinato.server.resources.strategy import Json
from ostinato.server.schema.builtin import BadValue, TypeMismatch, json_type

_SHOWN = 30  # bytes of a body that an error message repeats


def read(request: Request, resource: Resource, data: bytes, options: WriteOptions) -> Json:
    """The object in a body, in the shape of its kind; unknown and doubled fields are told as the client asked."""
    media = body_media(request.headers.get("content-type", ""), supported=CUSTOM if resource.custom else BUILTIN)
    value = decode(data, media, resource.gvk.kind)
    check_kind(value, resource)
    return shaped(request, resource, value, options, data if media == "json" else None)


def decode(data: bytes, media: Media, kind: str) -> Json:
    try:
        if media == "protobuf":
            from ostinato.api import protobuf  # noqa: PLC0415 - its tables load only where they are needed

            value: Any = protobuf.decode(data)
        elif media == "yaml":
            from ostinato.api.wire.yaml import decode_yaml  # noqa: PLC0415

            value = decode_yaml(data)
        else:
            value = decode_json(data)
    except DecodeError as error:
        why = f"couldn't get version/kind; json parse error: {error}" if media == "json" else str(error)
        raise BadRequest.of(
            f"the object provided is unrecognized (must be of type {kind}): {why} ({_summary(data)})"
        ) from error
    if not isinstance(value, dict):
        raise BadRequest.of(
            f"the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; "
            f"json parse error: json: cannot unmarshal {json_type(value)} into Go value of type struct "
            '{ APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" } '
            f"({_summary(data)})"
        )
    return value


def _summary(data: bytes) -> str:
    if not data:
        return "<empty>"
    more = " ..." if len(data) > _SHOWN else ""
    head = data[:_SHOWN]
    return (head.decode(errors="replace") if data[:1] == b"{" else head.hex()) + more


def check_kind(value: Json, resource: Resource) -> None:
    """The body must name the kind and version of the path, or neither."""
    expected = resource.gvk
    kind, api_version = value.get("kind") or expected.kind, value.get("apiVersion") or expected.api_version
    if kind == expected.kind and api_version == expected.api_version:
        return
    if not isinstance(kind, str) or not isinstance(api_version, str):
        raise BadRequest.of(f"{expected.kind}: kind and apiVersion must be strings")
    if resource.custom:
        raise BadRequest.of(f"the object in the body is {api_version}, Kind={kind}: expected {expected}")
    try:
        given = GroupVersion.parse(api_version)
    except ValueError as error:
        raise BadRequest.of(str(error)) from error
    if kind != expected.kind:
        if builtin_schemas().of(given.kind(kind)) is not None:
            group = expected.group.partition(".")[0] or "core"
            raise BadRequest.of(
                f"{kind} in version {quote(given.version)} cannot be handled as a {expected.kind}: converting "
                f"({given.version}.{kind}) to ({group}.{expected.kind}): unknown conversion"
            )
        raise BadRequest.of(
            f"no kind {quote(kind)} is registered for version {quote(api_version)} in scheme "
            '"pkg/api/legacyscheme/scheme.go:30"'
        )
    raise BadRequest.of(
        f"the API version in the data ({api_version}) does not match the expected API version ({expected.api_version})"
    )


def shaped(request: Request, resource: Resource, value: Json, options: WriteOptions, data: bytes | None) -> Json:
    """The value in the shape of its kind, kind and apiVersion included. `data` is the JSON that it came in, if any."""
    try:
        obj, unknown = resource.read(value)
    except TypeMismatch as error:
        raise cannot_be_handled(resource, error) from error
    except BadValue as error:
        raise cannot_be_handled(resource, error) from error
    if options.field_validation != "Ignore":
        if data is not None and not resource.custom:
            problems = strict_errors(data, value, resource.schema)
        else:
            problems = [f"unknown field {quote(path)}" for path in unknown]
            if data is not None:
                problems = strict_errors(data, value, None) + problems
        if problems:
            _tell(request, resource, problems, options)
    obj["kind"], obj["apiVersion"] = resource.gvk.kind, resource.gvk.api_version
    return obj


def _tell(request: Request, resource: Resource, problems: list[str], options: WriteOptions) -> None:
    if options.field_validation == "Strict":
        raise BadRequest.of(
            f"{resource.gvk.kind} in version {quote(resource.gvk.version)} cannot be handled as a {resource.gvk.kind}: "
            f"strict decoding error: {', '.join(problems)}"
        )
    request.warnings.extend(problems)


def cannot_be_handled(resource: Resource, why: object) -> BadRequest:
    kind = resource.gvk.kind
    return BadRequest.of(f"{kind} in version {quote(resource.gvk.version)} cannot be handled as a {kind}: {why}")
