"""scale: read and write the number of replicas of an object as a Scale.

A Scale is not stored. It is derived from its parent, and writing it updates the parent's replicas: it has the parent's
resourceVersion, and ownership of its `.spec.replicas` is ownership of the parent's field.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from typing import Any

import msgspec

from ostinato.api.apply import FieldManager, ScaleOwnership
from ostinato.api.apply.fieldpath.field_set import Path as FieldPath
from ostinato.api.apply.fieldpath.field_set import field_path
from ostinato.api.errors import BadRequest, Conflict, InternalError, Invalid, NotFound, Unknown
from ostinato.api.gvk import GroupResource, GroupVersionKind, GroupVersionResource
from ostinato.api.schema import builtin_schemas
from ostinato.api.text.go_format import quote
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.request import Response, body
from ostinato.server.request.context import Admission, Context
from ostinato.server.request.negotiate import body_media, form_of
from ostinato.server.request.options import write_options
from ostinato.server.request.present import object_response
from ostinato.server.resources import metadata
from ostinato.server.resources.body_resource import BodyResource
from ostinato.server.resources.resource import Resource
from ostinato.server.resources.scaling import ScaleFields
from ostinato.server.resources.strategy import Json
from ostinato.server.verbs import write
from ostinato.server.verbs.apply import ApplyChange
from ostinato.server.verbs.get import check_get_options
from ostinato.server.verbs.patch import APPLY_PATCH, PatchChange, check_patch_options, patch_kind
from ostinato.server.verbs.update import Change, change_stored, uid_mismatch
from ostinato.world import Clock

SCALE = GroupVersionKind("autoscaling", "v1", "Scale")

_UNSET = -(1 << 31)  # placeholder for a parent without replicas; no client requests this number
_META = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


async def get_scale(context: Context) -> Response:
    view, fields = _shown_view(context), _fields(context)
    form = form_of(context.request, view)
    await check_get_options(context)
    entry = context.collection.entries.get(context.key)
    if entry is None:
        raise NotFound.of(context.resource.group_resource, context.route.name)
    data = await write.converted_data(context.resource, entry)
    scale = _scale_of(fields, context.resource.object(data))
    if scale["spec"].get("replicas") == _UNSET:
        raise InternalError.of(f"the spec replicas field {quote(_dotted(fields.replicas))} does not exist")
    return object_response(view, _encoded(scale), form)


async def update_scale(context: Context) -> Response:
    request, view, fields = context.request, _view(context), _fields(context)
    form = form_of(request, view)
    data = await request.read()
    options = write_options(request, "UpdateOptions")
    sent = body.read(request, view, data, body_media(request), options)
    write.set_namespace(context, sent)
    write.check_name(context, sent)

    def change(old: Json) -> Json:
        wanted = sent["metadata"].get("uid")
        if wanted and wanted != old["metadata"]["uid"]:
            raise uid_mismatch(context, wanted, old["metadata"]["uid"])
        scale = {**sent, "metadata": dict(sent["metadata"])}
        return write.with_managed_fields(_of_view(context, view), old, scale, options, "scale")

    stored = await change_stored(_admitting(context), _parent_change(fields, context, change), options, tracked=True)
    return object_response(view, _encoded(_scale_of(fields, context.resource.object(stored))), form)


async def patch_scale(context: Context) -> Response:
    request, view, fields = context.request, _view(context), _fields(context)
    kind = patch_kind(request.headers.get("content-type", ""), context.resource)
    form = form_of(request, view)
    data = await request.read()
    options = write_options(request, "PatchOptions")
    check_patch_options(kind, options)
    if request.audit is not None:
        request.audit.note_patch(data)
    of_view = _of_view(context, view)
    if kind == APPLY_PATCH:
        change: Change = ApplyChange(of_view, view.managers["scale"], data, options)
    else:
        patched = PatchChange(of_view, kind, data, options)
        change = lambda old: write.with_managed_fields(of_view, old, patched(old), options, "scale")  # noqa: E731
    stored = await change_stored(_admitting(context), _parent_change(fields, context, change), options, tracked=True)
    return object_response(view, _encoded(_scale_of(fields, context.resource.object(stored))), form)


class _ScaleAdmission:
    """Admission of a Scale: the written object, while the stored one is its parent."""

    def __init__(self, inner: Admission, fields: ScaleFields) -> None:
        self._inner = inner
        self._fields = fields

    async def mutate(self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any) -> None:
        assert obj is not None
        scale = _scale_with_managers(self._fields, context.resource, obj)
        replicas = scale["spec"].get("replicas", 0)
        before = None if old is None else _scale_with_managers(self._fields, context.resource, old)
        await self._inner.mutate(context, operation, scale, before, options)
        changed = scale["spec"].get("replicas", 0)
        if changed != replicas:
            obj.update(_with_replicas(obj, self._fields.replicas, changed))

    async def validate(
        self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any
    ) -> None:
        scale, before = (None if each is None else _scale_of(self._fields, each) for each in (obj, old))
        await self._inner.validate(context, operation, scale, before, options)

    def judges_status_by_content(self, resource: GroupResource) -> bool:
        return self._inner.judges_status_by_content(resource)


def _admitting(context: Context) -> Context:
    return msgspec.structs.replace(context, admission=_ScaleAdmission(context.admission, _fields(context)))


def _fields(context: Context) -> ScaleFields:
    fields = context.resource.scale
    assert fields is not None
    return fields


def _parent_change(fields: ScaleFields, context: Context, change: Change) -> Change:
    """Convert a change of a Scale to a change of its parent."""

    def changed(parent: Json) -> Json:
        resource, name, meta = context.resource, context.route.name, parent["metadata"]
        ownership = _ownership(fields, resource, meta.get("managedFields"))
        scale = change(_scale_with_managers(fields, resource, parent))
        replicas = scale["spec"].get("replicas", 0)
        _check(fields, context, scale, replicas)
        uid = scale["metadata"].get("uid")
        if uid and uid != meta["uid"]:
            raise Conflict.of(
                GroupResource(resource.gvr.group, f"{resource.gvr.resource}/scale"),
                name,
                f"Precondition failed: UID in precondition: {uid}, UID in object meta: {meta['uid']}",
            )
        new = _with_replicas(parent, fields.replicas, replicas)
        new["metadata"] = {**meta, "managedFields": ownership.to_parent(scale["metadata"].get("managedFields"))}
        version = scale["metadata"].get("resourceVersion")
        if version:
            new["metadata"]["resourceVersion"] = version
        return new

    return changed


def _check(fields: ScaleFields, context: Context, scale: Json, replicas: int) -> None:
    if replicas == _UNSET:
        raise BadRequest.of(f"the spec replicas field {quote(_dotted(fields.replicas))} cannot be empty")
    if context.resource.custom:
        return
    errors = metadata.validate(scale, _view(context))
    if replicas < 0:
        errors.append(FieldError.invalid(Path("spec", "replicas"), replicas, "must be greater than or equal to 0"))
    if errors:
        raise Invalid.of(SCALE.group_kind, context.route.name, errors)


def _scale_with_managers(fields: ScaleFields, resource: Resource, parent: Json) -> Json:
    """The Scale of an object, with managedFields."""
    scale = _scale_of(fields, parent)
    entries = _ownership(fields, resource, parent["metadata"].get("managedFields")).to_scale()
    if entries:
        scale["metadata"]["managedFields"] = entries
    return scale


def _scale_of(fields: ScaleFields, parent: Json) -> Json:
    meta = parent["metadata"]
    status = {"replicas": _value(parent, fields.current) or 0}
    selector = fields.selector(parent)
    if selector:
        status["selector"] = selector
    replicas = _value(parent, fields.replicas)
    return {
        "kind": SCALE.kind,
        "apiVersion": SCALE.api_version,
        "metadata": {key: meta[key] for key in _META if key in meta},
        "spec": {} if replicas == 0 else {"replicas": _UNSET if replicas is None else replicas},
        "status": status,
    }


def _value(obj: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        obj = obj.get(step) if isinstance(obj, dict) else None
    return obj


def _with_replicas(parent: Json, path: tuple[str, ...], replicas: int) -> Json:
    """A copy of an object with another value at a path; only nodes on the path are copied."""
    new = dict(parent)
    place = new
    for i, step in enumerate(path[:-1]):
        below = place.get(step, {})
        if not isinstance(below, dict):
            raise Unknown.of(f"value cannot be set because {_dotted(path[: i + 1])} is not a map[string]interface{{}}")
        place[step] = dict(below)
        place = place[step]
    place[path[-1]] = replicas
    return new


def _ownership(fields: ScaleFields, resource: Resource, entries: Any) -> ScaleOwnership:
    api_version = resource.gvk.api_version
    owned: Mapping[str, tuple[str, ...] | None] = fields.owned or {api_version: fields.replicas}
    paths: dict[str, FieldPath | None] = {
        version: None if path is None else field_path(*path) for version, path in owned.items()
    }
    return ScaleOwnership(entries, api_version, paths)


def _dotted(path: tuple[str, ...]) -> str:
    return "." + ".".join(path)


def _encoded(scale: Json) -> bytes:
    return msgspec.json.encode({key: value for key, value in scale.items() if key not in ("kind", "apiVersion")})


def _of_view(context: Context, view: Resource) -> Context:
    return msgspec.structs.replace(context, resource=view)


def _view(context: Context) -> Resource:
    return _view_of(context.resource.gvr, namespaced=context.resource.namespaced)


def _shown_view(context: Context) -> Resource:
    """The view of Scales with its Table rows."""
    return _ScaleRows(_view(context), context.world.clock)


class _ScaleRows(BodyResource):
    def __init__(self, view: Resource, clock: Clock) -> None:
        super().__init__(view.gvr, SCALE, namespaced=view.namespaced, managers=view.managers)
        self.columns = _COLUMNS
        self.row = partial(_row, clock)


def _row(clock: Clock, scale: Json) -> list[Any]:
    from ostinato.server.resources.tables.cells import age  # noqa: PLC0415 - loads with the first Table

    counts = (scale.get(part, {}).get("replicas", 0) for part in ("spec", "status"))
    return [scale["metadata"]["name"], *counts, age(scale, clock.now())]


_COLUMNS = [
    {"name": name, "type": kind, "format": "", "description": "", "priority": 0}
    for name, kind in (("Name", "string"), ("Desired", "integer"), ("Available", "integer"), ("Age", "string"))
]


@cache
def _view_of(gvr: GroupVersionResource, *, namespaced: bool) -> Resource:
    """A resource for the Scales of another resource."""
    schema = builtin_schemas().of(SCALE)
    manager = FieldManager(SCALE, {SCALE.api_version: schema}, subresource="scale")
    return BodyResource(gvr, SCALE, namespaced=namespaced, managers={"scale": manager})
