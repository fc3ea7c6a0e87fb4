"""create: store a new object."""

from __future__ import annotations

import msgspec

from ostinato.api.errors import AlreadyExists, APIError, Unknown
from ostinato.api.validation import names
from ostinato.server.flow.heavy import is_heavy
from ostinato.server.request import Response, body
from ostinato.server.request.context import Context
from ostinato.server.request.negotiate import Form, body_media, form_of
from ostinato.server.request.options import WriteOptions, write_options
from ostinato.server.request.present import presented
from ostinato.server.resources import metadata
from ostinato.server.resources.repeated_bodies import Sent, may_repeat
from ostinato.server.resources.strategy import Json
from ostinato.server.schema.decoding.objects import decode_value
from ostinato.server.store import records
from ostinato.server.verbs import write
from ostinato.server.verbs.get import parse_version
from ostinato.server.verbs.validation_errors import invalid

GENERATED_NAMES = 8  # attempts to find a free generated name

_OF_THE_SERVER = ("creationTimestamp", "uid", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")


async def create(context: Context) -> Response:
    request = context.request
    form = form_of(request, context.resource)
    media = body_media(request, custom=context.resource.custom)
    data = await request.read()
    options = write_options(request, "CreateOptions")
    context.heavy = is_heavy(data, media)

    sent = None
    if not context.heavy and not request.audited and may_repeat(data, media):
        sent = Sent(data, media, context.route.namespace, write.manager_of(request, options), options.field_validation)
        known = context.resource.repeated_bodies.get(sent, write.now(context.world.clock))
        if known is not None:
            request.sent = lambda: decode_value(data, media)
            return await _create_tracked(context, known, options, form)

    warned = len(request.warnings)
    if context.heavy:
        obj = await context.in_thread(lambda: body.read(request, context.resource, data, media, options))
    else:
        obj = body.read(request, context.resource, data, media, options)
    for field in _OF_THE_SERVER:
        obj["metadata"].pop(field, None)
    is_repeatable = "managedFields" not in obj["metadata"] and context.resource.conversion is None
    obj = await _tracked(context, obj, options)
    if sent is not None and is_repeatable and len(request.warnings) == warned:
        context.resource.repeated_bodies.put(sent, obj)
    return await _create_tracked(context, obj, options, form)


async def create_object(
    context: Context, obj: Json, options: WriteOptions, form: Form, *, tracked: bool = False
) -> Response:
    """Create an object whose body is decoded and defaulted.

    `tracked`: its managedFields already include this write (an apply).
    """
    obj = await _tracked(context, obj, options, tracked=tracked)
    return await _create_tracked(context, obj, options, form)


async def _tracked(context: Context, obj: Json, options: WriteOptions, *, tracked: bool = False) -> Json:
    """Return the object in its namespace, with its managedFields: fields that admission adds have no manager."""
    obj["metadata"].pop("selfLink", None)
    write.set_namespace(context, obj)
    write.drop_repeated_owners(context.request, obj)
    if tracked:
        return obj
    if context.resource.conversion is not None:
        return await context.resource.conversion.resolve(lambda: write.with_managed_fields(context, None, obj, options))
    if context.heavy:
        return await context.in_thread(lambda: write.with_managed_fields(context, None, obj, options))
    return write.with_managed_fields(context, None, obj, options)


async def _create_tracked(context: Context, obj: Json, options: WriteOptions, form: Form) -> Response:
    """Create an object: admission, its name, validation, the store."""
    await context.admission.mutate(context, "CREATE", obj, None, options)
    write.restore_names(context, obj)
    write.drop_repeated_owners(context.request, obj, write.AFTER_ADMISSION)
    _name(context, obj)
    obj["metadata"]["uid"] = context.world.ids.uid()
    obj["metadata"]["creationTimestamp"] = write.now(context.world.clock)
    strategy = context.resource.strategy
    allocating = strategy.allocate(obj, None, context.index, dry=options.dry_run)
    allocated = None if allocating is None else await allocating
    try:
        if strategy.generation:
            obj["metadata"]["generation"] = 1
        context.request.warnings.extend(strategy.prepare_create(obj) or ())
        if context.heavy or context.resource.custom:
            await context.check(lambda: _validate(context, obj))
        else:
            _validate(context, obj)
        await context.admission.validate(context, "CREATE", obj, None, options)
        data = await _stored(context, obj, options)
    except APIError:
        if allocated is not None:
            await allocated.abandon()
        raise
    if allocated is not None:
        await allocated.commit(obj)
    return await presented(context, data, form, 201)


def _name(context: Context, obj: Json) -> None:
    """Generate a free name if the object has generateName and no name."""
    meta = obj["metadata"]
    prefix = meta.get("generateName")
    if meta.get("name") or not prefix:
        return
    base = names.generate_name_base(prefix)
    for _ in range(GENERATED_NAMES):
        meta["name"] = base + context.world.ids.suffix()
        if context.collection.newest(context.resource.key(meta.get("namespace", ""), meta["name"])) is None:
            return


def _validate(context: Context, obj: Json) -> None:
    resource, strategy = context.resource, context.resource.strategy
    name = obj["metadata"].get("name", "")
    refused = invalid(context, obj, name, lambda: [*metadata.validate(obj, resource), *strategy.validate(obj)])
    if refused is not None:
        raise refused
    context.request.warnings.extend(strategy.warnings(obj, None))


async def _stored(context: Context, obj: Json, options: WriteOptions) -> bytes:
    meta = obj["metadata"]
    existing = context.collection.newest(context.resource.key(meta.get("namespace", ""), meta["name"]))
    if options.dry_run:
        if existing is not None:
            raise _exists(context, obj, existing)
        return await write.dry_run_result(context.resource, obj)
    if _names_version(meta.pop("resourceVersion", "")):
        raise Unknown.of("resourceVersion should not be set on objects to be created")
    if existing is not None and context.resource.conversion is None:  # with conversion, the webhook is called first
        raise _exists(context, obj, existing)
    try:
        return await write.converted_data(context.resource, await write.put(context, obj, None))
    except records.Conflict as conflict:
        raise _exists(context, obj, conflict.current) from None


def _names_version(text: str) -> bool:
    try:
        return bool(text) and parse_version(text) > 0
    except ValueError:
        return False


def _exists(context: Context, obj: Json, existing: records.Entry | None) -> APIError:
    resource, meta = context.resource, obj["metadata"]
    if meta.get("generateName"):  # even if the client set the name, as in kube-apiserver
        error = AlreadyExists.name_not_generated(resource.group_resource, meta["name"], 1)
    else:
        error = AlreadyExists.of(resource.group_resource, meta["name"])
    if existing is not None and resource.object(existing.data)["metadata"].get("deletionTimestamp"):
        return AlreadyExists(msgspec.structs.replace(error.status, message=f"object is being deleted: {error.message}"))
    return error
