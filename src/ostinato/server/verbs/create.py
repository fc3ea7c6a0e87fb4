"""create: a new object."""

from __future__ import annotations

import msgspec

from ostinato.api import names
from ostinato.api.errors import AlreadyExists, APIError, Invalid, Unknown
from ostinato.server import body, metadata
from ostinato.server.negotiate import Form, body_media, form_of
from ostinato.server.options import WriteOptions, write_options
from ostinato.server.present import object_response
from ostinato.server.request import Response
from ostinato.server.resources.strategy import Json
from ostinato.server.store import index
from ostinato.server.verbs import write
from ostinato.server.verbs.context import Context

GENERATED_NAMES = 8  # how many generated names are tried before giving up

_OF_THE_SERVER = ("creationTimestamp", "uid", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")


async def create(context: Context) -> Response:
    request = context.request
    form = form_of(request, context.resource)
    media = body_media(request.headers.get("content-type", ""))
    data = await request.read()
    options = write_options(request, "CreateOptions")
    obj = body.read(request, context.resource, data, media, options)
    return await create_object(context, obj, options, form)


async def create_object(
    context: Context, obj: Json, options: WriteOptions, form: Form, *, tracked: bool = False
) -> Response:
    """Bring an object into being, from the point where its body is read and defaulted.

    `tracked`: its managedFields say already what the client owns (an apply).
    """
    for field in _OF_THE_SERVER:
        obj["metadata"].pop(field, None)
    write.fit_namespace(context, obj)
    write.drop_repeated_owners(context.request, obj)
    if not tracked:
        obj = write.owned(context, None, obj, options)  # what admission adds has no owner
    await context.admission.mutate(context, "CREATE", obj, None, options)
    write.drop_repeated_owners(context.request, obj, write.AFTER_ADMISSION)
    generated = _name(context, obj)
    obj["metadata"]["uid"] = context.world.ids.uid()
    obj["metadata"]["creationTimestamp"] = write.now(context.world.clock)
    strategy = context.resource.strategy
    end = strategy.begin(obj, None, context.collection)
    try:
        if strategy.generation:
            obj["metadata"]["generation"] = 1
        strategy.prepare_create(obj)
        _validate(context, obj)
        await context.admission.validate(context, "CREATE", obj, None, options)
        data = await _stored(context, obj, options, generated=generated)
    finally:
        if end is not None:
            end()
    return object_response(context.resource, data, form, 201)


def _name(context: Context, obj: Json) -> bool:
    """Give an object a name that is free, if it asks for one; says whether it did."""
    meta = obj["metadata"]
    prefix = meta.get("generateName")
    if meta.get("name") or not prefix:
        return False
    base = names.generate_name_base(prefix)
    for _ in range(GENERATED_NAMES):
        meta["name"] = base + context.world.ids.suffix()
        if context.collection.newest(context.resource.key(meta.get("namespace", ""), meta["name"])) is None:
            break
    return True


def _validate(context: Context, obj: Json) -> None:
    resource, strategy = context.resource, context.resource.strategy
    errors = [*metadata.validate(obj, resource), *strategy.validate(obj)]
    if errors:
        raise Invalid.of(resource.storage_gvk.group_kind, obj["metadata"].get("name", ""), errors)
    context.request.warnings.extend(strategy.warnings(obj, None))


async def _stored(context: Context, obj: Json, options: WriteOptions, *, generated: bool) -> bytes:
    meta = obj["metadata"]
    version = meta.pop("resourceVersion", "")
    if version.isdigit() and int(version):
        raise Unknown.of("resourceVersion should not be set on objects to be created")
    existing = context.collection.newest(context.resource.key(meta.get("namespace", ""), meta["name"]))
    if existing is not None:
        raise _exists(context, obj, existing, generated=generated)
    if options.dry_run:
        return write.unstored(context.resource, obj)
    try:
        return (await write.put(context, obj, None)).data
    except index.Conflict as conflict:
        raise _exists(context, obj, conflict.current, generated=generated) from None


def _exists(context: Context, obj: Json, existing: index.Entry | None, *, generated: bool) -> APIError:
    resource, name = context.resource, obj["metadata"]["name"]
    if generated:
        error = AlreadyExists.name_not_generated(resource.group_resource, name, 1)
    else:
        error = AlreadyExists.of(resource.group_resource, name)
    if existing is not None and resource.object(existing.data)["metadata"].get("deletionTimestamp"):
        return AlreadyExists(msgspec.structs.replace(error.status, message=f"object is being deleted: {error.message}"))
    return error
