"""update: an object takes the place of its old self."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ostinato.api.errors import APIError, Conflict, Invalid, NotFound
from ostinato.api.field_errors import FieldError, Path
from ostinato.api.gvk import GroupKind
from ostinato.server import body, metadata
from ostinato.server.negotiate import Form
from ostinato.server.options import WriteOptions, write_options
from ostinato.server.present import object_response
from ostinato.server.request import Response
from ostinato.server.resources.strategy import Json
from ostinato.server.store import index
from ostinato.server.store.index import Entry
from ostinato.server.verbs import write
from ostinato.server.verbs.context import Context
from ostinato.server.verbs.create import create_object

ATTEMPTS = 5  # how often a write that names no version is tried on an object that keeps changing

# Makes the new object of the old one; called again if the object has changed meanwhile. The Json may be changed.
Change = Callable[[Json], Json]


async def update(context: Context) -> Response:
    request, resource = context.request, context.resource
    form = write.answer_form(context)
    options = write_options(request, "UpdateOptions")
    sent = body.read(request, resource, await request.read(), options)
    sent.setdefault("metadata", {})
    write.check_name(context, sent)
    write.check_namespace(context, sent)
    resource.strategy.default(sent)
    assert resource.collection is not None
    if resource.collection.newest(context.key) is None:
        if not resource.strategy.allow_create_on_update or context.route.subresource:
            raise NotFound.of(resource.group_resource, context.route.name)
        if sent["metadata"].get("uid"):
            raise uid_mismatch(context, sent["metadata"]["uid"], "")
        return await create_object(context, sent, options, form)

    def change(old: Json) -> Json:
        uid = sent["metadata"].get("uid")
        if uid and uid != old["metadata"]["uid"]:
            raise uid_mismatch(context, uid, old["metadata"]["uid"])
        if not sent["metadata"].get("resourceVersion") and not resource.strategy.allow_unconditional_update:
            fault = FieldError.invalid(Path("metadata", "resourceVersion"), 0, "must be specified for an update")
            raise Invalid.of(GroupKind(resource.gvr.group, resource.gvr.resource), context.route.name, [fault])
        return {**sent, "metadata": dict(sent["metadata"])}

    return await change_object(context, change, options, form)


def uid_mismatch(context: Context, wanted: str, found: str) -> APIError:
    resource, route = context.resource, context.route
    place = "/".join(
        part for part in (resource.gvr.resource, route.namespace if resource.namespaced else "", route.name) if part
    )
    if resource.gvr.group and resource.custom:
        place = f"{resource.gvr.group}/{place}"
    return Conflict.of(
        resource.group_resource,
        route.name,
        f"StorageError: invalid object, Code: 4, Key: /registry/{place}, ResourceVersion: 0, AdditionalErrorMsg: "
        f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}",
    )


async def change_object(context: Context, change: Change, options: WriteOptions, form: Form) -> Response:
    """Change the newest version and store it; again if somebody else was faster and no version is asked for."""
    entry, created = await change_stored(context, change, options)
    return object_response(
        context.resource, entry, form, 201 if created else 200, context.request.parameter("includeObject") or "Metadata"
    )


async def change_stored(context: Context, change: Change, options: WriteOptions) -> tuple[bytes, bool]:
    resource = context.resource
    assert resource.collection is not None
    for _ in range(ATTEMPTS):
        current = resource.collection.newest(context.key)
        if current is None:
            raise NotFound.of(resource.group_resource, context.route.name)
        old = resource.object(current.data)
        new = change(resource.object(current.data))
        version = new["metadata"].get("resourceVersion")
        if version and version != str(current.version):
            raise write.modified(resource, context.route.name)
        new["metadata"]["resourceVersion"] = str(current.version)
        try:
            return await _attempt(context, current, old, new, options), False
        except index.Conflict:
            if version:
                raise write.modified(resource, context.route.name) from None
    raise write.modified(resource, context.route.name)


async def _attempt(context: Context, current: Entry, old: Json, new: Json, options: WriteOptions) -> bytes:
    resource = context.resource
    assert resource.collection is not None
    new = write.owned(context, old, new, options, context.route.subresource)
    await context.admission.mutate(context, "UPDATE", new, old, options)
    end = None if context.route.subresource else resource.strategy.begin(new, old, resource.collection)
    try:
        new = await _prepared(context, old, new, options)
        return await _store(context, current, old, new, options)
    finally:
        if end is not None:
            end()


async def _prepared(context: Context, old: Json, new: Json, options: WriteOptions) -> Json:
    """The new object, with all that the server has to say about it."""
    resource, subresource = context.resource, context.route.subresource
    strategy = resource.strategy.subresources.get(subresource, resource.strategy)
    meta, before = new["metadata"], old["metadata"]
    meta.pop("selfLink", None)
    for field in ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"):
        if field not in meta and field in before:
            meta[field] = before[field]
    meta["generation"] = before.get("generation", meta.get("generation"))
    if meta["generation"] is None:
        del meta["generation"]
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
    errors = metadata.validate_update(new, old)
    if subresource == "status":
        errors += strategy.validate_status_update(new, old)
    else:
        errors += metadata.validate_update(new, old)
        errors += strategy.validate_update(new, old)
    if errors:
        raise Invalid.of(resource.gvk.group_kind, context.route.name, errors)
    if not subresource:
        context.request.warnings.extend(strategy.warnings(new, old))
    await context.admission.validate(context, "UPDATE", new, old, options)
    return new


async def _store(context: Context, current: Entry, old: Json, new: Json, options: WriteOptions) -> bytes:
    resource = context.resource
    assert resource.collection is not None
    changed = write.same(old, new)
    if changed is None:
        return current.data
    new = changed
    if options.dry_run:
        return msgspec.json.encode(write.stored(resource, new))
    meta = new["metadata"]
    dying = meta.get("deletionTimestamp") and not meta.get("deletionGracePeriodSeconds")
    if dying and not meta.get("finalizers") and resource.strategy.is_finalized(new):  # nothing holds it any more
        await context.index.delete(resource.collection, current.key, current)
        return msgspec.json.encode(write.stored(resource, new))
    entry = await write.put(context, new, current)
    return entry.data
