"""patch: an object is changed by one of four kinds of patch; apply may bring it into being."""

from __future__ import annotations

from typing import Any

import msgspec

from ostinato.api.apply import ApplyError
from ostinato.api.errors import APIError, BadRequest, Invalid, NotFound, Unknown, UnsupportedMediaType
from ostinato.api.field_errors import FieldError, Path
from ostinato.api.gvk import GroupKind
from ostinato.api.patch import PatchError, check_operations, json_patch, merge_patch, strategic_merge
from ostinato.api.status import Status, StatusDetails
from ostinato.api.wire import DecodeError, decode_json, strict_errors
from ostinato.server import body
from ostinato.server.negotiate import Form, form_of
from ostinato.server.options import WriteOptions, write_options
from ostinato.server.request import Response
from ostinato.server.resources.strategy import Json
from ostinato.server.schema.builtin import BadValue, TypeMismatch, json_type
from ostinato.server.verbs import write
from ostinato.server.verbs.context import Context
from ostinato.server.verbs.create import create_object
from ostinato.server.verbs.update import change_object

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


async def patch(context: Context) -> Response:
    request, resource = context.request, context.resource
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    known = [JSON_PATCH, MERGE_PATCH, APPLY_PATCH] + ([] if resource.custom else [STRATEGIC_PATCH])
    if kind not in known:
        raise UnsupportedMediaType(
            Status(
                message="415: Unsupported Media Type", reason="UnsupportedMediaType", details=StatusDetails(), code=415
            )
        )
    form = form_of(request, resource)
    data = await request.read()
    options = write_options(request, "PatchOptions")
    _check_options(kind, options)
    if kind == APPLY_PATCH:
        return await _apply(context, data, options, form)
    change = _Change(context, kind, data, options)
    return await change_object(context, change, options, form)


def _check_options(kind: str, options: WriteOptions) -> None:
    faults = []
    if kind == APPLY_PATCH:
        if not options.field_manager:
            faults.append(FieldError.required(Path("fieldManager"), "is required for apply patch"))
    elif options.force is not None:
        faults.append(FieldError.forbidden(Path("force"), "may not be specified for non-apply patch"))
    if faults:
        raise Invalid.of(GroupKind("meta.k8s.io", "PatchOptions"), "", faults)


class _Change:
    """A patch, read once, applied to each version that it meets."""

    def __init__(self, context: Context, kind: str, data: bytes, options: WriteOptions) -> None:
        self._context = context
        self._kind = kind
        self._options = options
        self._told = False
        try:
            self._patch: Any = decode_json(data)
            if kind == JSON_PATCH:
                check_operations(self._patch)
            elif not isinstance(self._patch, dict):
                raise BadRequest.of(
                    f"error decoding patch: json: cannot unmarshal {json_type(self._patch)} into Go value of "
                    "type map[string]interface {}"
                )
        except DecodeError as error:
            raise BadRequest.of(f"error decoding patch: {error}") from error
        except PatchError as error:
            raise _refused(error) from error
        self._data = data

    def __call__(self, old: Json) -> Json:
        context, resource = self._context, self._context.resource
        try:
            if self._kind == JSON_PATCH:
                new = json_patch(old, self._patch)
            elif self._kind == MERGE_PATCH:
                new = merge_patch(old, self._patch)
            else:
                new = strategic_merge(old, self._patch, resource.schema)
        except PatchError as error:
            raise _refused(error) from error
        new = self._shaped(new)
        write.fit_namespace(context, new)
        write.check_name(context, new)
        resource.strategy.default(new)
        return new

    def _shaped(self, new: Any) -> Json:
        context, resource = self._context, self._context.resource
        if not isinstance(new, dict):
            raise _bad_result(context, new, "json: cannot unmarshal into an object")
        try:
            obj, unknown = resource.read(new)
        except (TypeMismatch, BadValue) as error:
            raise _bad_result(context, new, str(error)) from error
        if self._options.field_validation != "Ignore" and not self._told:
            self._told = True
            problems = [] if self._kind == JSON_PATCH else strict_errors(self._data, self._patch, None)
            problems += [f'unknown field "{path}"' for path in unknown]
            if problems:
                if self._options.field_validation == "Strict":
                    raise _bad_result(context, new, f"strict decoding error: {', '.join(problems)}")
                context.request.warnings.extend(problems)
        obj["kind"], obj["apiVersion"] = resource.gvk.kind, resource.gvk.api_version
        obj.setdefault("metadata", {})
        return obj


def _bad_result(context: Context, new: Any, why: str) -> APIError:
    """The patched object is none of its kind."""
    fault = FieldError.invalid(Path("patch"), msgspec.json.encode(new).decode(), why)
    return Invalid.of(context.resource.gvk.group_kind, context.route.name, [fault])


def _refused(error: PatchError) -> APIError:
    if error.code == 400:
        return BadRequest.of(str(error))
    if error.code == 422:
        return Invalid(
            Status(
                message="the server rejected our request due to an error in our request",
                reason="Invalid",
                details=StatusDetails(),
                code=422,
            )
        )
    if error.code == 413:
        from ostinato.api.errors import RequestEntityTooLarge  # noqa: PLC0415

        return RequestEntityTooLarge.of(str(error))
    return Unknown.of(str(error))


async def _apply(context: Context, data: bytes, options: WriteOptions, form: Form) -> Response:
    from ostinato.api.wire.yaml import decode_yaml  # noqa: PLC0415 - loads only where it is needed

    resource = context.resource
    try:
        config = decode_yaml(data)
    except DecodeError as error:
        raise BadRequest.of(f"error decoding YAML: {error}") from error
    if not isinstance(config, dict):
        raise BadRequest.of(
            f"json: cannot unmarshal {json_type(config)} into Go value of type map[string]interface {{}}"
        )
    manager = resource.managers.get(context.route.subresource)
    assert manager is not None
    assert resource.collection is not None
    stamp = write.now(context.world.clock)

    def applied(live: Json | None) -> Json:
        try:
            return manager.apply(live, config, options.field_manager, stamp, force=bool(options.force))
        except ApplyError as error:
            raise Unknown.of(str(error)) from error

    if resource.collection.newest(context.key) is None:
        if context.route.subresource:
            raise NotFound.of(resource.group_resource, context.route.name)
        new = applied(None)
        obj = body.shaped(resource, new)
        write.check_name(context, obj)
        return await create_object(context, obj, options, form, tracked=True)

    def change(old: Json) -> Json:
        new = applied(old)
        if new is old:
            return old
        obj = body.shaped(resource, new)
        write.check_name(context, obj)
        write.fit_namespace(context, obj)
        return obj

    return await change_object(context, change, options, form, tracked=True)
