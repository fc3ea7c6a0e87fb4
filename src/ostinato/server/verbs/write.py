"""Shared steps of writing verbs: prepare an object, update its managed fields, store it."""

from __future__ import annotations

import unicodedata
from collections.abc import Awaitable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import msgspec

from ostinato.api.apply import restore_times
from ostinato.api.errors import BadRequest, Conflict
from ostinato.server.request import Request
from ostinato.server.request.context import Context, OnEncoded
from ostinato.server.request.options import WriteOptions
from ostinato.server.resources.resource import Resource
from ostinato.server.resources.strategy import Json
from ostinato.server.store.index import Index
from ostinato.server.store.records import METADATA_ORDER, Entry
from ostinato.world import Clock

MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"

_encode = msgspec.json.Encoder().encode
_METADATA_MAPS = ("labels", "annotations")
_WITH_DATA = ("ConfigMap", "Secret")
_DATA_MAPS = ("data", "binaryData")
_encode_sorted = msgspec.json.Encoder(order="sorted").encode  # as Go encodes custom resources, which are maps
_PRINTABLE = frozenset({"L", "M", "N", "P", "S"})  # Unicode categories that Go's unicode.IsPrint accepts


def now(clock: Clock) -> str:
    """The current time in the format of metadata."""
    return timestamp(int(clock.wall()))


