"""create: a new object."""

from __future__ import annotations

from ostinato.api import names
from ostinato.api.errors import AlreadyExists, Invalid, Unknown
from ostinato.server import body, metadata
from ostinato.server.negotiate import Form
from ostinato.server.options import WriteOptions, write_options
from ostinato.server.present import object_response, value_response
from ostinato.server.request import Response
from ostinato.server.resources.strategy import Json
from ostinato.server.store import index
from ostinato.server.verbs import write
from ostinato.server.verbs.context import Context

GENERATED_NAMES = 8  # how many generated names are tried before giving up


async def create(context: Context) -> Response:
    request, resource = context.request, context.resource
    form = write.answer_form(context)
    options = write_options(request, "CreateOptions")
    obj = body.read(request, resource, await request.read(), options)
    obj.setdefault("metadata", {})
    resource.strategy.default(obj)
    return await create_object(context, obj, options, form)


async def create_object(context: Context, obj: Json, options: WriteOptions, form: Form) -> Response:
    """Bring an object into being, from the point where its body is read and defaulted."""
    resource = context.resource
    meta = obj["metadata"]
    write.check_namespace(context, obj)
    if meta.get("resourceVersion"):
        raise Unknown.of("resourceVersion should not be set on objects to be created")
    name = meta.get("name", "")
    obj = write.owned(context, None, obj, options)  # what admission adds has no owner
    await context.admission.mutate(context, "CREATE", obj, None, options)
    meta = obj["metadata"]
    for field in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"):
        meta.pop(field, None)
    strategy = resource.strategy
    if strategy.generation:
        meta["generation"] = 1
    meta["uid"] = context.world.ids.uid()
    meta["creationTimestamp"] = write.now(context.world.clock)
    assert resource.collection is not None
    end = strategy.begin(obj, None, resource.collection)
    try:
        strategy.prepare_create(obj)
        return await _store(context, obj, name, options, form)
    finally:
        if end is not None:
            end()


async def _store(context: Context, obj: Json, name: str, options: WriteOptions, form: Form) -> Response:
    resource, strategy, meta = context.resource, context.resource.strategy, obj["metadata"]
    for attempt in range(GENERATED_NAMES):
        if not name and meta.get("generateName"):
            meta["name"] = names.generate_name_base(meta["generateName"]) + context.world.ids.suffix()
        errors = strategy.validate(obj) if attempt == 0 else []
        if attempt == 0:
            errors = [*metadata.validate(obj, resource), *errors]
        if errors:
            raise Invalid.of(resource.gvk.group_kind, meta.get("name", ""), errors)
        if attempt == 0:
            context.request.warnings.extend(strategy.warnings(obj, None))
            await context.admission.validate(context, "CREATE", obj, None, options)
        assert resource.collection is not None
        if resource.collection.newest(resource.key(meta.get("namespace", ""), meta["name"])) is None:
            if options.dry_run:
                return object_response(resource, _dry(context, obj), form, 201)
            try:
                entry = await write.put(context, obj, None)
            except index.Conflict:
                pass
            else:
                return object_response(
                    resource, entry.data, form, 201, context.request.parameter("includeObject") or "Metadata"
                )
        if name or not meta.get("generateName"):
            raise AlreadyExists.of(resource.group_resource, meta["name"])
    raise AlreadyExists.name_not_generated(resource.group_resource, meta["name"], 1)


def _dry(context: Context, obj: Json) -> bytes:
    import msgspec  # noqa: PLC0415

    return msgspec.json.encode(write.stored(context.resource, obj))


__all__ = ["create", "create_object", "value_response"]
