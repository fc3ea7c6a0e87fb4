"""update: replace an object."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ostinato.api.errors import APIError, Conflict, Invalid, NotFound, Unknown
from ostinato.api.gvk import GroupKind
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.flow.heavy import is_heavy
from ostinato.server.request import Response, body
from ostinato.server.request.context import Context
from ostinato.server.request.negotiate import Form, body_media, form_of
from ostinato.server.request.options import WriteOptions, write_options
from ostinato.server.request.present import presented
from ostinato.server.resources import metadata
from ostinato.server.resources.strategy import Json
from ostinato.server.store import records
from ostinato.server.store.records import Entry
from ostinato.server.verbs import write
from ostinato.server.verbs.create import create_object
from ostinato.server.verbs.get import parse_version
from ostinato.server.verbs.validation_errors import invalid

# Returns the new object for an old one, which it must not modify; called again after a conflict.
Change = Callable[[Json], Json]

_KEPT = ("creationTimestamp", "deletionTimestamp")  # cannot be changed by an update
_FILLED_IN = ("uid", "deletionGracePeriodSeconds")  # may be omitted in an update


async def update(context: Context) -> Response:
    request, resource = context.request, context.resource
    form = form_of(request, resource)
    data = await request.read()
    options = write_options(request, "UpdateOptions")
    media = body_media(request, custom=resource.custom)
    context.heavy = is_heavy(data, media)

    def read() -> Json:
        return body.read(request, resource, data, media, options)

    sent = await context.in_thread(read) if context.heavy else read()
    write.set_namespace(context, sent)
    write.check_name(context, sent)
    write.drop_repeated_owners(request, sent)
    wanted = sent["metadata"].get("uid", "")
    if context.collection.newest(context.key) is None:
        if not resource.strategy.allow_create_on_update or context.route.subresource:
            raise NotFound.of(resource.group_resource, context.route.name)
        if wanted:
            raise uid_mismatch(context, wanted, "")
        sent["metadata"].pop("resourceVersion", None)
        return await create_object(context, sent, options, form)

    def change(old: Json) -> Json:
        if wanted and wanted != old["metadata"]["uid"]:
            raise uid_mismatch(context, wanted, old["metadata"]["uid"])
        return {**sent, "metadata": dict(sent["metadata"])}

    return await change_object(context, change, options, form)


def uid_mismatch(context: Context, wanted: str, found: str) -> APIError:
    """The error for a uid precondition that does not match; `found` is "" if the object does not exist."""
    resource, route = context.resource, context.route
    root = "" if context.request.query.get("dryRun") else "/registry"
    plural = resource.gvr.resource
    kind = f"{resource.gvr.group}/{plural}" if resource.custom else _PLACES.get(plural, plural)
    place = "/".join(part for part in (kind, route.namespace if resource.namespaced else "", route.name) if part)
    return Conflict.of(
        resource.group_resource,
        route.name,
        f"StorageError: invalid object, Code: 4, Key: {root}/{place}, ResourceVersion: 0, AdditionalErrorMsg: "
        f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}",
    )


# etcd paths of kube-apiserver that differ from the plural; they appear in messages.
_PLACES = {
    "replicationcontrollers": "controllers",
    "endpoints": "services/endpoints",
    "nodes": "minions",
    "services": "services/specs",
    "ingresses": "ingress",
}


async def change_object(
    context: Context, change: Change, options: WriteOptions, form: Form, *, tracked: bool = False
) -> Response:
    """Apply a change to the newest state, store it, and return the response."""
    data = await change_stored(context, change, options, tracked=tracked)
    return await presented(context, data, form)


async def change_stored(context: Context, change: Change, options: WriteOptions, *, tracked: bool = False) -> bytes:
    """Apply a change to the newest state and store it, retrying on conflict; return the stored data.

    `tracked`: the managedFields of the changed object already include this write (an apply).
    """
    resource = context.resource
    while True:
        current = context.collection.newest(context.key)
        if current is None:
            raise NotFound.of(resource.group_resource, context.route.name)
        data = await write.converted_data(resource, current)
        context.heavy = context.heavy or is_heavy(data)
        if resource.conversion is None:
            changed = partial(_changed, context, change, data, options, tracked=tracked)
            old, new = await context.in_thread(changed) if context.heavy else changed()
        else:
            old = resource.object(data)
            new = await _converted_change(context, change, old, options, tracked=tracked)
        await context.admission.mutate(context, "UPDATE", new, old, options)
        write.drop_repeated_owners(context.request, new, write.AFTER_ADMISSION)
        _check_version(context, current, new["metadata"])
        try:
            return await _attempt(context, current, old, new, options)
        except records.Conflict:
            continue


def _changed(
    context: Context, change: Change, data: bytes, options: WriteOptions, *, tracked: bool
) -> tuple[Json, Json]:
    """Return the old and the new object."""
    old = context.resource.object(data)
    new = change(old)
    return old, new if tracked else write.with_managed_fields(context, old, new, options, context.route.subresource)


async def _converted_change(
    context: Context, change: Change, old: Json, options: WriteOptions, *, tracked: bool
) -> Json:
    """The changed object, if its managedFields refer to versions that the conversion webhook has to convert."""
    conversion = context.resource.conversion
    assert conversion is not None
    new = await conversion.resolve(lambda: change(old))
    if tracked:
        return new
    return await conversion.resolve(
        lambda: write.with_managed_fields(context, old, new, options, context.route.subresource)
    )


def _check_version(context: Context, current: Entry, meta: Json) -> None:
    """Check the resourceVersion precondition; the kind decides whether it may be omitted."""
    if meta.get("resourceVersion") == str(current.version):
        return
    resource = context.resource
    version = requested_version(meta)
    if not version:
        if not resource.strategy.allow_unconditional_update:
            fault = FieldError.invalid(Path("metadata", "resourceVersion"), 0, "must be specified for an update")
            raise Invalid.of(GroupKind(resource.gvr.group, resource.gvr.resource), context.route.name, [fault])
        meta["resourceVersion"] = str(current.version)
    elif version != current.version:
        raise write.modified(resource, context.route.name)


def requested_version(meta: Json) -> int:
    """The resourceVersion of an object, 0 if it has none."""
    text = meta.get("resourceVersion", "")
    if not text:
        return 0
    try:
        return parse_version(text)
    except ValueError as error:
        raise Unknown.of(str(error).partition(": ")[2].partition(": ")[2].partition(": ")[2]) from error


async def _attempt(context: Context, current: Entry, old: Json, new: Json, options: WriteOptions) -> bytes:
    strategy = context.resource.strategy
    allocating = None if context.route.subresource else strategy.allocate(new, old, context.index, dry=options.dry_run)
    allocated = None if allocating is None else await allocating
    try:
        _prepare(context, old, new)
        if context.heavy or context.resource.custom:
            await context.check(lambda: _validate(context, old, new))
        else:
            _validate(context, old, new)
        await context.admission.validate(context, "UPDATE", new, old, options)
        data = await _store(context, current, old, new, options)
    except (APIError, records.Conflict):
        if allocated is not None:
            await allocated.abandon()
        raise
    if allocated is not None:
        await allocated.commit(new)
    return data


def _prepare(context: Context, old: Json, new: Json) -> None:
    """Set the fields that the server controls, and restore those that the client cannot change."""
    resource, subresource = context.resource, context.route.subresource
    strategy = resource.strategy.subresources.get(subresource, resource.strategy)
    meta, before = new["metadata"], old["metadata"]
    meta.pop("selfLink", None)
    meta.pop("generation", None)
    if "generation" in before:
        meta["generation"] = before["generation"]
    if subresource == "status":
        strategy.prepare_status_update(new, old)
    else:
        if strategy.status and "status" in resource.subresources:
            if "status" in old:
                new["status"] = old["status"]
            else:
                new.pop("status", None)
        strategy.prepare_update(new, old)
        if strategy.generation and strategy.desired(new) != strategy.desired(old):
            new["metadata"]["generation"] = before.get("generation", 0) + 1
    meta = new["metadata"]
    for field in _KEPT:
        if field in before:
            meta[field] = before[field]
    for field in _FILLED_IN:
        if field in before and field not in meta:
            meta[field] = before[field]


def _validate(context: Context, old: Json, new: Json) -> None:
    resource, subresource = context.resource, context.route.subresource
    strategy = resource.strategy.subresources.get(subresource, resource.strategy)
    validate = strategy.validate_status_update if subresource == "status" else strategy.validate_update

    def check() -> list[FieldError]:
        return metadata.validate_update(new, old, resource, subresource) + validate(new, old)

    refused = invalid(context, new, new["metadata"].get("name", ""), check)
    if refused is not None:
        raise refused
    if not subresource:
        context.request.warnings.extend(strategy.warnings(new, old))


async def _store(context: Context, current: Entry, old: Json, new: Json, options: WriteOptions) -> bytes:
    changed = (
        await context.in_thread(lambda: write.unless_equal(old, new)) if context.heavy else write.unless_equal(old, new)
    )
    if changed is None and not options.dry_run and context.index.is_outdated(context.collection, current.key):
        changed = new
    if changed is None:
        if context.index.is_shared or context.key in context.collection.pending:
            await context.index.wait_pending()
            newest = context.collection.newest(context.key)
            if newest is not current:  # the object was changed by another server, or is not written after all
                raise records.Conflict(newest)
        return await write.converted_data(context.resource, current)
    ends = _is_finalized(context, old, changed)
    if options.dry_run:
        return await write.dry_run_result(context.resource, changed)
    if ends:
        await context.index.delete(context.collection, current.key, current)
        await context.resource.strategy.after_delete(changed, context.index)
        return write.encode_unstored(context.resource, changed)
    return await write.converted_data(context.resource, await write.put(context, changed, current))


def _is_finalized(context: Context, old: Json, new: Json) -> bool:
    """Whether the last finalizer of a terminating object is gone."""
    before = old["metadata"]
    return (
        bool(before.get("deletionTimestamp"))
        and not before.get("deletionGracePeriodSeconds")
        and not new["metadata"].get("finalizers")
        and context.resource.strategy.is_finalized(new)
    )