@lru_cache(maxsize=4)  # many writes share a second
def timestamp(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")[:19] + "Z"


def manager_of(request: Request, options: WriteOptions) -> str:
    """The field manager: from the options, else the first part of the User-Agent."""
    if options.field_manager:
        return options.field_manager
    agent: str = request.headers.get("user-agent", "").partition("/")[0]
    if agent.isascii() and agent.isprintable():
        return agent[:128]
    printable = [c for c in agent if c == " " or unicodedata.category(c)[0] in _PRINTABLE]
    return "".join(printable).encode()[:128].decode(errors="ignore")


def with_managed_fields(
    context: Context, old: Json | None, new: Json, options: WriteOptions, subresource: str = ""
) -> Json:
    """Return the object with its managedFields updated for a write that is not an apply."""
    manager = context.resource.managers.get(subresource)
    if manager is None:
        new["metadata"].pop("managedFields", None)
        return new
    return manager.update(old, new, manager_of(context.request, options), now(context.world.clock))


def set_namespace(context: Context, obj: Json) -> None:
    """Set the namespace of the path, or remove it if the kind is cluster-scoped; BadRequest if they differ."""
    metadata = obj["metadata"]
    namespace = metadata.get("namespace", "")
    wanted = context.route.namespace if context.resource.namespaced else ""
    if namespace == wanted:
        return
    if namespace and wanted:
        raise BadRequest.of("the namespace of the provided object does not match the namespace sent on the request")
    if wanted:
        metadata["namespace"] = wanted
    else:
        metadata.pop("namespace")


def check_name(context: Context, obj: Json) -> None:
    """Check that an object has the name of the path."""
    name, wanted = obj["metadata"].get("name", ""), context.route.name
    if not name:
        raise BadRequest.of(f"the name of the object ({wanted} based on URL) was undeterminable: name must be provided")
    if name != wanted:
        raise BadRequest.of(f"the name of the object ({name}) does not match the name on the URL ({wanted})")


def restore_names(context: Context, obj: Json) -> None:
    """Restore name and namespace of the path, in case admission changed them.

    A POST to a custom resource may have a name in its path, which does not apply to the object: as in kube-apiserver,
    the permission to create one object of a resource is the permission to create any in that namespace.
    """
    route = context.route
    if obj["metadata"].get("namespace", "") != (route.namespace if context.resource.namespaced else ""):
        set_namespace(context, obj)
    if route.name and route.verb != "create":
        check_name(context, obj)


def drop_repeated_owners(request: Request, obj: Json, when: str = "") -> None:
    """Drop duplicate owner references, with a warning. `when` is the origin of the duplicates, for the message."""
    references = obj["metadata"].get("ownerReferences")
    if not references or len(references) == 1:
        return
    kept: list[Any] = []
    repeated: list[str] = []
    for reference in references:
        if reference in kept:
            repeated.append(reference.get("uid", ""))
        else:
            kept.append(reference)
    if repeated:
        obj["metadata"]["ownerReferences"] = kept
        request.warnings.append(
            f".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, "
            "and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: "
            + ", ".join(repeated)
        )


AFTER_ADMISSION = " after mutating admission happens"


def new_entry(resource: Resource, obj: Json) -> Entry:
    metadata: dict[str, Any] = obj["metadata"]
    key = resource.key(metadata.get("namespace", ""), metadata["name"])
    return Entry(key, 0, b"", metadata.get("labels") or {}, resource.strategy.fields(obj), metadata.get("uid", ""))


def put(context: Context, obj: Json, expected: Entry | None) -> Awaitable[Entry]:
    """Store an object; store.Conflict on a concurrent change.

    Its key is that of the authorized route, whatever admission made of its metadata.
    """
    restore_names(context, obj)
    return put_object(context.index, context.resource, obj, expected, context.on_encoded)


async def put_object(
    index: Index, resource: Resource, obj: Json, expected: Entry | None, on_encoded: OnEncoded | None = None
) -> Entry:
    """Like `put`, without a request."""
    assert resource.collection is not None
    obj["metadata"].setdefault("resourceVersion", "")  # keeps its position in the encoding
    if resource.conversion is not None:
        obj = await resource.conversion.to_storage(obj)
    body = _ordered(resource, obj)
    metadata = body["metadata"]
    encode_body = _encode_sorted if resource.custom else _encode

    def encode(version: int) -> bytes:
        metadata["resourceVersion"] = str(version)
        data = encode_body(body)
        if on_encoded is not None:
            on_encoded(version, data)
        return data

    return await index.put(resource.collection, new_entry(resource, body), expected, encode)


async def converted_data(resource: Resource, entry: Entry) -> bytes:
    """The data of an entry in a resource's version, converted by its webhook if necessary."""
    return entry.data if resource.conversion is None else (await resource.conversion.entry(entry)).data


async def dry_run_result(resource: Resource, obj: Json) -> bytes:
    """The result of a dry run: with webhook conversion, the object as it would be read back."""
    conversion = resource.conversion
    if conversion is not None:
        return await conversion.data(encode_unstored(resource, await conversion.to_storage(obj)))
    return encode_unstored(resource, obj)


def encode_unstored(resource: Resource, obj: Json) -> bytes:
    """Encode an object that is not stored: of a dry run, or removed by the same write."""
    return (_encode_sorted if resource.custom else _encode)(_ordered(resource, obj))


def _ordered(resource: Resource, obj: Json) -> Json:
    """An object in storage order: metadata first, keys of maps sorted. Custom resources are sorted when encoded."""
    body = resource.stored(obj)
    metadata = body["metadata"]
    if resource.custom:
        body["metadata"] = dict(metadata)
        return body
    metadata = body["metadata"] = {name: metadata[name] for name in METADATA_ORDER if name in metadata}
    for name in _METADATA_MAPS:
        if name in metadata:
            metadata[name] = _sorted(metadata[name])
    if resource.gvk.kind in _WITH_DATA:
        for name in _DATA_MAPS:
            if name in body:
                body[name] = _sorted(body[name])
    return body


def _sorted(found: Any) -> Any:
    """Sort the keys of a map, as Go encodes it: a patch may have added some at the end."""
    if type(found) is not dict or len(found) < 2:
        return found
    keys = list(found)
    ordered = sorted(keys)
    return found if keys == ordered else {key: found[key] for key in ordered}


def unless_equal(old: Json, new: Json) -> Json | None:
    """Return the new object; None if it equals the old one."""
    new = restore_times(old, new)
    return None if new == old else new


def modified(resource: Resource, name: str) -> Conflict:
    return Conflict.of(resource.group_resource, name, MODIFIED)
