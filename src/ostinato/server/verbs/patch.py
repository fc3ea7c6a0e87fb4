"""patch: JSON patch, JSON merge patch and strategic merge patch. Server-side apply is in `apply`.

A patch is decoded when its object has been found, so that a missing object is reported first. After a conflict it is
applied again to the newest state.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ostinato.api.errors import (
    APIError,
    BadRequest,
    InternalError,
    Invalid,
    RequestEntityTooLarge,
    Unknown,
    UnsupportedMediaType,
)
from ostinato.api.gvk import GroupKind, GroupVersionKind
from ostinato.api.patch import InapplicablePatch, PatchError, check_operations, json_patch, merge_patch, strategic_merge
from ostinato.api.patch.go_values import go_value
from ostinato.api.schema import builtin_schemas
from ostinato.api.status import Status, StatusDetails
from ostinato.api.text.go_format import quote
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.api.wire import DecodeError, decode_json, strict_errors
from ostinato.api.wire.duplicate_keys import repeats_keys
from ostinato.api.wire.strict import repetitions, with_repeated_keys
from ostinato.server.flow.heavy import is_heavy
from ostinato.server.request import Response, body
from ostinato.server.request.context import Context
from ostinato.server.request.negotiate import form_of
from ostinato.server.request.options import WriteOptions, write_options
from ostinato.server.request.present import presented
from ostinato.server.resources.resource import Resource
from ostinato.server.resources.strategy import Json
from ostinato.server.schema.decoding import builtin
from ostinato.server.schema.decoding.builtin import BadValue, TypeMismatch, json_type
from ostinato.server.schema.decoding.objects import not_registered
from ostinato.server.schema.decoding.unstructured import restore_error
from ostinato.server.verbs import write
from ostinato.server.verbs.apply import apply
from ostinato.server.verbs.repeated_status import RepeatedStatus
from ostinato.server.verbs.update import change_object

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

_BUILTIN = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH)
_CUSTOM = (JSON_PATCH, MERGE_PATCH, APPLY_PATCH)
_OPERATION = frozenset({"op", "path", "from", "value"})


async def patch(context: Context) -> Response:
    request, resource = context.request, context.resource
    kind = patch_kind(request.headers.get("content-type", ""), resource)
    form = form_of(request, resource)
    data = await request.read()
    options = write_options(request, "PatchOptions")
    check_patch_options(kind, options)
    context.heavy = is_heavy(data)
    if request.audit is not None:
        request.audit.note_patch(data)
    if kind == APPLY_PATCH:
        return await apply(context, data, options, form)
    change = PatchChange(context, kind, data, options)
    repeated = RepeatedStatus.of(context, data, options) if kind == STRATEGIC_PATCH and not context.heavy else None
    if repeated is None:
        return await change_object(context, change, options, form)
    result = repeated.result
    if result is not None:
        stored = await repeated.store(result)
        if stored is not None:
            return await presented(context, stored, form)
    else:
        context.on_encoded = lambda version, data: repeated.learn(version, data) if change.attempts == 1 else None
    return await change_object(context, change, options, form)


def patch_kind(content_type: str, resource: Resource) -> str:
    """The kind of a patch by its content type; UnsupportedMediaType if the resource does not support it."""
    known = _CUSTOM if resource.custom else _BUILTIN
    if not resource.custom:  # the router checks first
        named = {part.partition(";")[0].strip(" ") for part in content_type.split(",")}
        if named.isdisjoint(known):
            message = "415: Unsupported Media Type"
            raise UnsupportedMediaType(
                Status(message=message, reason="UnsupportedMediaType", details=StatusDetails(), code=415)
            )
    kind = content_type.partition(";")[0]
    if kind not in known:
        raise UnsupportedMediaType.of(known)
    return kind


def check_patch_options(kind: str, options: WriteOptions) -> None:
    """Reject options that a kind of patch does not support."""
    if kind == APPLY_PATCH:
        if options.field_manager:
            return
        fault = FieldError.required(Path("fieldManager"), "is required for apply patch")
    elif options.force is None:
        return
    else:
        fault = FieldError.forbidden(Path("force"), "may not be specified for non-apply patch")
    raise Invalid.of(GroupKind("meta.k8s.io", "PatchOptions"), "", [fault])


class PatchChange:
    """A patch, decoded once, applied to the newest state of its object."""

    def __init__(self, context: Context, kind: str, data: bytes, options: WriteOptions) -> None:
        self._context = context
        self._kind = kind
        self._data = data
        self._validation = options.field_validation
        self.attempts = 0
        self._patch: Any = None
        self._problems: list[str] | None = None  # problems of strict decoding; None: not decoded yet

    def __call__(self, old: Json) -> Json:
        context, resource = self._context, self._context.resource
        self.attempts += 1
        try:
            if self._problems is None:
                self._patch = self._decoded()
                self._problems = self._patch_problems()
            new = self._applied(old)
        except PatchError as error:
            raise _refused(error) from error
        obj = self._shaped(new, old)
        if context.route.subresource == "status":
            resource.strategy.default_status(obj)
        else:
            resource.strategy.default(obj)
        write.set_namespace(context, obj)
        write.check_name(context, obj)
        return obj

    def _decoded(self) -> Any:
        """Decode the patch. Lenient decoding has its own error messages."""
        lenient = self._validation == "Ignore"
        try:
            value = decode_json(self._data)
            if self._kind == JSON_PATCH:
                return check_operations(value)
        except DecodeError as error:
            raise BadRequest.of(self._undecodable(str(error))) from error
        except PatchError as error:
            if not lenient:
                raise
            text = str(error).removeprefix("error decoding patch: ")
            if "Go struct field" in text:  # reported when this operation is applied
                raise InapplicablePatch(text) from error
            text = text.replace("[]handlers.jsonPatchOp", "jsonpatch.Patch")
            raise BadRequest.of(text.replace("handlers.jsonPatchOp", "jsonpatch.Operation")) from error
        if value is not None and not isinstance(value, dict):
            why = f"json: cannot unmarshal {json_type(value)} into Go value of type map[string]interface {{}}"
            raise BadRequest.of(self._undecodable(why))
        return {} if value is None and self._kind == STRATEGIC_PATCH else value

    def _undecodable(self, why: str) -> str:
        if self._kind == STRATEGIC_PATCH:
            return why
        if self._validation != "Ignore":
            return f"error decoding patch: {why}"
        return "Invalid JSON Patch" if self._kind == MERGE_PATCH else why

    def _patch_problems(self) -> list[str]:
        if self._validation == "Ignore":
            return []
        if self._kind == JSON_PATCH:
            return [f"json patch {text}" for text in _operation_problems(self._data, self._patch)]
        if not repeats_keys(self._data, self._patch):
            return []
        return strict_errors(self._data, self._patch, None)

    def _applied(self, old: Json) -> Any:
        if self._kind == JSON_PATCH:
            return json_patch(old, self._patch)
        if self._kind == MERGE_PATCH:
            return merge_patch(old, self._patch)
        return strategic_merge(old, self._patch, self._context.resource.schema)

    def _shaped(self, new: Any, old: Json) -> Json:
        """The result decoded as an object of its kind; Invalid if that fails."""
        resource = self._context.resource
        try:
            if self._kind != STRATEGIC_PATCH:  # a strategic merge patch cannot change the kind
                _check_kind(new, self._context)
            obj, unknown = body.typed(resource, new, old, self._context.route.subresource)
            self._context.request.sent = lambda: new
        except (TypeMismatch, BadValue) as error:
            raise self._invalid(new, restore_error(error) if self._kind == STRATEGIC_PATCH else str(error)) from error
        except _OtherKind as error:
            raise self._invalid(new, str(error)) from error
        if self._validation != "Ignore":
            assert self._problems is not None
            problems = [*self._problems, *(f"unknown field {quote(path)}" for path in sorted(unknown))]
            if problems and self._validation == "Strict":
                raise self._invalid(new, f"strict decoding error: {', '.join(problems)}")
            self._context.request.warnings.extend(problems)
        return obj

    def _invalid(self, new: Any, why: str) -> APIError:
        shown = go_value(self._patch) if self._kind == STRATEGIC_PATCH else _json(new)
        return Invalid.of(GroupKind("", ""), "", [FieldError.invalid(Path("patch"), shown, why)])


def _operation_problems(data: bytes, operations: list[Json]) -> list[str]:
    """Unknown and duplicate fields of operations."""
    if not repeats_keys(data, operations) and all(operation.keys() <= _OPERATION for operation in operations):
        return []
    found: list[str] = []
    for i, members in enumerate(with_repeated_keys(data)):
        seen: set[str] = set()
        for field, value in members or ():
            where = f"[{i}].{field}"
            if field not in _OPERATION:
                found.append(f"unknown field {quote(where)}")
                continue
            if field in seen:
                found.append(f"duplicate field {quote(where)}")
            seen.add(field)
            found += repetitions(value, where)
    return list(dict.fromkeys(found))


class _OtherKind(Exception):  # noqa: N818
    """The result has another kind than the path."""


def _check_kind(new: Json, context: Context) -> None:
    """Check the kind of the result: it is decoded as the kind that it names, which must be that of the path."""
    if body.is_of_kind(new, context.resource):
        return
    kind, api_version = new.get("kind"), new.get("apiVersion")
    for field, value in (("apiVersion", api_version), ("kind", kind)):
        if not isinstance(value, str | None):
            why = f"json: cannot unmarshal {json_type(value)} into Go struct field .{field} of type string"
            raise _OtherKind(f"couldn't get version/kind; json parse error: {why}")
    if context.resource.custom:
        _check_custom_kind(new, context)
    else:
        _check_builtin_kind(new, context)


def _check_custom_kind(new: Json, context: Context) -> None:
    expected = context.resource.gvk
    kind, api_version = new.get("kind"), new.get("apiVersion")
    if not kind:
        raise _OtherKind(f"Object 'Kind' is missing in '{_json(new)}'")
    if not api_version:
        raise InternalError.of("Object 'apiVersion' is missing in 'object has no apiVersion field'")
    faults = []
    if kind != expected.kind:
        faults.append(FieldError.invalid(Path("kind"), kind, f"must be {expected.kind}"))
    if api_version != expected.api_version:
        faults.append(FieldError.invalid(Path("apiVersion"), api_version, f"must be {expected.api_version}"))
    raise Invalid.of(_parsed(api_version, kind).group_kind, context.route.name, faults)


def _check_builtin_kind(new: Json, context: Context) -> None:
    expected = context.resource.gvk
    kind, api_version = new.get("kind") or expected.kind, new.get("apiVersion")
    if not api_version:  # nothing else is decoded, not even the name
        write.check_name(context, {"metadata": {}})
    given = _parsed(api_version or "", kind)
    if given == expected:
        return
    if builtin_schemas().of(given) is None and str(given) != "/v1, Kind=List":
        raise _OtherKind(not_registered(kind, given.api_version))
    if kind != "List":
        builtin.read(builtin.model_of(given), new)
    group = expected.group.partition(".")[0] or "core"
    raise _OtherKind(f"converting ({given.version}.{kind}) to ({group}.{expected.kind}): unknown conversion")


def _parsed(api_version: str, kind: str) -> GroupVersionKind:
    try:
        return GroupVersionKind.of(api_version, kind)
    except ValueError as error:
        raise _OtherKind(str(error)) from error


def _json(value: Any) -> str:
    """A result as errors quote it."""
    return msgspec.json.encode(value, order="sorted").decode()


def _refused(error: PatchError) -> APIError:
    match error.code:
        case 400:
            return BadRequest.of(str(error))
        case 413:
            return RequestEntityTooLarge.of(str(error))
        case 422:
            message = "the server rejected our request due to an error in our request"
            return Invalid(Status(message=message, reason="Invalid", details=StatusDetails(), code=422))
        case _:
            return Unknown.of(str(error))
