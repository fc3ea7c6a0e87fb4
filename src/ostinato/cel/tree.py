"""Syntax tree of CEL expressions.

A node has its position in the source, in characters. The checker adds types and overloads.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ostinato.cel.types import ERROR, Type


class Node:
    __slots__ = ("at", "type")

    def __init__(self, at: int) -> None:
        self.at = at
        self.type: Type = ERROR  # until it is checked


class Literal(Node):
    """A constant; `literal` is the type of its notation."""

    __slots__ = ("literal", "value")

    def __init__(self, at: int, value: Any, literal: Type) -> None:
        super().__init__(at)
        self.value = value
        self.literal = literal


class Ident(Node):
    __slots__ = ("name",)

    def __init__(self, at: int, name: str) -> None:
        super().__init__(at)
        self.name = name


class Select(Node):
    """A field selection; with `test` a presence test."""

    __slots__ = ("field", "operand", "qualified", "test")

    def __init__(self, at: int, operand: Node, field: str, *, test: bool = False) -> None:
        super().__init__(at)
        self.operand = operand
        self.field = field
        self.test = test
        self.qualified = ""  # the qualified name, if the selection is one


class Call(Node):
    __slots__ = ("args", "function", "overloads", "target")

    def __init__(self, at: int, function: str, args: list[Node], target: Node | None = None) -> None:
        super().__init__(at)
        self.function = function
        self.args = args
        self.target = target
        self.overloads: list[str] = []


class ListNode(Node):
    __slots__ = ("items", "optional")

    def __init__(self, at: int, items: list[Node], optional: frozenset[int] = frozenset()) -> None:
        super().__init__(at)
        self.items = items
        self.optional = optional  # indexes of optional items


class Entry(NamedTuple):
    """An entry of a map, or a field of a message with its name as the key."""

    at: int
    key: Any
    value: Node
    optional: bool


class MapNode(Node):
    __slots__ = ("entries",)

    def __init__(self, at: int, entries: list[Entry]) -> None:
        super().__init__(at)
        self.entries = entries


class StructNode(Node):
    __slots__ = ("entries", "name")

    def __init__(self, at: int, name: str, entries: list[Entry]) -> None:
        super().__init__(at)
        self.name = name
        self.entries = entries


class Comprehension(Node):
    """A fold over a list or map, with the macro that it was expanded from and its parts."""

    __slots__ = (
        "accumulator",
        "condition",
        "init",
        "macro",
        "parts",
        "range",
        "result",
        "step",
        "variable",
        "variable2",
    )

    def __init__(self, at: int, macro: str, source: Node, names: tuple[str, str, str], parts: list[Node]) -> None:
        super().__init__(at)
        self.macro = macro
        self.range = source
        self.variable, self.variable2, self.accumulator = names
        self.parts = parts
        self.init: Node
        self.condition: Node
        self.step: Node
        self.result: Node


def copied(node: Node) -> Node:
    """Return a deep copy."""
    match node:
        case Literal():
            return Literal(node.at, node.value, node.literal)
        case Ident():
            return Ident(node.at, node.name)
        case Select():
            return Select(node.at, copied(node.operand), node.field, test=node.test)
        case Call():
            target = copied(node.target) if node.target is not None else None
            return Call(node.at, node.function, [copied(arg) for arg in node.args], target)
        case ListNode():
            return ListNode(node.at, [copied(item) for item in node.items], node.optional)
        case MapNode():
            return MapNode(node.at, [e._replace(key=copied(e.key), value=copied(e.value)) for e in node.entries])
        case StructNode():
            return StructNode(node.at, node.name, [e._replace(value=copied(e.value)) for e in node.entries])
        case Comprehension():
            names = (node.variable, node.variable2, node.accumulator)
            new = Comprehension(node.at, node.macro, copied(node.range), names, [copied(part) for part in node.parts])
            new.init, new.condition = copied(node.init), copied(node.condition)
            new.step, new.result = copied(node.step), copied(node.result)
            return new
    raise TypeError(type(node).__name__)


def children(node: Node) -> list[Node]:
    """Return the child nodes."""
    match node:
        case Select():
            return [node.operand]
        case Call():
            return [*([node.target] if node.target is not None else ()), *node.args]
        case ListNode():
            return node.items
        case MapNode():
            return [part for entry in node.entries for part in (entry.key, entry.value)]
        case StructNode():
            return [entry.value for entry in node.entries]
        case Comprehension():
            return [node.range, node.init, node.condition, node.step, node.result]
    return []
