"""delete: an object goes, at once or when its grace period and its finalizers allow."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec

from ostinato.api.errors import APIError, BadRequest, Conflict, NotFound
from ostinato.api.gvk import GroupResource
from ostinato.api.time import Time
from ostinato.server import body
from ostinato.server.negotiate import BUILTIN, Form, body_media, form_of
from ostinato.server.options import DeleteOptions, check_list_options, delete_options, list_options
from ostinato.server.present import LIST_FORMS, list_response, object_response, value_response
from ostinato.server.request import Request, Response
from ostinato.server.resources.resource import Resource
from ostinato.server.resources.strategy import Json, Strategy
from ostinato.server.schema.builtin import BadValue, TypeMismatch
from ostinato.server.schema.builtin import read as read_builtin
from ostinato.server.store import index
from ostinato.server.store.index import Entry
from ostinato.server.verbs import write
from ostinato.server.verbs.context import Context
from ostinato.server.verbs.selection import Selection

_OPTIONS = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"


async def read_options(request: Request) -> DeleteOptions:
    """The options in the body, if there is one; else those in the query."""
    data = await request.read()
    if not data:
        return delete_options(request, None)
    media = body_media(request.headers.get("content-type", ""), supported=BUILTIN)
    value = body.decode(data, media, "DeleteOptions")
    kind = value.get("kind")
    if kind not in (None, "", "DeleteOptions"):
        raise BadRequest.of(f"decoded object cannot be converted to DeleteOptions: it is a {kind}")
    try:
        options, _ = read_builtin(_OPTIONS, value)
    except (TypeMismatch, BadValue) as error:
        raise BadRequest.of(str(error)) from error
    return delete_options(request, options)


async def delete(context: Context) -> Response:
    form = write.answer_form(context)
    options = await read_options(context.request)
    obj, gone = await delete_object(context, options)
    resource = context.resource
    if gone and not resource.strategy.returns_deleted:
        return value_response(_deleted_status(resource, obj), form)
    return object_response(resource, msgspec.json.encode(write.stored(resource, obj)), form)


def _deleted_status(resource: Resource, obj: Json) -> Json:
    details: dict[str, Any] = {"name": obj["metadata"]["name"]}
    if resource.gvr.group:
        details["group"] = resource.gvr.group
    details["kind"] = resource.gvr.resource
    details["uid"] = obj["metadata"]["uid"]
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}


async def delete_object(context: Context, options: DeleteOptions) -> tuple[Json, bool]:
    """Delete, or begin to; the object as it is then, and whether it is gone."""
    resource = context.resource
    assert resource.collection is not None
    while True:
        current = resource.collection.newest(context.key)
        if current is None:
            raise NotFound.of(resource.group_resource, context.route.name)
        obj = resource.object(current.data)
        _check_preconditions(resource, obj, options)
        await context.admission.validate(context, "DELETE", None, obj, options)
        try:
            return await _delete(context, current, obj, options)
        except index.Conflict:
            continue


def _check_preconditions(resource: Resource, obj: Json, options: DeleteOptions) -> None:
    meta = obj["metadata"]
    about = GroupResource(resource.gvk.group, resource.gvk.kind)
    if options.uid is not None and options.uid != meta["uid"]:
        raise Conflict.of(
            about,
            meta["name"],
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({meta['uid']}). "
            "The object might have been deleted and then recreated",
        )
    if options.resource_version is not None and options.resource_version != meta["resourceVersion"]:
        raise Conflict.of(
            about,
            meta["name"],
            f"the ResourceVersion in the precondition ({options.resource_version}) does not match the ResourceVersion "
            f"in record ({meta['resourceVersion']}). The object might have been modified",
        )


async def _delete(context: Context, current: Entry, obj: Json, options: DeleteOptions) -> tuple[Json, bool]:
    resource, strategy = context.resource, context.resource.strategy
    assert resource.collection is not None
    new = {**obj, "metadata": dict(obj["metadata"])}
    meta = new["metadata"]
    finalizers = _finalizers(meta.get("finalizers", []), options, strategy)
    if finalizers:
        meta["finalizers"] = finalizers
    else:
        meta.pop("finalizers", None)
    grace = strategy.grace(obj, options.grace)
    if strategy.begins_deletion(new, context.world.clock.now()):
        stays = True  # kinds that go through phases of their own: namespaces
    else:
        stays = bool(finalizers) or bool(grace)
        if stays:
            _mark(context, new, grace)
    if not stays:
        if options.dry_run:
            return obj, True
        version = await context.index.delete(resource.collection, current.key, current)
        meta["resourceVersion"] = str(version)
        if strategy.returns_deleted or grace is not None:
            _mark_gone(context, new, grace)
        return new, True
    if new == obj or options.dry_run:
        return new, False
    entry = await write.put(context, new, current)
    return resource.object(entry.data), False


def _finalizers(present: list[str], options: DeleteOptions, strategy: Strategy) -> list[str]:
    """The finalizers that the propagation policy leaves or adds."""
    policy = options.propagation
    if policy is None and options.orphan_dependents is not None:
        policy = "Orphan" if options.orphan_dependents else "Background"
    if policy is None and strategy.orphans_dependents and "foregroundDeletion" not in present:
        policy = "Orphan"
    if policy is None:
        return present
    wanted = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}.get(policy)
    kept = [name for name in present if name not in ("foregroundDeletion", "orphan") or name == wanted]
    if wanted and wanted not in kept:
        kept.append(wanted)
    return kept


def _mark(context: Context, obj: Json, grace: int | None) -> None:
    """Set or shorten the time at which the object goes."""
    meta = obj["metadata"]
    seconds = grace or 0
    moment = context.world.clock.now()
    if meta.get("deletionTimestamp"):
        before = meta.get("deletionGracePeriodSeconds") or 0
        if seconds >= before:
            return
        began = Time.parse(meta["deletionTimestamp"]) - timedelta(seconds=before)
        meta["deletionTimestamp"] = str(Time.of(began + timedelta(seconds=seconds)))
        meta["deletionGracePeriodSeconds"] = seconds
        return
    meta["deletionTimestamp"] = str(Time.of(moment + timedelta(seconds=seconds)))
    meta["deletionGracePeriodSeconds"] = seconds
    if meta.get("generation"):
        meta["generation"] += 1


def _mark_gone(context: Context, obj: Json, grace: int | None) -> None:
    if grace is None:
        return
    meta = obj["metadata"]
    meta["deletionTimestamp"] = meta.get("deletionTimestamp") or write.now(context.world.clock)
    meta["deletionGracePeriodSeconds"] = 0


async def delete_collection(context: Context) -> Response:
    request, resource = context.request, context.resource
    form: Form = form_of(request.headers.get("accept", ""), LIST_FORMS)
    listing = list_options(request)
    check_list_options(listing, watch=False)
    options = await read_options(request)
    selection = Selection(context, listing)
    assert resource.collection is not None
    entries = [entry for entry in resource.collection.select(selection.prefix) if selection.selects(entry)]
    for entry in entries:
        namespace, _, name = entry.key.rpartition("/")
        route = msgspec.structs.replace(context.route, namespace=namespace, name=name)
        try:
            await delete_object(msgspec.structs.replace(context, route=route), options)
        except NotFound:
            continue
    return list_response(resource, entries, {"resourceVersion": str(context.index.version)}, form, "Metadata")


__all__ = ["APIError", "delete", "delete_collection", "delete_object"]
