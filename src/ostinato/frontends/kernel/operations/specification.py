"""Specification of object operations: a stream of YAML or JSON documents, checked before anything is executed.

    operation: MergePatch
    apiVersion: v1
    kind: ConfigMap
    namespace: default
    name: settings
    mergePatch: {data: {a: "1"}}

| operation | fields |
|---|---|
| `Create`, `CreateIfNotExists`, `CreateOrUpdate` | `object` |
| `Delete`, `DeleteInBackground`, `DeleteNonCascading` | `apiVersion?`, `kind`, `namespace?`, `name` |
| `JQPatch` | and `jqFilter` |
| `MergePatch` | and `mergePatch` |
| `JSONPatch` | and `jsonPatch` |

Patches have `subresource`, `ignoreMissingObject`, and `ignoreHookError`: execute it also if the hook has failed. An
object or a patch is a structure, or a string with JSON or YAML.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final

import msgspec

from ostinato.api.wire.json import DecodeError, decode_json
from ostinato.api.wire.yaml import decode_yaml, decode_yaml_documents
from ostinato.frontends.kernel.snapshots.filters import FilterError, JqFilter

Json = dict[str, Any]

MOST_BYTES: Final = 128 * 1024 * 1024  # of all operations of one run


class OperationError(ValueError):
    """An operation is invalid, or its execution failed. The message names it."""


class Verb(StrEnum):
    CREATE = "Create"
    CREATE_IF_NOT_EXISTS = "CreateIfNotExists"
    CREATE_OR_UPDATE = "CreateOrUpdate"
    DELETE = "Delete"
    DELETE_IN_BACKGROUND = "DeleteInBackground"
    DELETE_NON_CASCADING = "DeleteNonCascading"
    JQ_PATCH = "JQPatch"
    MERGE_PATCH = "MergePatch"
    JSON_PATCH = "JSONPatch"


_CREATES: Final = (Verb.CREATE, Verb.CREATE_IF_NOT_EXISTS, Verb.CREATE_OR_UPDATE)
_CONTENT: Final = {Verb.JQ_PATCH: "jqFilter", Verb.MERGE_PATCH: "mergePatch", Verb.JSON_PATCH: "jsonPatch"}
_FLAGS: Final = ("ignoreMissingObject", "ignoreHookError")
_TEXTS: Final = ("apiVersion", "kind", "namespace", "name", "subresource", "jqFilter")
_FIELDS: Final = frozenset(("operation", "object", "mergePatch", "jsonPatch", *_TEXTS, *_FLAGS))
_CHANGES: Final = frozenset(("add", "copy", "move", "remove", "replace", "test"))


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """One write. `content`: the object, the merge patch or the JSON patch; `filter`: of a JQPatch."""

    verb: Verb
    kind: str
    name: str
    api_version: str = ""
    namespace: str = ""
    subresource: str = ""
    content: Any = None
    filter: JqFilter | None = None
    ignore_missing: bool = False
    ignore_hook_error: bool = False

    def __str__(self) -> str:
        where = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.verb.value} {self.kind} {where}"


def parse_operations(data: bytes) -> list[Operation]:
    """Parse a stream of documents. Raises OperationError, which names the document and the field."""
    if len(data) > MOST_BYTES:
        raise OperationError(f"{len(data)} bytes of operations; the limit is {MOST_BYTES}")
    return [operation(each, f"operation {number}") for number, each in enumerate(_documents(data), 1)]


def _documents(data: bytes) -> list[Any]:
    """Return the documents: YAML, or JSON values one after another."""
    if not data.strip():
        return []
    if data.lstrip()[:1] in (b"{", b"["):
        found = _json_documents(data.decode("utf-8", "replace"))
        if found is not None:
            return found
    try:
        return decode_yaml_documents(data)
    except DecodeError as error:
        raise OperationError(f"operations: neither JSON nor YAML: {error}") from None


def _json_documents(text: str) -> list[Any] | None:
    from json import JSONDecodeError, JSONDecoder  # noqa: PLC0415 - msgspec reads single values only

    decoder, at, found = JSONDecoder(), 0, []
    try:
        while at < len(text):
            if text[at].isspace():
                at += 1
                continue
            value, at = decoder.raw_decode(text, at)
            found.append(value)
    except (JSONDecodeError, RecursionError):
        return None
    return found


def operation(document: Any, where: str = "operation") -> Operation:
    """Return the operation of a document. Raises OperationError."""
    if not isinstance(document, dict):
        raise OperationError(f"{where}: expected an object with `operation`, got {type(document).__name__}")
    if unknown := sorted(map(str, document.keys() - _FIELDS)):
        raise OperationError(f"{where}: unknown field {unknown[0]!r}; fields: {', '.join(sorted(_FIELDS))}")
    try:
        verb = Verb(document.get("operation", ""))
    except ValueError:
        known = ", ".join(each.value for each in Verb)
        raise OperationError(f"{where}: operation: {document.get('operation')!r} is none of {known}") from None
    where = f"{where} ({verb.value})"
    texts = {field: _text(document, field, where) for field in _TEXTS}
    flags = {field: _flag(document, field, where) for field in _FLAGS}
    if verb in _CREATES:
        return _creation(verb, document, where)
    for field in ("kind", "name"):
        if not texts[field]:
            raise OperationError(f"{where}: {field}: required")
    content, program = _patch(verb, document, where)
    return Operation(
        verb=verb,
        kind=texts["kind"],
        name=texts["name"],
        api_version=texts["apiVersion"],
        namespace=texts["namespace"],
        subresource=texts["subresource"].strip("/"),
        content=content,
        filter=program,
        ignore_missing=flags["ignoreMissingObject"],
        ignore_hook_error=flags["ignoreHookError"],
    )


def document(each: Operation) -> Json:
    """Return the document of an operation, which `operation` reads."""
    if each.verb in _CREATES:
        return {"operation": each.verb.value, "object": each.content}
    found: Json = {
        "operation": each.verb.value,
        "apiVersion": each.api_version,
        "kind": each.kind,
        "namespace": each.namespace,
        "name": each.name,
        "subresource": each.subresource,
        "ignoreMissingObject": each.ignore_missing,
        "ignoreHookError": each.ignore_hook_error,
    }
    if each.verb in _CONTENT:
        found[_CONTENT[each.verb]] = each.content if each.filter is None else each.filter.text
    return {key: value for key, value in found.items() if value not in ("", False)}


def on_hook_error(operations: Sequence[Operation]) -> list[Operation]:
    """Return the operations that are executed although the hook has failed: marked patches of the status."""
    return [each for each in operations if each.ignore_hook_error and each.subresource == "status"]


def _creation(verb: Verb, document: Json, where: str) -> Operation:
    instance = _structure(document.get("object"), f"{where}: object")
    if not isinstance(instance, dict) or not instance:
        raise OperationError(f"{where}: object: required; a structure, or a string with one")
    metadata = instance.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    for field in ("apiVersion", "kind"):
        if not isinstance(instance.get(field), str) or not instance[field]:
            raise OperationError(f"{where}: object.{field}: required")
    name = metadata.get("name") or metadata.get("generateName")
    if not isinstance(name, str):
        raise OperationError(f"{where}: object.metadata.name: required")
    return Operation(
        verb=verb,
        kind=instance["kind"],
        name=name,
        api_version=instance["apiVersion"],
        namespace=str(metadata.get("namespace") or ""),
        content=instance,
    )


def _patch(verb: Verb, document: Json, where: str) -> tuple[Any, JqFilter | None]:
    field = _CONTENT.get(verb)
    if field is None:
        return None, None
    given = document.get(field)
    if given in (None, "", [], {}):
        raise OperationError(f"{where}: {field}: required")
    if verb is Verb.JQ_PATCH:
        try:
            return None, JqFilter(given)
        except FilterError as error:
            raise OperationError(f"{where}: {field}: {error}") from None
    content = _structure(given, f"{where}: {field}")
    if verb is Verb.MERGE_PATCH:
        if not isinstance(content, dict):
            raise OperationError(f"{where}: {field}: expected an object, got {type(content).__name__}")
        return content, None
    if not isinstance(content, list):
        raise OperationError(f"{where}: {field}: expected a list of changes, got {type(content).__name__}")
    for number, change in enumerate(content):
        if not isinstance(change, dict) or change.get("op") not in _CHANGES or not isinstance(change.get("path"), str):
            raise OperationError(f"{where}: {field}[{number}]: needs `op` ({', '.join(sorted(_CHANGES))}) and `path`")
        if change["op"] in ("add", "replace", "test") and "value" not in change:
            raise OperationError(f"{where}: {field}[{number}].value: required for {change['op']}")
    return content, None


def _structure(given: Any, where: str) -> Any:
    if not isinstance(given, str):
        return given
    try:
        return decode_json(given.encode()) if given.lstrip()[:1] in ("{", "[") else decode_yaml(given)
    except DecodeError:
        try:
            return decode_yaml(given)
        except DecodeError as error:
            raise OperationError(f"{where}: {error}") from None


def _text(document: Json, field: str, where: str) -> str:
    value = document.get(field)
    if value is not None and not isinstance(value, str):
        raise OperationError(f"{where}: {field}: expected a string, got {type(value).__name__}")
    return value or ""


def _flag(document: Json, field: str, where: str) -> bool:
    value = document.get(field)
    if value is not None and not isinstance(value, bool):
        raise OperationError(f"{where}: {field}: expected true or false")
    return bool(value)
