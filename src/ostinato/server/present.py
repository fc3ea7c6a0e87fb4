"""Presentation: stored bytes as the answer that was asked for.

Plain JSON, by far the most, is put together from stored bytes and decodes nothing. The other forms (Table,
PartialObjectMetadata, YAML, protobuf, indented) are made from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ostinato.server.negotiate import Form
from ostinato.server.request import Response
from ostinato.server.resources.resource import Resource
from ostinato.server.resources.strategy import Json
from ostinato.server.store.index import Entry

OBJECT_FORMS = ("Table", "PartialObjectMetadata")
LIST_FORMS = ("Table", "PartialObjectMetadataList")
WATCH_FORMS = ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")


def encode(value: Json, form: Form) -> bytes:
    """A value in a form's media type."""
    if form.media == "yaml":
        from ostinato.api.wire.yaml import encode_yaml  # noqa: PLC0415 - loads only where it is needed

        return encode_yaml(value)
    if form.media == "protobuf":
        from ostinato.api import protobuf  # noqa: PLC0415

        return protobuf.encode(value)
    data = msgspec.json.encode(value)
    if form.pretty:
        data = msgspec.json.format(data, indent=2)
    return data + b"\n"


def object_response(
    resource: Resource, data: bytes, form: Form, status: int = 200, include: str = "Metadata"
) -> Response:
    """One stored object."""
    if form.convert:
        return Response(status, encode(converted(resource, data, form, include), form), form.content_type)
    if form.media == "json" and not form.pretty:
        return Response(status, resource.wrap(data) + b"\n")
    return Response(status, encode(resource.object(data), form), form.content_type)


def value_response(value: Json, form: Form, status: int = 200) -> Response:
    """An object that is not stored as it is shown: a Status, a Scale, a review."""
    return Response(status, encode(value, form), form.content_type)


def converted(resource: Resource, data: bytes, form: Form, include: str) -> Json:
    if form.convert == "Table":
        table = new_table(resource, form)
        table["metadata"] = {"resourceVersion": msgspec.json.decode(data)["metadata"].get("resourceVersion", "")}
        table["rows"] = [row(resource, data, include, form)]
        return table
    return partial(data, form.version)


def partial(data: bytes, version: str) -> Json:
    """An object cut to its metadata."""
    metadata = msgspec.json.decode(data)["metadata"]
    return {"kind": "PartialObjectMetadata", "apiVersion": f"meta.k8s.io/{version}", "metadata": metadata}


def new_table(resource: Resource, form: Form, *, columns: bool = True) -> Json:
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{form.version}",
        "metadata": {},
        "columnDefinitions": resource.columns if columns else None,
        "rows": [],
    }


def row(resource: Resource, data: bytes, include: str, form: Form) -> Json:
    obj = resource.object(data)
    assert resource.row is not None
    cells = resource.row(obj)
    shown: Any = None
    if include == "Object":
        shown = obj
    elif include != "None":
        shown = partial(data, form.version)
    return {"cells": cells, "object": shown}


def list_response(resource: Resource, entries: Sequence[Entry], metadata: Json, form: Form, include: str) -> Response:
    """Many stored objects."""
    if form.convert == "Table":
        table = new_table(resource, form)
        table["metadata"] = metadata
        table["rows"] = [row(resource, entry.data, include, form) for entry in entries]
        return Response(200, encode(table, form), form.content_type)
    if form.convert:
        partials = {
            "kind": "PartialObjectMetadataList",
            "apiVersion": f"meta.k8s.io/{form.version}",
            "metadata": metadata,
            "items": [partial(entry.data, form.version) for entry in entries],
        }
        return Response(200, encode(partials, form), form.content_type)
    head = {"kind": resource.list_kind, "apiVersion": resource.gvk.api_version, "metadata": metadata}
    item = resource.item
    body = b"".join(
        (msgspec.json.encode(head)[:-1], b',"items":[', b",".join([item(entry.data) for entry in entries]), b"]}\n")
    )
    if form.media == "json" and not form.pretty:
        return Response(200, body)
    return Response(200, encode(msgspec.json.decode(body), form), form.content_type)


def event_line(kind: str, body: bytes) -> bytes:
    """One event of a JSON watch stream; `body` is the object."""
    return b'{"type":"' + kind.encode() + b'","object":' + body + b"}\n"
