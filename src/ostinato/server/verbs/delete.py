"""delete: remove an object, immediately or after its grace period and finalizers.

- Graceful deletion: the first delete sets deletionTimestamp; the kubelet removes the Pod later.
- Finalizers block removal; a propagation policy is represented as a finalizer of the garbage collector.
- A further delete can only shorten the grace period.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec

from ostinato.api.errors import BadRequest, Conflict, NotFound
from ostinato.api.gvk import GroupResource
from ostinato.api.time import Time
from ostinato.api.wire import DecodeError
from ostinato.server.request import Request, Response
from ostinato.server.request.context import Context
from ostinato.server.request.negotiate import body_media, form_of
from ostinato.server.request.options import DeleteOptions, check_list_options, delete_options, list_options
from ostinato.server.request.present import list_response, object_response, value_response
from ostinato.server.resources.resource import Resource
from ostinato.server.resources.strategy import Json, Strategy
from ostinato.server.schema.decoding.builtin import BadValue, TypeMismatch
from ostinato.server.schema.decoding.builtin import read as read_builtin
from ostinato.server.schema.decoding.objects import decode_value, not_registered
from ostinato.server.store import records
from ostinato.server.store.records import Entry
from ostinato.server.verbs import write
from ostinato.server.verbs.list import listing

_OPTIONS = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"
_SCHEME = "pkg/apis/meta/internalversion/scheme/register.go:27"
_FOREGROUND, _ORPHAN = "foregroundDeletion", "orphan"


class Deletion(msgspec.Struct, frozen=True):
    """The result of a deletion."""

    obj: Json  # current or last state
    gone: bool  # removed from the store
    shown: bool = True  # respond with the object; else with a Status that has its uid


async def delete(context: Context) -> Response:
    form = form_of(context.request, context.resource)
    options = await read_options(context.request)
    done = await delete_object(context, options)
    if not done.shown:
        return value_response(_success(context.resource, done.obj), form)
    waits = not done.gone and options.orphan_dependents is False
    return object_response(
        context.resource, write.encode_unstored(context.resource, done.obj), form, 202 if waits else 200
    )


async def delete_collection(context: Context) -> Response:
    request, resource = context.request, context.resource
    form = form_of(request, resource)
    selected = list_options(request)
    check_list_options(selected, watch=selected.watch)
    options = await read_options(request)
    found = await listing(context, selected)
    for entry in found.entries:
        namespace, _, name = entry.key.rpartition("/")
        route = msgspec.structs.replace(context.route, namespace=namespace, name=name)
        try:
            await delete_object(msgspec.structs.replace(context, route=route), options)
        except NotFound:
            continue
    return await list_response(context, resource, found.entries, found.metadata, form)


async def read_options(request: Request) -> DeleteOptions:
    """DeleteOptions from the body, or else from the query."""
    data = await request.read()
    if not data:
        return delete_options(request, None)
    media = body_media(request)
    try:
        value = decode_value(data, media)
        kind = value.get("kind") or "DeleteOptions"
        if kind != "DeleteOptions":
            version = value.get("apiVersion") or "meta.k8s.io/v1"
            raise BadRequest.of(not_registered(kind, version, _SCHEME))
        options, _ = read_builtin(_OPTIONS, value)
    except (DecodeError, TypeMismatch, BadValue) as error:
        raise BadRequest.of(str(error)) from error
    if request.audit is not None:
        request.audit.note_options(options)
    return delete_options(request, options)


def _success(resource: Resource, obj: Json) -> Json:
    details: dict[str, Any] = {"name": obj["metadata"]["name"]}
    if resource.gvr.group:
        details["group"] = resource.gvr.group
    details["kind"] = resource.gvr.resource
    details["uid"] = obj["metadata"]["uid"]
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}


async def delete_object(context: Context, options: DeleteOptions) -> Deletion:
    """Delete an object or begin its deletion, retrying on conflict.

    An object that this request marked for deletion may be removed by another client, such as the kubelet, before
    this request removes it: that is success, not NotFound.
    """
    marked: Json | None = None
    while True:
        current = context.collection.newest(context.key)
        if current is None:
            if marked is None:
                raise NotFound.of(context.resource.group_resource, context.route.name)
            return Deletion(marked, gone=True, shown=context.resource.strategy.returns_deleted)
        old = context.resource.object(await write.converted_data(context.resource, current))
        if marked is not None and old["metadata"]["uid"] != marked["metadata"]["uid"]:  # recreated meanwhile
            return Deletion(marked, gone=True, shown=context.resource.strategy.returns_deleted)
        attempt = _Attempt(context, current, old, options)
        try:
            return await attempt.run()
        except records.Conflict:
            marked = attempt.marked or marked


class _Attempt:
    """The deletion of an object at one resourceVersion."""

    def __init__(self, context: Context, current: Entry, old: Json, options: DeleteOptions) -> None:
        self._context = context
        self._resource = context.resource
        self._strategy = context.resource.strategy
        self._options = options
        self._current = current
        self._old = old  # in the resource's version
        self._now = context.world.clock.now()
        self.marked: Json | None = None  # the state stored with a grace period of 0

    async def run(self) -> Deletion:
        context, options, strategy = self._context, self._options, self._strategy
        if options.propagation is None and options.orphan_dependents is None:
            context.request.warnings.extend(strategy.delete_warnings)
        new = {**self._old, "metadata": dict(self._old["metadata"])}
        meta = new["metadata"]
        if strategy.begins_deletion(new, self._now):  # kinds with their own deletion phases
            _check_preconditions(self._resource, self._old, options, phased=True)
            _set_finalizers(meta, _finalizers_of(meta, options, strategy, phased=True))
            admitted_options = msgspec.structs.replace(options, uid=meta["uid"])
            await context.admission.validate(context, "DELETE", None, self._old, admitted_options)
            return Deletion(await self._store(new), gone=False)
        _check_preconditions(self._resource, self._old, options)
        asked = options.grace if options.grace is None or options.grace >= 0 else 1
        if self._is_terminating_sooner(meta, asked):
            return Deletion(self._old, gone=False, shown=strategy.returns_deleted)
        grace = self._set_grace(new, asked)
        _set_finalizers(meta, _finalizers_of(meta, options, strategy))
        admitted_options = options if grace is None else msgspec.structs.replace(options, grace=grace)
        await context.admission.validate(context, "DELETE", None, self._old, admitted_options)
        held = bool(meta.get("finalizers"))
        if grace is None:
            if not held:
                return await self._remove(self._old)
            _set_immediate_deletion(meta, self._now)
        stored = await self._store(new)
        if held or grace:
            return Deletion(stored, gone=False)
        self.marked = stored
        return await self._remove(stored)

    def _is_terminating_sooner(self, meta: Json, asked: int | None) -> bool:
        """Whether the object is already terminating with a grace period that is not longer."""
        left: int = meta.get("deletionGracePeriodSeconds") or 0
        return bool(meta.get("deletionTimestamp")) and left > 0 and (asked is None or asked >= left)

    def _set_grace(self, new: Json, asked: int | None) -> int | None:
        """Set the deletion timestamp; return the grace period in seconds, None for immediate deletion."""
        meta = new["metadata"]
        if not meta.get("deletionTimestamp"):
            grace = self._strategy.grace(new, asked)
            if grace is None:
                return None
            _set_deletion(meta, self._now + timedelta(seconds=grace), grace)
            if meta.get("generation"):
                meta["generation"] += 1
            return grace
        before = meta.get("deletionGracePeriodSeconds")
        if not before or asked is None:
            return None
        moment: datetime = Time.parse(meta["deletionTimestamp"]) + timedelta(seconds=asked - before)
        if moment < self._now:
            moment, asked = self._now, min(asked, 1)
        _set_deletion(meta, moment, asked)
        return asked

    async def _store(self, new: Json) -> Json:
        """Store the object if it has changed, and return its stored state."""
        if new == self._old or self._options.dry_run:
            return new
        self._current = await write.put(self._context, new, self._current)
        return self._resource.object(await write.converted_data(self._resource, self._current))

    async def _remove(self, last: Json) -> Deletion:
        shown = self._strategy.returns_deleted
        if not self._options.dry_run:
            context = self._context
            version = await context.index.delete(context.collection, self._current.key, self._current)
            last = {**last, "metadata": {**last["metadata"], "resourceVersion": str(version)}}
            await self._strategy.after_delete(last, context.index)
        return Deletion(last, gone=True, shown=shown)


def _check_preconditions(resource: Resource, obj: Json, options: DeleteOptions, *, phased: bool = False) -> None:
    meta = obj["metadata"]
    if phased:
        for what, wanted, found in (
            ("UID", options.uid, meta["uid"]),
            ("ResourceVersion", options.resource_version, meta["resourceVersion"]),
        ):
            if wanted is not None and wanted != found:
                why = f"Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}"
                raise Conflict.of(resource.group_resource, meta["name"], why)
    if options.uid is None and options.resource_version is None:
        return
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


def _finalizers_of(meta: Json, options: DeleteOptions, strategy: Strategy, *, phased: bool = False) -> list[str]:
    """The finalizers after applying the propagation policy.

    Precedence: the request's policy, the object's finalizers, the default of the kind.
    """
    present: list[str] = meta.get("finalizers", [])
    asked = options.orphan_dependents is not None or options.propagation is not None
    if not present and not asked and not strategy.orphans_dependents:
        return present
    if not strategy.garbage_collected:
        wanted = ""
    elif options.orphan_dependents is not None:
        wanted = _ORPHAN if options.orphan_dependents else _FOREGROUND if phased else ""
    elif options.propagation is not None:
        wanted = {"Foreground": _FOREGROUND, "Orphan": _ORPHAN}.get(options.propagation, "")
    else:
        of_collector = [name for name in present if name in (_FOREGROUND, _ORPHAN)]
        wanted = of_collector[0] if of_collector else _ORPHAN if strategy.orphans_dependents else ""
    kept = [name for name in present if name not in (_FOREGROUND, _ORPHAN)]
    if wanted:
        kept.append(wanted)
    return present if set(kept) == set(present) else kept


def _set_finalizers(meta: Json, finalizers: list[str]) -> None:
    if finalizers:
        meta["finalizers"] = finalizers
    else:
        meta.pop("finalizers", None)


def _set_deletion(meta: Json, moment: datetime, grace: int) -> None:
    meta["deletionTimestamp"] = str(Time.of(moment))
    meta["deletionGracePeriodSeconds"] = grace


def _set_immediate_deletion(meta: Json, now: datetime) -> None:
    """Set deletionTimestamp and a grace period of 0: the object is removed with its last finalizer."""
    if not meta.get("deletionTimestamp") and meta.get("generation"):
        meta["generation"] += 1
    before = meta.get("deletionTimestamp")
    moment = before if before and Time.parse(before) <= now else str(Time.of(now))
    meta["deletionTimestamp"] = moment
    meta["deletionGracePeriodSeconds"] = 0
