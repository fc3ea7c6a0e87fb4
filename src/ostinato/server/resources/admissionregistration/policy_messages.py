"""Message types of mutating policies: `Object`, with any fields, and `JSONPatch`.

The name of an `Object` message contains its path: `Object{spec: Object.spec{replicas: 1}}`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ostinato.cel.check.declarations import message, simple
from ostinato.cel.tree import Call, Comprehension, ListNode, MapNode, Node, StructNode
from ostinato.cel.types import DYN, STRING, Type


class _AnyField:
    """Fields of `Object`: any name, any type."""

    nested = False
    list_type = "atomic"

    def field(self, name: str) -> Type:
        return DYN

    computed = True


_OBJECT: Final = Type("struct", "Object", (), _AnyField())
_PATCH: Final = message(
    "JSONPatch", [("op", simple(STRING)), ("path", simple(STRING)), ("from", simple(STRING)), ("value", simple(DYN))]
)


class _Messages(Mapping[str, Type]):
    def __getitem__(self, name: str) -> Type:
        if name == "JSONPatch":
            return _PATCH.type
        if name == "Object":
            return _OBJECT
        if name.startswith("Object."):
            return Type("struct", name, (), _AnyField())
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(("Object", "JSONPatch"))

    def __len__(self) -> int:
        return 2


PATCH_TYPES: Final = _Messages()


def name_error(node: Node, path: tuple[str, ...] = ("Object",)) -> str:
    """The error for a message whose name does not match its path; "" if all match."""
    match node:
        case StructNode():
            wanted = ".".join(path)
            if node.name != wanted:
                return (
                    f'unexpected type name "{node.name}", expected "{wanted}", which matches field name path from root '
                    "Object type"
                )
            return _first(name_error(entry.value, (*path, entry.key)) for entry in node.entries)
        case ListNode():
            return _first(name_error(item, path) for item in node.items)
        case MapNode():
            return _first(name_error(entry.value, path) for entry in node.entries)
        case Call() if node.function == "_?_:_":
            return _first(name_error(arg, path) for arg in node.args[1:])
        case Comprehension() if node.macro in ("map", "transformList"):
            return name_error(node.parts[-1], path)
    return ""


def _first(faults: Iterator[str]) -> str:
    return next((fault for fault in faults if fault), "")


def as_json(value: Any) -> Any:
    """Convert a CEL value to JSON."""
    from ostinato.cel.libraries.formatting import text_of  # noqa: PLC0415 - only for types that JSON lacks

    match value:
        case dict():
            return {str(key): as_json(item) for key, item in value.items()}
        case list():
            return [as_json(item) for item in value]
        case bool() | str() | None | float():
            return value
        case int():
            return int(value)
    return text_of(value)
