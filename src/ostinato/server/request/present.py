"""Presentation: encode stored objects in the negotiated form.

Plain JSON, the most frequent form, is assembled from stored bytes without decoding. The other forms (Table,
PartialObjectMetadata, YAML, protobuf, indented) are derived from it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from ostinato.api.errors import APIError, NotAcceptable, Unknown
from ostinato.api.status import Status
from ostinato.server.flow.heavy import is_heavy
from ostinato.server.flow.turns import Turns
from ostinato.server.request import Response
from ostinato.server.request.negotiate import PLAIN, Form
from ostinato.server.resources.resource import Resource
from ostinato.server.resources.strategy import Json
from ostinato.server.store.records import Entry

if TYPE_CHECKING:
    from ostinato.server.request.context import Context

A = TypeVar("A")
B = TypeVar("B")


def encode(value: Json, form: Form) -> bytes:
    """Encode a value in a form's media type."""
    if form.media == "yaml":
        from ostinato.api.wire.yaml_output import encode_yaml  # noqa: PLC0415 - loads only where it is needed

        return encode_yaml(value)
    if form.media == "protobuf":
        from ostinato.api import protobuf  # noqa: PLC0415 - its tables load only where they are needed

        return protobuf.encode(value)
    data = msgspec.json.encode(value)
    return msgspec.json.format(data, indent=2) if form.pretty else data + b"\n"


def object_response(resource: Resource, data: bytes, form: Form, status: int = 200) -> Response:
    """The response with one stored object."""
    if form is PLAIN:  # as `form_of` returns it
        return Response(status, resource.wrap(data) + b"\n")
    if form.convert:
        return Response(status, encode(_converted(resource, data, form), form), form.content_type)
    return Response(status, encode(resource.object(data), form), form.content_type)


def value_response(value: Json, form: Form, status: int = 200) -> Response:
    """The response with an object that is not stored: a Status, a Scale, a review. It is never converted."""
    return Response(status, encode(value, form), form.content_type)


def error_response(error: APIError, form: Form = PLAIN) -> Response:
    """The Status response of an error."""
    headers: tuple[tuple[str, str], ...] = ()
    if error.status.details is not None and error.status.details.retry_after_seconds > 0:
        headers = (("Retry-After", str(error.status.details.retry_after_seconds)),)
    return Response(error.code, encode(error.to_dict(), form), form.content_type, headers)


async def list_response(
    context: Context, resource: Resource, entries: Sequence[Entry], metadata: Json, form: Form
) -> Response:
    """The response with many stored objects. It is assembled in slices; other tasks run in between."""
    if form.convert:
        return await _converted_list(context, resource, entries, metadata, form)
    if resource.items_as_stored:
        parts = [entry.data for entry in entries]
    else:
        parts = await in_slices(context.lane.turns, lambda entry: resource.item(entry.data), entries, 64)
    response = _list_of(msgspec.json.encode(list_head(resource, metadata)), b"items", parts)
    if form == PLAIN:
        return response
    whole = await context.lane.run(context.request.line, lambda: encode(msgspec.json.decode(response.body), form))
    return Response(200, whole, form.content_type)


def list_head(resource: Resource, metadata: Json) -> Json:
    """A list without its items."""
    if resource.custom:
        metadata = {"continue": "", **metadata}  # lists of custom objects always have the field
    return {"kind": resource.list_kind, "apiVersion": resource.gvk.api_version, "metadata": metadata}


def _list_of(head: bytes, field: bytes, parts: list[bytes]) -> Response:
    """A JSON object whose last field is a list, as a body in parts."""
    before = head[:-1] + b',"' + field + b'":['
    if parts:
        parts[0] = before + parts[0]
        parts[-1] += b"]}\n"
    else:
        parts = [before + b"]}\n"]
    return Response(200, parts, between=b",")


async def in_slices(turns: Turns, function: Callable[[A], B], values: Sequence[A], size: int = 4) -> list[B]:
    """Map a function over values, yielding to other tasks if it takes long."""
    found: list[B] = []
    for start in range(0, len(values), size):
        found += map(function, values[start : start + size])
        await turns.pause()
    return found


async def presented(context: Context, data: bytes, form: Form, status: int = 200) -> Response:
    """Encode one stored object, in a worker thread if it is large."""
    if form is PLAIN or not is_heavy(data):
        return object_response(context.resource, data, form, status)
    return await context.lane.run(context.request.line, lambda: object_response(context.resource, data, form, status))


