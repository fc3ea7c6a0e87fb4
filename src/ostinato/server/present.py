"""Presentation: stored bytes as the answer that was asked for.

Plain JSON, by far the most, is put together from stored bytes and decodes nothing. The other forms (Table,
PartialObjectMetadata, YAML, protobuf, indented) are made from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ostinato.api.errors import APIError, NotAcceptable, Unknown
from ostinato.api.status import Status
from ostinato.server.negotiate import PLAIN, Form
from ostinato.server.request import Response
from ostinato.server.resources.resource import Resource
from ostinato.server.resources.strategy import Json
from ostinato.server.store.index import Entry


def encode(value: Json, form: Form) -> bytes:
    """A value in a form's media type."""
    if form.media == "yaml":
        from ostinato.api.wire.yaml_output import encode_yaml  # noqa: PLC0415 - loads only where it is needed

        return encode_yaml(value)
    if form.media == "protobuf":
        from ostinato.api import protobuf  # noqa: PLC0415 - its tables load only where they are needed

        return protobuf.encode(value)
    data = msgspec.json.encode(value)
    return msgspec.json.format(data, indent=2) if form.pretty else data + b"\n"


def object_response(resource: Resource, data: bytes, form: Form, status: int = 200) -> Response:
    """One stored object."""
    if form == PLAIN:
        return Response(status, resource.wrap(data) + b"\n")
    if form.convert:
        return Response(status, encode(_converted(resource, data, form), form), form.content_type)
    return Response(status, encode(resource.object(data), form), form.content_type)


def value_response(value: Json, form: Form, status: int = 200) -> Response:
    """An object that is not stored as it is shown: a Status, a Scale, a review. It is never converted."""
    return Response(status, encode(value, form), form.content_type)


def error_response(error: APIError, form: Form = PLAIN) -> Response:
    """The Status that tells an error."""
    headers: tuple[tuple[str, str], ...] = ()
    if error.status.details is not None and error.status.details.retry_after_seconds > 0:
        headers = (("Retry-After", str(error.status.details.retry_after_seconds)),)
    return Response(error.code, encode(error.to_dict(), form), form.content_type, headers)


def list_response(resource: Resource, entries: Sequence[Entry], metadata: Json, form: Form) -> Response:
    """Many stored objects."""
    if form.convert:
        return Response(200, encode(_converted_list(resource, entries, metadata, form), form), form.content_type)
    if resource.custom:
        metadata = {"continue": "", **metadata}  # lists of custom objects always say so
    head = {"kind": resource.list_kind, "apiVersion": resource.gvk.api_version, "metadata": metadata}
    parts = [entry.data for entry in entries] if resource.items_as_stored else [resource.item(e.data) for e in entries]
    before = msgspec.json.encode(head)[:-1] + b',"items":['
    if parts:
        parts[0] = before + parts[0]
        parts[-1] += b"]}\n"
    else:
        parts = [before + b"]}\n"]
    response = Response(200, parts, between=b",")
    if form == PLAIN:
        return response
    return Response(200, encode(msgspec.json.decode(response.body), form), form.content_type)


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
    return partial(data, form.version)


def _converted_list(resource: Resource, entries: Sequence[Entry], metadata: Json, form: Form) -> Json:
    if form.convert == "Table":
        table = new_table(resource, form)
        table["metadata"] = metadata
        if resource.row_order is not None:
            order = resource.row_order
            entries = sorted(entries, key=lambda entry: order(resource.object(entry.data)))
        rows = [row(resource, entry.data, form) for entry in entries]
        table["rows"] = rows if rows or not _is_plain(resource) else None
        return table
    if form.convert == "PartialObjectMetadata":
        raise _not_convertible("PartialObjectMetadata", f"a list ({_go_type(resource, 'List')})")
    return {
        "kind": "PartialObjectMetadataList",
        "apiVersion": f"meta.k8s.io/{form.version}",
        "metadata": metadata,
        "items": [partial(entry.data, form.version) for entry in entries],
    }


def _is_plain(resource: Resource) -> bool:
    """Whether a kind has no rows of its own. Where there are none of these, a kube-apiserver says null."""
    return not resource.custom and [column["name"] for column in resource.columns] == ["Name", "Created At"]


def _not_convertible(asked: str, found: str) -> NotAcceptable:
    message = f"you requested {asked}, but the requested object is {found}"
    return NotAcceptable(Status(message=message, reason="NotAcceptable", code=406))


def _go_type(resource: Resource, suffix: str) -> str:
    """The type that a kube-apiserver has for a resource; clients see it in one message."""
    if resource.custom:
        return f"*unstructured.Unstructured{suffix}"
    return f"*{_PACKAGES.get(resource.gvk.group) or resource.gvk.group.partition('.')[0]}.{resource.gvk.kind}{suffix}"


_PACKAGES = {"": "core", "events.k8s.io": "core", "internal.apiserver.k8s.io": "apiserverinternal"}


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


def row(resource: Resource, data: bytes, form: Form) -> Json:
    obj = resource.object(data)
    assert resource.row is not None
    cells = resource.row(obj)
    shown: Any = None
    if form.include == "Object":
        shown = obj
    elif form.include != "None":
        shown = partial(data, form.version)
    conditions = resource.row_conditions(obj) if resource.row_conditions is not None else ()
    if conditions:
        return {"cells": cells, "conditions": conditions, "object": shown}
    return {"cells": cells, "object": shown}
