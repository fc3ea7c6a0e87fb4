"""Function calls: a single overload is called directly; several are resolved by the values at run time."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

from ostinato.cel.check.signatures import FUNCTIONS
from ostinato.cel.cost.runtime import Cost, by_result, call_cost, equality_cost
from ostinato.cel.evaluate.code import LIMIT, SPENT, WORK, Code, Frame, Run
from ostinato.cel.libraries import IMPLEMENTATIONS
from ostinato.cel.libraries.lists import contains
from ostinato.cel.libraries.strings import expression
from ostinato.cel.tree import Call, ListNode
from ostinato.cel.types import Type
from ostinato.cel.values import CelError, CostExceededError, equal, no_overload, type_name

_COMPARISONS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "_<_": operator.lt,
    "_<=_": operator.le,
    "_>_": operator.gt,
    "_>=_": operator.ge,
}
_OVERLOADS: Final = {o.id: o for overloads in FUNCTIONS.values() for o in overloads}
# Functions that are evaluated at compile time if their arguments are constants, so that errors are reported then.
_FOLDED: Final = frozenset({"int", "uint", "double", "string", "bytes", "bool", "duration", "timestamp", "type", "dyn"})
_MOST_WORK: Final = 4_000_000  # comparisons within lists and maps per evaluation
_PATTERNS: Final = frozenset({"find", "findAll"})
# Types that Python compares like CEL.
_PLAIN: Final = frozenset({"bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration", "opaque"})
_TYPE_NAMES: Final = {
    "null": "null_type",
    "timestamp": "google.protobuf.Timestamp",
    "duration": "google.protobuf.Duration",
}


def called(node: Call, args: list[Code]) -> Code:
    """Compile a call."""
    if node.function == "@in" and args[1].constant and isinstance(node.args[1], ListNode):
        return Code(_member_of(args), args[0].cost)
    function, cost = _chosen(node)
    if node.function in _FOLDED and all(arg.constant for arg in args):
        value = function(*[arg.run([]) for arg in args])
        return Code(lambda _: value, 0, constant=True)
    if node.function in _PATTERNS and args[1].constant and type(args[1].run([])) is str:
        expression(args[1].run([]))
    below = sum(arg.cost for arg in args)
    runs = [arg.run for arg in args]
    if isinstance(cost, int):
        return Code(_applied(function, runs), below + cost)
    paid_after = any(by_result(node.function, overload) for overload in node.overloads)
    return Code(_counted(function, cost, runs, paid_after=paid_after), below)


def _member_of(args: list[Code]) -> Run:
    """Compile `in` with a list of constants."""
    value, items = args[0].run, args[1].run([])
    if all(type(item) is str for item in items):
        texts = frozenset(items)

        def among(frame: Frame) -> bool:
            found = value(frame)
            return type(found) is str and found in texts

        return among
    return lambda frame: contains(items, value(frame))


def _chosen(node: Call) -> tuple[Callable[..., Any], Cost]:
    name = node.function
    if len(node.overloads) == 1:
        only = node.overloads[0]
        if name in _COMPARISONS:
            return _ordered(_COMPARISONS[name]) if "double" in only else _COMPARISONS[name], call_cost(name, only)
        dynamic = any(arg.type.kind == "dyn" for arg in (*node.args, *([node.target] if node.target else ())))
        if not dynamic:
            return IMPLEMENTATIONS[only], call_cost(name, only)
    return _dispatched(name, node.overloads), _dispatched_cost(name, node.overloads)


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def function(a: Any, b: Any) -> bool:
        if a != a or b != b:  # noqa: PLR0124 - so is NaN alone
            raise CelError("NaN values cannot be ordered")
        return compare(a, b)

    return function


def _matches(kind: Type, value: Any) -> bool:
    if kind.kind in ("dyn", "param", "any"):
        return True
    return type_name(value) == _TYPE_NAMES.get(kind.kind, kind.name)


def _find(name: str, overloads: list[str], args: tuple[Any, ...]) -> str:
    for overload in overloads:
        declared = _OVERLOADS[overload].args
        if len(declared) == len(args) and all(map(_matches, declared, args)):
            return overload
    raise no_overload(name if len(args) == 1 and name not in ("!_", "-_") else "")


def _dispatched(name: str, overloads: list[str]) -> Callable[..., Any]:
    compare = _COMPARISONS.get(name)

    def function(*args: Any) -> Any:
        overload = _find(name, overloads, args)
        if compare is not None:
            return _ordered(compare)(*args)
        return IMPLEMENTATIONS[overload](*args)

    return function


def _dispatched_cost(name: str, overloads: list[str]) -> Cost:
    costs = {overload: call_cost(name, overload) for overload in overloads}
    if all(cost == 1 for cost in costs.values()):
        return 1

    def function(args: tuple[Any, ...], result: Any) -> int:
        cost = costs[_find(name, overloads, args)]
        return cost if isinstance(cost, int) else cost(args, result)

    return function


def _applied(function: Callable[..., Any], runs: list[Run]) -> Run:
    if len(runs) == 1:
        (first,) = runs
        return lambda frame: function(first(frame))
    if len(runs) == 2:
        first, second = runs
        return lambda frame: function(first(frame), second(frame))
    return lambda frame: function(*[run(frame) for run in runs])


def _counted(
    function: Callable[..., Any],
    cost: Callable[[tuple[Any, ...], Any], int],
    runs: list[Run],
    *,
    paid_after: bool = False,
) -> Run:
    def counted(frame: Frame) -> Any:
        args = tuple([run(frame) for run in runs])
        frame[SPENT] += cost(args, None)
        if frame[SPENT] > frame[LIMIT]:
            raise CostExceededError
        return function(*args)

    def counted_after(frame: Frame) -> Any:
        args = tuple([run(frame) for run in runs])
        result = function(*args)
        frame[SPENT] += cost(args, result)
        if frame[SPENT] > frame[LIMIT]:
            raise CostExceededError
        return result

    return counted_after if paid_after else counted


def compared(node: Call, left: Code, right: Code) -> Code:
    """Compile == and !=."""
    kinds = (node.args[0].type, node.args[1].type)
    wanted = node.function == "_==_"
    same = _equality(*kinds)

    def function(a: Any, b: Any) -> bool:
        return same(a, b) is wanted

    plain = same is operator.eq
    use = (operator.eq if wanted else operator.ne) if plain else function
    cost = equality_cost(kinds[0].kind) if kinds[0].kind == kinds[1].kind else equality_cost("dyn")
    runs = [left.run, right.run]
    if isinstance(cost, int):
        return Code(_applied(use, runs), left.cost + right.cost + cost)
    return Code(_limited(use, cost, runs), left.cost + right.cost)


def _limited(same: Callable[[Any, Any], bool], cost: Callable[[tuple[Any, ...], Any], int], runs: list[Run]) -> Run:
    """Limit the work of comparing large values, which is slow but has a low cost."""
    left, right = runs

    def limited(frame: Frame) -> bool:
        a, b = left(frame), right(frame)
        frame[SPENT] += cost((a, b), None)
        if type(a) is list or type(a) is dict:
            frame[WORK] += _parts(a)
        if frame[SPENT] > frame[LIMIT] or frame[WORK] > _MOST_WORK:
            raise CostExceededError
        return same(a, b)

    return limited


def _parts(value: Any) -> int:
    if type(value) is list:
        return 1 + sum(map(_parts, value))
    return 1 + sum(map(_parts, value.values())) if type(value) is dict else 1


def _equality(a: Type, b: Type) -> Callable[[Any, Any], bool]:
    if a.kind == b.kind and a.kind in _PLAIN:
        return operator.eq
    for kind in (a, b):
        if kind.origin is not None and kind.origin.nested:
            return kind.origin.equal  # type: ignore[no-any-return]
    return equal


def combined(node: Call, left: Code, right: Code) -> Code:
    """Compile +, which merges set and map lists."""
    origin = node.args[0].type.origin
    if node.args[0].type.kind == "list" and origin is not None and origin.list_type != "atomic":
        return Code(_applied(origin.joined, [left.run, right.run]), left.cost + right.cost + 1)
    return called(node, [left, right])