def _converted(resource: Resource, data: bytes, form: Form) -> Json:
    if form.convert == "Table":
        table = new_table(resource, form)
        table["metadata"] = {"resourceVersion": msgspec.json.decode(data)["metadata"].get("resourceVersion", "")}
        table["rows"] = [row(resource, data, form)]
        return table
    if form.convert == "PartialObjectMetadataList":
        if resource.custom:
            raise Unknown.of("content is not a list")
        raise _not_convertible("PartialObjectMetadataList", f"not a list ({_go_type(resource, '')})")
    return partial(data, form)


async def _converted_list(
    context: Context, resource: Resource, entries: Sequence[Entry], metadata: Json, form: Form
) -> Response:
    turns = context.lane.turns
    if form.convert == "PartialObjectMetadata":
        raise _not_convertible("PartialObjectMetadata", f"a list ({_go_type(resource, 'List')})")
    if form.convert == "Table":
        head = new_table(resource, form)
        head["metadata"] = metadata
        field = "rows"
        if resource.row_order is not None:
            order = resource.row_order
            keys = await in_slices(turns, lambda entry: order(resource.object(entry.data)), entries)
            entries = [entries[i] for i in sorted(range(len(keys)), key=keys.__getitem__)]
        empty: Any = None if _is_plain(resource) else []
    else:
        head = {"kind": "PartialObjectMetadataList", "apiVersion": f"meta.k8s.io/{form.version}", "metadata": metadata}
        field, empty = "items", []

    def shown(entry: Entry) -> Json:
        if field == "rows":
            return row(resource, entry.data, form)
        return partial(entry.data, form)

    if entries and form.media == "json" and not form.pretty:
        head.pop(field, None)
        parts = await in_slices(turns, lambda entry: msgspec.json.encode(shown(entry)), entries)
        return _list_of(msgspec.json.encode(head), field.encode(), parts)
    value = {**head, field: await in_slices(turns, shown, entries) or empty}
    whole = (
        await context.lane.run(context.request.line, lambda: encode(value, form)) if entries else encode(value, form)
    )
    return Response(200, whole, form.content_type)


def _is_plain(resource: Resource) -> bool:
    """Whether a kind has no rows of its own; kube-apiserver writes null for an empty list of these."""
    return not resource.custom and [column["name"] for column in resource.columns] == ["Name", "Created At"]


def _not_convertible(asked: str, found: str) -> NotAcceptable:
    message = f"you requested {asked}, but the requested object is {found}"
    return NotAcceptable(Status(message=message, reason="NotAcceptable", code=406))


def _go_type(resource: Resource, suffix: str) -> str:
    """The Go type of a resource in kube-apiserver; it appears in one error message."""
    if resource.custom:
        return f"*unstructured.Unstructured{suffix}"
    return f"*{_PACKAGES.get(resource.gvk.group) or resource.gvk.group.partition('.')[0]}.{resource.gvk.kind}{suffix}"


_PACKAGES = {"": "core", "events.k8s.io": "core", "internal.apiserver.k8s.io": "apiserverinternal"}


class _Metadata(msgspec.Struct):
    metadata: msgspec.Raw


_metadata = msgspec.json.Decoder(_Metadata).decode


def partial(data: bytes, form: Form) -> Json:
    """The object reduced to its metadata; for JSON the metadata is not decoded."""
    metadata = _metadata(data).metadata
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": f"meta.k8s.io/{form.version}",
        "metadata": metadata if form.media == "json" else msgspec.json.decode(metadata),
    }


def new_table(resource: Resource, form: Form, *, columns: bool = True) -> Json:
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{form.version}",
        "metadata": {},
        "columnDefinitions": resource.columns if columns else None,
        "rows": [],
    }


def row(resource: Resource, data: bytes, form: Form) -> Json:
    obj = resource.object(data)
    assert resource.row is not None
    cells = resource.row(obj)
    shown: Any = None
    if form.include == "Object":
        shown = obj
    elif form.include != "None":
        shown = partial(data, form)
    conditions = resource.row_conditions(obj) if resource.row_conditions is not None else ()
    if conditions:
        return {"cells": cells, "conditions": conditions, "object": shown}
    return {"cells": cells, "object": shown}
