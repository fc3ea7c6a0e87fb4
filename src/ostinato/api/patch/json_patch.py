"""JSON patch (RFC 6902): a list of operations, applied in order, all or none.

As in kube-apiserver, which is more lenient than the RFC:

- `replace` of an absent key adds it; `copy` from an absent key adds null; `test` of an absent key finds null;
- an absent `value` is null;
- a negative index counts from the end;
- characters before the first slash of a pointer are ignored.

The number of operations, the bytes added by `copy` and the depth are limited.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from ostinato.api.equality import identical
from ostinato.api.patch.errors import InapplicablePatch, MalformedPatch, PatchTooLarge, TestFailed
from ostinato.api.patch.go_values import json_name
from ostinato.api.patch.json_pointer import (
    BadIndexError,
    MissingError,
    entry,
    existing_index,
    insert,
    take,
    unescaped,
)

MAX_OPERATIONS: Final = 10_000
MAX_COPIED_BYTES: Final = 3 * 1024 * 1024
MAX_DEPTH: Final = 500

_UNCHECKED_DEPTH = 100  # depth is not checked if all paths together have fewer levels


def json_patch(document: Any, operations: Any, *, max_copied_bytes: int = MAX_COPIED_BYTES) -> Any:
    """Apply the operations to a document and return the new document. Arguments are not modified, but shared."""
    operations = check_operations(operations)
    if not isinstance(document, dict | list):
        raise InapplicablePatch(
            f"json: cannot unmarshal {json_name(document)} into Go value of type jsonpatch.partialDoc"
        )
    return _Application(document, max_copied_bytes).run(operations)


def check_operations(operations: Any) -> list[dict[str, Any]]:
    """Return the operations if the patch is a list of operations. Raises MalformedPatch or PatchTooLarge."""
    if operations is None:
        return []
    if not isinstance(operations, list):
        raise _undecodable(operations, "Go value of type []handlers.jsonPatchOp")
    for operation in operations:
        if operation is None:
            continue
        if not isinstance(operation, dict):
            raise _undecodable(operation, "Go value of type handlers.jsonPatchOp")
        for field in ("op", "path", "from"):
            value = operation.get(field)
            if value is not None and not isinstance(value, str):
                raise _undecodable(value, f"Go struct field jsonPatchOp.{field} of type string")
    if len(operations) > MAX_OPERATIONS:
        raise PatchTooLarge(
            f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}"
        )
    return [operation or {} for operation in operations]


def _undecodable(value: Any, target: str) -> MalformedPatch:
    return MalformedPatch(f"error decoding patch: json: cannot unmarshal {json_name(value)} into {target}")


class _Application:
    """The application of a patch to a document.

    Containers are copied on the first write. `_owned` contains the copies; nothing else is modified.
    """

    def __init__(self, document: Any, max_copied_bytes: int) -> None:
        self._root = document
        self._owned: dict[int, Any] = {}  # id -> container; the reference keeps the id unique
        self._max_copied_bytes = max_copied_bytes
        self._copied_bytes = 0
        self._levels_named = 0

    def run(self, operations: list[dict[str, Any]]) -> Any:
        for operation in operations:
            kind = operation.get("op")
            perform = _OPERATIONS.get(kind) if kind is not None else None
            if perform is None:
                raise InapplicablePatch(f"Unexpected kind: {'unknown' if kind is None else kind}")
            perform(self, operation)
        if self._levels_named > _UNCHECKED_DEPTH and _deeper_than(self._root, MAX_DEPTH):
            raise InapplicablePatch("exceeded max depth")
        return self._root

    # Operations

    def add(self, operation: dict[str, Any]) -> None:
        path = operation.get("path")
        if path is None:
            raise InapplicablePatch("add operation failed to decode path: missing value")
        container, key = self._writable(path, f'add operation does not apply: doc is missing path: "{path}"')
        insert(container, key, operation.get("value"), f"error in add for path: '{path}'")

    def remove(self, operation: dict[str, Any]) -> None:
        path = operation.get("path")
        if path is None:
            raise InapplicablePatch("remove operation failed to decode path: missing value")
        container, key = self._writable(path, f'remove operation does not apply: doc is missing path: "{path}"')
        take(container, key, f"error in remove for path: '{path}'")

    def replace(self, operation: dict[str, Any]) -> None:
        path = _path_of(operation, "replace")
        value = operation.get("value")
        if path == "":
            if not isinstance(value, dict | list):
                raise InapplicablePatch("replace operation value must be object or array: %!w(<nil>)")
            self._root = value
            return
        container, key = self._writable(path, f"replace operation does not apply: doc is missing path: {path}")
        if isinstance(container, list):
            try:
                container[existing_index(container, key)] = value
            except BadIndexError as error:
                raise InapplicablePatch(
                    f"replace operation does not apply: doc is missing key: {path}: missing value"
                ) from error
        else:
            container[key] = value

    def move(self, operation: dict[str, Any]) -> None:
        source = _from_of(operation, "move")
        container, key = self._writable(source, f"move operation does not apply: doc is missing from path: {source}")
        value = take(container, key, f"error in move for path: '{key}'")
        path = _path_of(operation, "move")
        container, key = self._writable(path, f"move operation does not apply: doc is missing destination path: {path}")
        insert(container, key, value, f"error in move for path: '{path}'")

    def copy(self, operation: dict[str, Any]) -> None:
        source = _from_of(operation, "copy")
        value = self._read(
            source,
            f"copy operation does not apply: doc is missing from path: {source}: missing value",
            f"error in copy for from: '{source}'",
        )
        path = operation.get("path")
        if path is None:
            raise InapplicablePatch("copy operation failed to decode path: missing value")
        container, key = self._writable(path, f"copy operation does not apply: doc is missing destination path: {path}")
        insert(container, key, self._bounded_copy(value), "error while adding value during copy")

    def test(self, operation: dict[str, Any]) -> None:
        path = _path_of(operation, "test")
        expected = operation.get("value")
        if path == "":
            found = self._root
        else:
            found = self._read(
                path,
                f"test operation does not apply: is missing path: {path}: missing value",
                f"error in test for path: '{path}'",
            )
        if not identical(found, expected):
            raise TestFailed(f"testing value {path} failed: test failed")

    # Paths

    def _read(self, pointer: str, missing: str, failed: str) -> Any:
        """Return the value at a pointer; null if the last step is an absent key of a map."""
        container = self._root
        parts = pointer.split("/")
        if len(parts) < 2:
            raise InapplicablePatch(missing)
        try:
            for part in parts[1:-1]:
                container = container[entry(container, unescaped(part))]
        except MissingError as error:
            raise InapplicablePatch(missing) from error
        key = unescaped(parts[-1])
        if isinstance(container, dict):
            return container.get(key)
        if not isinstance(container, list):
            raise InapplicablePatch(missing)
        try:
            return container[existing_index(container, key)]
        except BadIndexError as error:
            raise InapplicablePatch(f"{failed}: {error}") from error

    def _writable(self, pointer: str, missing: str) -> tuple[Any, str]:
        """Return the container of a pointer's last step, copied if needed, and that step."""
        parts = pointer.split("/")
        if len(parts) < 2:
            raise InapplicablePatch(f"{missing}: missing value")
        self._levels_named += len(parts)
        container = self._root = self._own(self._root)
        try:
            for part in parts[1:-1]:
                step = entry(container, unescaped(part))
                below = container[step]
                if not isinstance(below, dict | list):
                    raise MissingError
                container[step] = below = self._own(below)
                container = below
        except MissingError as error:
            raise InapplicablePatch(f"{missing}: missing value") from error
        return container, unescaped(parts[-1])

    def _own(self, container: Any) -> Any:
        if id(container) in self._owned:
            return container
        copy = container.copy()
        self._owned[id(copy)] = copy
        return copy

    def _bounded_copy(self, value: Any) -> Any:
        try:
            self._copied_bytes += _encoded_size(value)
            if self._copied_bytes <= self._max_copied_bytes:
                return _copied(value)
        except (RecursionError, OverflowError, UnicodeEncodeError) as error:
            raise InapplicablePatch(f"error while performing deep copy: {error}") from error
        raise InapplicablePatch(
            "Unable to complete the copy, the accumulated size increase of copy is "
            f"{self._copied_bytes}, exceeding the limit {self._max_copied_bytes}"
        )


