"""What the writing verbs share: preparing an object, telling its owner, storing it."""

from __future__ import annotations

from typing import Any

import msgspec

from ostinato.api.apply import restore_times
from ostinato.api.errors import BadRequest, Conflict
from ostinato.server.negotiate import BUILTIN, CUSTOM, Form, form_of
from ostinato.server.options import WriteOptions
from ostinato.server.present import OBJECT_FORMS
from ostinato.server.request import Request
from ostinato.server.resources.resource import Resource
from ostinato.server.resources.strategy import Json
from ostinato.server.store.index import Entry
from ostinato.server.verbs.context import Context
from ostinato.world import Clock

_TYPE = frozenset({"kind", "apiVersion"})
MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def now(clock: Clock) -> str:
    """The time as metadata tells it."""
    return clock.now().isoformat(timespec="seconds")[:19] + "Z"


def answer_form(context: Context) -> Form:
    supported = CUSTOM if context.resource.custom else BUILTIN
    return form_of(context.request.headers.get("accept", ""), OBJECT_FORMS, supported=supported)


def manager_of(request: Request, options: WriteOptions) -> str:
    """The field manager: as the client names it, else the beginning of its User-Agent."""
    if options.field_manager:
        return options.field_manager
    agent = request.headers.get("user-agent", "").partition("/")[0]
    return "".join(character for character in agent[:128] if character.isprintable())


def owned(context: Context, old: Json | None, new: Json, options: WriteOptions, subresource: str = "") -> Json:
    """The object with its managedFields after a write that is not an apply."""
    manager = context.resource.managers.get(subresource)
    if manager is None:
        new["metadata"].pop("managedFields", None)
        return new
    return manager.update(old, new, manager_of(context.request, options), now(context.world.clock))


def check_namespace(context: Context, obj: Json) -> None:
    """An object is in the namespace of the path; it may leave that out."""
    metadata = obj["metadata"]
    namespace = metadata.get("namespace", "")
    wanted = context.route.namespace if context.resource.namespaced else ""
    if namespace and namespace != wanted:
        raise BadRequest.of("the namespace of the provided object does not match the namespace sent on the request")
    if wanted:
        metadata["namespace"] = wanted


def check_name(context: Context, obj: Json) -> None:
    """An object that is written to a path has the name of the path."""
    name, wanted = obj["metadata"].get("name", ""), context.route.name
    if not name:
        raise BadRequest.of(f"the name of the object ({wanted} based on URL) was undeterminable: name must be provided")
    if name != wanted:
        raise BadRequest.of(f"the name of the object ({name}) does not match the name on the URL ({wanted})")


def stored(resource: Resource, obj: Json) -> Json:
    """The object as it is stored: without kind and apiVersion, in the version of the store."""
    if resource.to_storage is not None:
        obj = resource.to_storage(obj)
    return {key: value for key, value in obj.items() if key not in _TYPE}


def new_entry(resource: Resource, obj: Json) -> Entry:
    metadata: dict[str, Any] = obj["metadata"]
    key = resource.key(metadata.get("namespace", ""), metadata["name"])
    return Entry(key, 0, b"", metadata.get("labels") or {}, resource.strategy.fields(obj), metadata.get("uid", ""))


async def put(context: Context, obj: Json, expected: Entry | None) -> Entry:
    """Store an object; store.Conflict if it has changed meanwhile."""
    resource = context.resource
    assert resource.collection is not None
    body = stored(resource, obj)
    metadata = body["metadata"] = dict(body["metadata"])

    def encode(version: int) -> bytes:
        metadata["resourceVersion"] = str(version)
        return msgspec.json.encode(body)

    return await context.index.put(resource.collection, new_entry(resource, body), expected, encode)


def same(old: Json, new: Json) -> Json | None:
    """None if the new object is no other than the old one; else the new one."""
    new = restore_times(old, new)
    return None if new == old else new


def modified(resource: Resource, name: str) -> Conflict:
    return Conflict.of(resource.group_resource, name, MODIFIED)
