"""Estimated cost of an expression, from its syntax tree and the sizes that schemas allow.

An estimate is a minimum and a maximum. Sizes are known for declared fields, literals, and results of functions of them;
unknown sizes are unbounded. Numbers saturate at 64 bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from ostinato.cel.check.declarations import Declaration
from ostinato.cel.cost.call_estimates import call_estimate
from ostinato.cel.cost.ranges import ANY, NOTHING, ONE, Range, fixed
from ostinato.cel.cost.runtime import LIST, MAP, MESSAGE
from ostinato.cel.tree import (
    Call,
    Comprehension,
    Ident,
    ListNode,
    Literal,
    MapNode,
    Node,
    Select,
    StructNode,
)
from ostinato.cel.types import Type, unwrap_optional

_SCALARS: Final = frozenset({"bool", "double", "duration", "int", "timestamp", "uint"})
_ACCUMULATORS: Final = ("@result", "__result__")
Path = tuple[str, ...]


class Entries(NamedTuple):
    """The sizes of keys and values of a collection."""

    kind: str
    key: Range
    value: Range


class _Local(NamedTuple):
    path: Path
    size: Range | None
    entries: Entries | None


class Sized(NamedTuple):
    """A subexpression with its size."""

    node: Node | None
    type: Type
    path: Path
    size: Range | None


def estimate(node: Node, declarations: Mapping[str, Declaration]) -> Range:
    """Return the minimum and maximum cost of an expression, with the declarations of its variables."""
    return Estimator(declarations).cost(node)


class Estimator:
    def __init__(self, declarations: Mapping[str, Declaration]) -> None:
        self._declarations = declarations
        self._paths: dict[int, Path] = {}
        self._sizes: dict[int, Range] = {}
        self._entries: dict[int, Entries] = {}
        self._locals: dict[str, list[_Local]] = {}

    def cost(self, node: Node) -> Range:
        match node:
            case Ident():
                local = self._local(node.name)
                self._paths[id(node)] = local.path if local is not None else (node.name,)
                return ONE
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case ListNode():
                return self._list(node)
            case MapNode():
                return self._map(node)
            case StructNode():
                return _sum(self.cost(entry.value) for entry in node.entries) + fixed(MESSAGE)
            case Comprehension():
                return self._bind(node) if node.macro == "bind" else self._fold(node)
        return NOTHING

    def _local(self, name: str) -> _Local | None:
        stack = self._locals.get(name)
        return stack[-1] if stack else None

    def _select(self, node: Select) -> Range:
        if node.qualified:
            self._paths[id(node)] = (node.qualified,)
            return ONE
        cost = self.cost(node.operand)
        if node.test:
            return cost
        if node.operand.type.kind in ("map", "struct", "param"):
            cost += ONE
        self._paths[id(node)] = (*self._path(node.operand), node.field)
        return cost

    def _call(self, node: Call) -> Range:
        if node.function == "dyn":
            cost = ONE + self.cost(node.args[0])
            self._copy(node, node.args[0])
            return cost
        costs = [self.cost(arg) for arg in node.args]
        args = [self.sized(arg) for arg in node.args]
        if not node.overloads:
            return NOTHING
        total = NOTHING
        target: Sized | None = None
        if node.target is not None:
            total = self.cost(node.target)
            target = self.sized(node.target)
        spent: Range | None = None
        size: Range | None = None
        for overload in node.overloads:
            found, made = self._function(node, overload, target, args, costs)
            spent = found if spent is None else spent.union(found)
            if made is not None:
                size = made if size is None else size.union(made)
            if overload in ("index_list", "index_map"):
                below = self._entries_of(node.args[0])
                size = below.value if below is not None else None
                step = "@items" if overload == "index_list" else "@values"
                self._paths[id(node)] = (*self._path(node.args[0]), step)
            if size is None:
                size = self.size(node)
        if size is not None:
            self._sizes[id(node)] = size
        return total + (spent or NOTHING)

    def _function(
        self, node: Call, overload: str, target: Sized | None, args: list[Sized], costs: list[Range]
    ) -> tuple[Range, Range | None]:
        if overload in ("logical_or", "logical_and"):
            return Range(costs[0].least, (costs[0] + costs[1]).most), None
        if overload == "conditional":
            self._join_entries(node, node.args[1], node.args[2])
            return costs[0] + costs[1].union(costs[2]), (args[1].size or ANY).union(args[2].size or ANY)
        if overload in ("add_string", "add_bytes", "add_list"):
            self._join_entries(node, node.args[0], node.args[1])
        found, size = call_estimate(self, node.function, overload, target, args)
        return found + _sum(costs), size

    def _join_entries(self, node: Node, first: Node, second: Node) -> None:
        a, b = self._entries_of(first), self._entries_of(second)
        if a is not None and b is not None:
            self._entries[id(node)] = Entries(b.kind, a.key.union(b.key), a.value.union(b.value))

    def _list(self, node: ListNode) -> Range:
        cost = fixed(LIST)
        size: Range | None = None
        for item in node.items:
            cost += self.cost(item)
            found = self.size(item) or ANY
            size = found if size is None else size.union(found)
        self._entries[id(node)] = Entries("list", ONE, size or NOTHING)
        return cost

    def _map(self, node: MapNode) -> Range:
        cost = fixed(MAP)
        keys: Range | None = None
        values: Range | None = None
        for entry in node.entries:
            cost += self.cost(entry.key) + self.cost(entry.value)
            key, value = self.size(entry.key) or ANY, self.size(entry.value) or ANY
            keys = key if keys is None else keys.union(key)
            values = value if values is None else values.union(value)
        self._entries[id(node)] = Entries("map", keys or NOTHING, values or NOTHING)
        return cost

    def _fold(self, node: Comprehension) -> Range:
        total = self.cost(node.range) + self.cost(node.init)
        init = _Local(self._path(node.init), self.size(node.init), self._entries_of(node.init))
        self._locals.setdefault(node.accumulator, []).append(init)
        self._enter(node)
        turn = self.cost(node.condition) + self.cost(node.step)
        for name in (node.variable, node.variable2):
            if name:
                self._locals[name].pop()
        total += self.cost(node.result)
        self._locals[node.accumulator].pop()
        count = self.size(node.range) or ANY
        total += count * turn
        if isinstance(node.init, Literal):
            self._put_size(node, self.size(node.init))
        elif isinstance(node.init, (ListNode, MapNode)):
            self._sizes[id(node)] = count
            entries = self._entries_of(node.step)
            if entries is not None:
                self._entries[id(node)] = entries
        return total

    def _enter(self, node: Comprehension) -> None:
        """Enter the variables of a loop: items and indexes of a list, keys and values of a map."""
        entries = self._entries_of(node.range)
        kind = entries.kind if entries is not None else node.range.type.kind
        path = self._path(node.range)
        key = _Local((*path, "@indices" if kind == "list" else "@keys"), entries and entries.key, None)
        value = _Local((*path, "@items" if kind == "list" else "@values"), entries and entries.value, None)
        if node.variable2:
            self._locals.setdefault(node.variable, []).append(key)
            self._locals.setdefault(node.variable2, []).append(value)
        else:
            self._locals.setdefault(node.variable, []).append(value if kind == "list" else key)

    def _bind(self, node: Comprehension) -> Range:
        total = self.cost(node.range) + self.cost(node.init)
        local = _Local(self._path(node.init), self.size(node.init), self._entries_of(node.init))
        self._locals.setdefault(node.accumulator, []).append(local)
        total += self.cost(node.result)
        self._locals[node.accumulator].pop()
        self._copy(node, node.result)
        return total

    def _path(self, node: Node) -> Path:
        if isinstance(node, Ident):
            local = self._local(node.name)
            if local is not None:
                return local.path
        return self._paths.get(id(node), ())

    def _entries_of(self, node: Node) -> Entries | None:
        found = self._entries.get(id(node))
        if found is None and isinstance(node, Ident):
            local = self._local(node.name)
            return local.entries if local is not None else None
        return found

    def sized(self, node: Node) -> Sized:
        path = self._path(node)
        return Sized(node, node.type, () if path and path[0] in _ACCUMULATORS else path, self.size(node))

    def _copy(self, node: Node, other: Node) -> None:
        self._put_size(node, self.size(other))
        entries = self._entries_of(other)
        if entries is not None:
            self._entries[id(node)] = entries

    def _put_size(self, node: Node, size: Range | None) -> None:
        if size is not None:
            self._sizes[id(node)] = size

    def size(self, node: Node) -> Range | None:
        """Return the size of the value of a node; None if unknown."""
        found = self._sizes.get(id(node)) or _literal_size(node)
        if found is not None:
            return found
        found = self.declared_size(self._path(node))
        if found is not None:
            self._sizes[id(node)] = found
            return found
        if _is_scalar(node.type):
            return ONE
        if isinstance(node, Ident):
            local = self._local(node.name)
            return local.size if local is not None else None
        return None

    def declared_size(self, path: Path) -> Range | None:
        """Return the maximum size of a path, by its schema."""
        if not path:
            return None
        at: Declaration | None = self._declarations.get(path[0]) or _first(self._declarations)
        for step in path[1:]:
            if at is None:
                return None
            if step in ("@items", "@values"):
                at = at.items
            elif step == "@keys":
                at = at.key
            else:
                at = at.fields.get(step)
        return Range(0, at.most) if at is not None else None


def _first(declarations: Mapping[str, Declaration]) -> Declaration | None:
    return next(iter(declarations.values()), None)


def _is_scalar(kind: Type) -> bool:
    inner, optional = unwrap_optional(kind)
    return _is_scalar(inner) if optional else kind.kind in _SCALARS


def _literal_size(node: Node) -> Range | None:
    match node:
        case Literal():
            value: Any = node.value
            return fixed(len(value) if isinstance(value, (str, bytes)) else 1)
        case ListNode():
            return fixed(len(node.items))
        case MapNode():
            return fixed(len(node.entries))
    return None


def _sum(costs: Any) -> Range:
    total = NOTHING
    for cost in costs:
        total += cost
    return total