_OPERATIONS: dict[str, Callable[[_Application, dict[str, Any]], None]] = {
    "add": _Application.add,
    "remove": _Application.remove,
    "replace": _Application.replace,
    "move": _Application.move,
    "copy": _Application.copy,
    "test": _Application.test,
}


def _path_of(operation: dict[str, Any], name: str) -> str:
    path: str | None = operation.get("path")
    if path is None:
        raise InapplicablePatch(f"{name} operation failed to decode path: operation missing path field: missing value")
    return path


def _from_of(operation: dict[str, Any], name: str) -> str:
    source: str | None = operation.get("from")
    if source is None:
        raise InapplicablePatch(f"{name} operation failed to decode from: operation, missing from field: missing value")
    return source


def _encoded_size(value: Any) -> int:
    """Return the size of a value as JSON with HTML characters escaped, for the copy limit."""
    if value is None:
        return 0
    encoded = msgspec.json.encode(value)
    escaped = 5 * (encoded.count(b"<") + encoded.count(b">") + encoded.count(b"&"))
    return len(encoded) + escaped + 3 * (encoded.count(b"\xe2\x80\xa8") + encoded.count(b"\xe2\x80\xa9"))


def _copied(value: Any) -> Any:
    """Return a deep copy."""
    if isinstance(value, dict):
        fields = {}
        for key, item in value.items():  # a comprehension would take a second frame per level
            fields[key] = _copied(item)
        return fields
    if isinstance(value, list):
        items = []
        for item in value:
            items.append(_copied(item))  # noqa: PERF401
        return items
    return value


def _deeper_than(value: Any, limit: int) -> bool:
    level = [value]
    for _ in range(limit + 1):
        level = [
            item
            for container in level
            for item in (container.values() if isinstance(container, dict) else container)
            if isinstance(item, dict | list)
        ]
        if not level:
            return False
    return True
