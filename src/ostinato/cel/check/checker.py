"""Type checker: assigns a type to each node, and the candidate overloads to each call.

Errors have kube-apiserver's messages. Names are resolved in an environment: variables, functions, fields of messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from ostinato.cel.check.signatures import FUNCTIONS, Overload
from ostinato.cel.issues import Issues
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
from ostinato.cel.types import (
    BOOL,
    DYN,
    ERROR,
    INT,
    NAMED,
    SIMPLE,
    STRING,
    Bindings,
    Type,
    is_dyn,
    is_dyn_or_error,
    list_of,
    map_of,
    most_general,
    optional_of,
    parameter,
    type_of,
    unwrap_optional,
)


class Fields(Protocol):
    """The source of the fields of messages: the origin of a type."""

    def field(self, name: str) -> Type | None: ...


# Names of types.
TYPE_NAMES: Mapping[str, Type] = {
    **{name: type_of(t) for name, t in SIMPLE.items() if name not in ("dyn", "null", "timestamp", "duration")},
    "list": type_of(list_of(parameter("A"))),
    "map": type_of(map_of(parameter("A"), parameter("B"))),
    "null_type": type_of(SIMPLE["null"]),
    "google.protobuf.Timestamp": type_of(SIMPLE["timestamp"]),
    "google.protobuf.Duration": type_of(SIMPLE["duration"]),
    "optional_type": type_of(optional_of(parameter("V"))),
    **{name: type_of(t) for name, t in NAMED.items() if t.kind == "opaque"},
}


class Scope:
    """The declared names, inner scopes first."""

    def __init__(self, variables: Mapping[str, Type], messages: Mapping[str, Type] | None = None) -> None:
        self._known: list[dict[str, Type]] = [dict(variables)]
        self._messages = messages or {}  # messages that expressions may construct
        self._patches = messages is not None  # expressions that return patches have additional functions

    def find(self, name: str) -> Type | None:
        name = name.removeprefix(".")
        for names in reversed(self._known):
            if name in names:
                return names[name]
        if name in self._messages:
            return type_of(self._messages[name])
        return TYPE_NAMES.get(name)

    def has_function(self, name: str) -> bool:
        return name in FUNCTIONS and (self._patches or not name.startswith("jsonpatch."))

    def enter(self, **names: Type) -> None:
        self._known.append(names)

    def leave(self) -> None:
        self._known.pop()


def check(node: Node, issues: Issues, scope: Scope) -> None:
    """Assign a type to every node; errors are added to `issues`."""
    checker = _Checker(issues, scope)
    checker.check(node)
    checker.finish()


class _Checker:
    def __init__(self, issues: Issues, scope: Scope) -> None:
        self._issues = issues
        self._scope = scope
        self._bindings = Bindings()
        self._variables = 0
        self._checked: list[Node] = []

    def finish(self) -> None:
        for node in self._checked:
            node.type = self._bindings.substitute(node.type, free=True)

    def check(self, node: Node) -> None:
        self._checked.append(node)
        match node:
            case Literal():
                node.type = node.literal
            case Ident():
                self._ident(node)
            case Select():
                self._select(node)
            case Call():
                self._call(node)
            case ListNode():
                self._list(node)
            case MapNode():
                self._map(node)
            case StructNode():
                self._struct(node)
            case Comprehension():
                self._comprehension(node)

    def _undeclared(self, node: Node, name: str) -> None:
        node.type = ERROR
        self._issues.add(node.at, f"undeclared reference to '{name}' (in container '')")

    def _ident(self, node: Ident) -> None:
        found = self._scope.find(node.name)
        if found is None:
            self._undeclared(node, node.name)
            return
        node.type = found
        node.name = node.name.removeprefix(".")

    def _select(self, node: Select) -> None:
        name = _qualified(node)
        found = self._scope.find(name) if name else None
        if found is not None:
            node.type, node.qualified = found, name.removeprefix(".")
            return
        result = self._field(node, node.operand, node.field, optional=False)
        node.type = BOOL if node.test else self._bindings.substitute(result)

    def _field(self, node: Node, operand: Node, name: str, *, optional: bool) -> Type:
        self.check(operand)
        target, is_optional = unwrap_optional(self._bindings.substitute(operand.type))
        result = ERROR
        if target.kind == "map":
            result = target.params[1]
        elif target.kind == "struct":
            result = self._field_type(node.at, target, name) or ERROR
        elif target.kind == "param":
            self._assignable(DYN, target)
            result = DYN
        else:
            if not is_dyn_or_error(target):
                self._issues.add(node.at, f"type '{target}' does not support field selection")
            result = DYN
        return optional_of(result) if optional or is_optional else result

    def _field_type(self, at: int, message: Type, name: str) -> Type | None:
        fields: Fields | None = message.origin
        if fields is None:
            self._issues.add(at, f"unexpected failed resolution of '{message.name}'")
            return None
        found = fields.field(name)
        if found is None:
            self._issues.add(at, f"undefined field '{name}'")
        return found

    def _call(self, node: Call) -> None:
        if node.function == "_?._":
            field: Any = node.args[1]
            node.type = self._bindings.substitute(self._field(node, node.args[0], field.value, optional=True))
            node.overloads = ["select_optional_field"]
            field.type = STRING
            return
        for arg in node.args:
            self.check(arg)
        if node.target is None:
            function = node.function.removeprefix(".")
            if not self._scope.has_function(function):
                self._undeclared(node, node.function)
                return
            node.function = function
            self._resolve(node, None)
            return
        prefix = _qualified(node.target)
        if prefix and self._scope.has_function(f"{prefix}.{node.function}"):
            node.function, node.target = f"{prefix}.{node.function}", None
            self._resolve(node, None)
            return
        self.check(node.target)
        if not self._scope.has_function(node.function):
            self._undeclared(node, node.function)
            return
        self._resolve(node, node.target)

    def _resolve(self, node: Call, target: Node | None) -> None:
        args = [*([target] if target is not None else ()), *node.args]
        if node.function in ("_&&_", "_||_"):
            node.type = self._logical(node, args)
            return
        given = [arg.type for arg in args]
        result: Type | None = None
        for overload in FUNCTIONS[node.function]:
            if overload.member != (target is not None):
                continue
            wanted, made = self._fresh(overload)
            if not self._bindings.assignable(given, wanted):
                continue
            node.overloads.append(overload.id)
            found = self._bindings.substitute(made)
            if result is None:
                result = found
            elif not is_dyn(result) and not found.same(result):
                result = DYN
        if result is None:
            shown = [str(self._bindings.substitute(t, free=True)) for t in given]
            call = f"{shown[0]}.({', '.join(shown[1:])})" if target is not None else f"({', '.join(shown)})"
            self._issues.add(node.at, f"found no matching overload for '{node.function}' applied to '{call}'")
        node.type = result or ERROR

    def _logical(self, node: Call, args: list[Node]) -> Type:
        node.overloads = [FUNCTIONS[node.function][0].id]
        result = BOOL
        for arg in args:
            if not self._assignable(arg.type, BOOL):
                self._mismatch(arg, BOOL, arg.type)
                result = ERROR
        return result

    def _fresh(self, overload: Overload) -> tuple[list[Type], Type]:
        """Return the types of an overload with fresh type parameters."""
        names = {name for t in (*overload.args, overload.result) for name in _parameters(t)}
        if not names:
            return list(overload.args), overload.result
        own = Bindings({name: self._variable() for name in sorted(names)})
        return [own.substitute(t) for t in overload.args], own.substitute(overload.result)

    def _list(self, node: ListNode) -> None:
        joined: Type | None = None
        for i, item in enumerate(node.items):
            self.check(item)
            joined = self._joined(joined, self._unwrapped(item) if i in node.optional else item.type)
        node.type = list_of(joined or self._variable())

    def _map(self, node: MapNode) -> None:
        keys: Type | None = None
        values: Type | None = None
        for entry in node.entries:
            self.check(entry.key)
            keys = self._joined(keys, entry.key.type)
            self.check(entry.value)
            found = self._unwrapped(entry.value) if entry.optional else entry.value.type
            values = self._joined(values, found)
        node.type = map_of(keys or self._variable(), values or self._variable())

    def _struct(self, node: StructNode) -> None:
        found = self._scope.find(node.name)
        if found is None:
            self._undeclared(node, node.name)
            return
        message = found.params[0] if found.kind == "type" and found.params else ERROR
        if message.kind != "struct":
            what = "a type" if message is ERROR else "a message type"
            self._issues.add(node.at, f"'{node.name if message is ERROR else message}' is not {what}")
            message = ERROR
        node.type = message
        for entry in node.entries:
            self.check(entry.value)
            wanted = ERROR if message is ERROR else self._field_type(entry.at, message, entry.key) or ERROR
            given = self._unwrapped(entry.value) if entry.optional else entry.value.type
            if not self._assignable(wanted, given):
                self._issues.add(
                    entry.at,
                    f"expected type of field '{entry.key}' is '{wanted}' but provided type is '{given}'",
                )

    def _comprehension(self, node: Comprehension) -> None:
        self.check(node.range)
        self.check(node.init)
        ranged = self._bindings.substitute(node.range.type)
        accumulated = node.init.type
        first, second = ERROR, ERROR
        if ranged.kind == "list":
            first = second = ranged.params[0]
            if node.variable2:
                first = INT
        elif ranged.kind == "map":
            first, second = ranged.params
        elif ranged.kind in ("dyn", "error", "param"):
            self._assignable(DYN, ranged)
            first = second = DYN
        else:
            self._issues.add(
                node.range.at,
                f"expression of type '{ranged}' cannot be range of a comprehension (must be list, map, or dynamic)",
            )
        self._scope.enter(**{node.accumulator: accumulated})
        self._scope.enter(**({node.variable: first} | ({node.variable2: second} if node.variable2 else {})))
        self.check(node.condition)
        self._assert(node.condition, BOOL)
        self.check(node.step)
        self._assert(node.step, accumulated)
        self._scope.leave()
        self.check(node.result)
        self._scope.leave()
        node.type = self._bindings.substitute(node.result.type)

    def _unwrapped(self, node: Node) -> Type:
        inner, is_optional = unwrap_optional(node.type)
        if not is_optional and not is_dyn(inner):
            self._mismatch(node, optional_of(inner), inner)
        return inner

    def _joined(self, before: Type | None, now: Type) -> Type:
        if before is None:
            return now
        return most_general(before, now) if self._assignable(before, now) else DYN

    def _assert(self, node: Node, wanted: Type) -> None:
        if not self._assignable(wanted, node.type):
            self._mismatch(node, wanted, node.type)

    def _mismatch(self, node: Node, wanted: Type, found: Type) -> None:
        self._issues.add(node.at, f"expected type '{wanted}' but found '{found}'")

    def _assignable(self, a: Type, b: Type) -> bool:
        return self._bindings.assignable([a], [b])

    def _variable(self) -> Type:
        self._variables += 1
        return parameter(f"_var{self._variables - 1}")


def _qualified(node: Node) -> str:
    """Return the qualified name of an identifier or selection; "" if the node is something else."""
    match node:
        case Ident():
            return node.name
        case Select() if not node.test:
            prefix = _qualified(node.operand)
            return f"{prefix}.{node.field}" if prefix else ""
    return ""


def _parameters(t: Type) -> set[str]:
    if t.kind == "param":
        return {t.name}
    return {name for p in t.params for name in _parameters(p)}
