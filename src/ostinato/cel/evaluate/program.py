"""Programs: compile a checked tree to nested Python functions that evaluate it and count the cost.

Constant costs are summed at compile time, and counted where evaluation branches: at the operands of && and ||, in
loops, at the root. Loops stop when the limit is exceeded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ostinato.cel.cost.runtime import LIST, MAP, MESSAGE
from ostinato.cel.evaluate import loops
from ostinato.cel.evaluate.access import has_field, index, optional_field, optional_index, selected
from ostinato.cel.evaluate.calls import called, combined, compared
from ostinato.cel.evaluate.code import FIRST, SPENT, Code, Frame, charged
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
from ostinato.cel.values import CelError, CostExceededError, Optional, TypeValue, no_overload


class Program:
    """A compiled expression."""

    def __init__(self, node: Node, variables: Sequence[str]) -> None:
        compiler = _Compiler(variables)
        self._run = charged(compiler.compile(node))
        self._extra = compiler.most - len(variables)

    def evaluate(self, values: Sequence[Any], limit: int) -> tuple[Any, int]:
        """Return value and cost of the expression. Raises CelError, which has the cost too."""
        frame: Frame = [0, limit, 0, *values, *([None] * self._extra)]
        try:
            found = self._run(frame)
        except (CelError, CostExceededError) as error:
            error.cost = frame[SPENT]
            raise
        except RecursionError:
            raise CelError("expression is nested too deeply") from None
        except (
            TypeError,
            AttributeError,
            ValueError,
            OverflowError,
        ):  # type error of a dynamically typed value
            failed = no_overload()
            failed.cost = frame[SPENT]
            raise failed from None
        if frame[SPENT] > limit:
            exceeded = CostExceededError()
            exceeded.cost = frame[SPENT]
            raise exceeded
        return found, frame[SPENT]


class _Compiler:
    def __init__(self, variables: Sequence[str]) -> None:
        self._places: dict[str, list[int]] = {name: [FIRST + i] for i, name in enumerate(variables)}
        self._used = len(variables)
        self.most = self._used  # maximum number of variables at a time

    def compile(self, node: Node) -> Code:
        match node:
            case Literal():
                value = node.value
                return Code(lambda _: value, 0, constant=True)
            case Ident():
                return self._ident(node)
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case ListNode():
                return self._list(node)
            case MapNode():
                return self._map(node)
            case StructNode():
                return self._struct(node)
            case Comprehension():
                return self._comprehension(node)
        raise TypeError(type(node).__name__)

    def _named(self, name: str, kind: Type) -> Code:
        places = self._places.get(name)
        if not places:
            value = TypeValue(_TYPE_TEXTS.get(kind.params[0].name, kind.params[0].name) if kind.params else name)
            return Code(lambda _: value, 0, constant=True)
        place = places[-1]
        return Code(lambda frame: frame[place], 1)

    def _ident(self, node: Ident) -> Code:
        return self._named(node.name, node.type)

    def _select(self, node: Select) -> Code:
        if node.qualified:
            return self._named(node.qualified, node.type)
        operand = self._base(node.operand)
        if node.test:
            return Code(has_field(operand.run, node.operand.type, node.field), operand.cost)
        return Code(
            selected(operand.run, node.operand.type, node.field), operand.cost + (not _is_optional(node.operand))
        )

    def _base(self, node: Node) -> Code:
        """Compile an operand of a selection or index; it costs one more if it is not a path from a variable."""
        code = self.compile(node)
        return code if _is_path(node) else code._replace(cost=code.cost + 1)

    def _operand_path(self, node: Node) -> Code:
        """Compile an index, or a branch of a conditional; it costs one less if it is a path from a variable."""
        code = self.compile(node)
        return code._replace(cost=max(code.cost - 1, 0)) if _is_path(node) else code

    def _call(self, node: Call) -> Code:
        match node.function:
            case "_&&_" | "_||_":
                return self._logical(node)
            case "_?_:_":
                return self._conditional(node)
            case "_==_" | "_!=_":
                return compared(node, self.compile(node.args[0]), self.compile(node.args[1]))
            case "_+_":
                return combined(node, self.compile(node.args[0]), self.compile(node.args[1]))
            case "_[_]":
                target, key = self._base(node.args[0]), self._operand_path(node.args[1])
                cost = target.cost + key.cost + (not _is_optional(node.args[0]))
                return Code(index(target.run, key.run, node.args[0].type), cost)
            case "_[?_]":
                target, key = self._base(node.args[0]), self._operand_path(node.args[1])
                return Code(optional_index(target.run, key.run), target.cost + key.cost)
            case "_?._":
                target = self._base(node.args[0])
                name: Any = node.args[1]
                return Code(optional_field(target.run, node.args[0].type, name.value), target.cost)
            case "or" | "orValue" if node.target is not None:
                return self._or(node)
        args = [self.compile(arg) for arg in ((node.target,) if node.target is not None else ()) + tuple(node.args)]
        return called(node, args)

    def _logical(self, node: Call) -> Code:
        left, right = (self.compile(arg) for arg in node.args)
        decides = node.function == "_||_"
        first, second = left.run, charged(right)

        def function(frame: Frame) -> Any:
            try:
                value = first(frame)
                if value is decides:
                    return decides
                failed = None if type(value) is bool else no_overload()
            except CelError as error:
                failed = error
            try:
                value = second(frame)
            except CelError as error:
                raise failed or error from None  # of two errors the first is reported
            if value is decides:
                return decides
            if failed is not None:
                raise failed
            if type(value) is not bool:
                raise no_overload()
            return not decides

        return Code(function, left.cost)

    def _conditional(self, node: Call) -> Code:
        condition = self.compile(node.args[0])
        yes, no = (self._operand_path(arg) for arg in node.args[1:])
        test, first, second = condition.run, charged(yes), charged(no)

        def function(frame: Frame) -> Any:
            value = test(frame)
            if value is True:
                return first(frame)
            if value is False:
                return second(frame)
            raise no_overload()

        return Code(function, condition.cost)

    def _or(self, node: Call) -> Code:
        """Compile `or` and `orValue` of optionals; the alternative is evaluated lazily."""
        assert node.target is not None
        first, second = self.compile(node.target), self.compile(node.args[0])
        run, other, whole = first.run, charged(second), node.function == "or"

        def function(frame: Frame) -> Any:
            value = run(frame)
            if type(value) is not Optional:
                raise no_overload()
            if value.present:
                return value if whole else value.value
            return other(frame)

        return Code(function, first.cost)

    def _list(self, node: ListNode) -> Code:
        items = [self.compile(item) for item in node.items]
        runs = [item.run for item in items]
        if all(item.constant for item in items) and not node.optional:
            value = [run([]) for run in runs]
            return Code(lambda _: value, 0, constant=True)
        cost = sum(item.cost for item in items) + LIST
        if not node.optional:
            return Code(lambda frame: [run(frame) for run in runs], cost)
        optional = node.optional

        def function(frame: Frame) -> list[Any]:
            found = []
            for i, run in enumerate(runs):
                value = run(frame)
                if i not in optional:
                    found.append(value)
                elif type(value) is not Optional:
                    raise CelError(f"cannot initialize optional list element from non-optional value {value}")
                elif value.present:
                    found.append(value.value)
            return found

        return Code(function, cost)

    def _map(self, node: MapNode) -> Code:
        entries = [(self.compile(e.key), self.compile(e.value), e.optional) for e in node.entries]
        cost = sum(key.cost + value.cost for key, value, _ in entries) + MAP
        runs = [(key.run, value.run, optional) for key, value, optional in entries]
        constant = all(key.constant and value.constant for key, value, _ in entries)

        def function(frame: Frame) -> dict[Any, Any]:
            found: dict[Any, Any] = {}
            for key, value, optional in runs:
                _put(found, key(frame), value(frame), optional=optional)
            return found

        if constant and not any(optional for _, _, optional in entries):
            made = function([])
            return Code(lambda _: made, 0, constant=True)
        return Code(function, cost)

    def _struct(self, node: StructNode) -> Code:
        entries = [(e.key, self.compile(e.value), e.optional) for e in node.entries]
        runs = [(key, value.run, optional) for key, value, optional in entries]

        def function(frame: Frame) -> dict[str, Any]:
            found: dict[str, Any] = {}
            for key, value, optional in runs:
                _put(found, key, value(frame), optional=optional)
            return found

        return Code(function, sum(value.cost for _, value, _ in entries) + MESSAGE)

    def _comprehension(self, node: Comprehension) -> Code:
        if node.macro == "bind":
            return self._bound(node)
        source = self.compile(node.range)
        first = self._enter(node.variable)
        second = self._enter(node.variable2) if node.variable2 else 0
        parts = [self.compile(part) for part in node.parts]
        for name in (node.variable2, node.variable):
            if name:
                self._leave(name)
        return loops.loop(node.macro, source, (first, second), parts)

    def _bound(self, node: Comprehension) -> Code:
        value = self.compile(node.init)
        place = self._enter(node.accumulator)
        body = self.compile(node.result)
        self._leave(node.accumulator)
        make, run = value.run, body.run

        def function(frame: Frame) -> Any:
            frame[place] = make(frame)
            return run(frame)

        return Code(function, value.cost + body.cost)

    def _enter(self, name: str) -> int:
        place = FIRST + self._used
        self._places.setdefault(name, []).append(place)
        self._used += 1
        self.most = max(self.most, self._used)
        return place

    def _leave(self, name: str) -> None:
        self._places[name].pop()
        self._used -= 1


_WAYS: Final = frozenset({"_[_]", "_?._", "_[?_]", "_?_:_"})


def _is_optional(node: Node) -> bool:
    return unwrap_optional(node.type)[1]


def _is_path(node: Node) -> bool:
    if isinstance(node, Call):
        return node.function in _WAYS
    return isinstance(node, Ident) or (isinstance(node, Select) and not node.test)


_TYPE_TEXTS: Final = {
    "null": "null_type",
    "timestamp": "google.protobuf.Timestamp",
    "duration": "google.protobuf.Duration",
}


def _put(entries: dict[Any, Any], key: Any, value: Any, *, optional: bool) -> None:
    if optional:
        if type(value) is not Optional:
            raise CelError(f"cannot initialize optional entry '{key}' from non-optional value {value}")
        if not value.present:
            return
        value = value.value
    try:
        repeated = key in entries
    except TypeError:
        raise no_overload() from None
    if repeated:
        raise CelError(f"Failed with repeated key: {key}")
    entries[key] = value
