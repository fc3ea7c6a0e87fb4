"""Macros: `has`, and the calls that expand to comprehensions over lists and maps.

Macros expand to folds with an accumulator, as in kube-apiserver, for type checks and cost estimates. Evaluation uses
the name of the macro and its parts instead.
"""

from __future__ import annotations

from typing import Final

from ostinato.cel.tree import (
    Call,
    Comprehension,
    Ident,
    ListNode,
    Literal,
    MapNode,
    Node,
    Select,
    children,
    copied,
)
from ostinato.cel.types import BOOL, INT

ACCUMULATOR: Final = "@result"
_LARGEST_COPIED: Final = 2000
UNUSED: Final = "#unused"
_FORBIDDEN: Final = (ACCUMULATOR, "__result__")
_NAMES: Final = frozenset({
    ("all", 2), ("exists", 2), ("exists_one", 2), ("map", 2), ("map", 3), ("filter", 2), ("optMap", 2),
    ("optFlatMap", 2), ("all", 3), ("exists", 3), ("existsOne", 3), ("exists_one", 3), ("transformList", 3),
    ("transformList", 4), ("transformMap", 3), ("transformMap", 4), ("transformMapEntry", 3), ("transformMapEntry", 4),
    ("sortBy", 2),
})  # fmt: skip


class MacroError(Exception):
    def __init__(self, at: int, message: str) -> None:
        super().__init__(message)
        self.at = at


def expand(at: int, name: str, target: Node | None, args: list[Node]) -> Node | None:
    """Expand a call if it is a macro."""
    if target is None:
        if name != "has" or len(args) != 1:
            return None
        field = args[0]
        if not isinstance(field, Select) or field.test:
            raise MacroError(field.at, "invalid argument to has() macro")
        return Select(at, field.operand, field.field, test=True)
    if (name, len(args)) not in _NAMES:
        return None
    if name in ("optMap", "optFlatMap"):
        return _of_optional(at, name, target, args)
    if name == "sortBy":
        return _sorted(at, target, args)
    return _fold(at, name, target, args)


def _fold(at: int, name: str, target: Node, args: list[Node]) -> Node:
    two = name.startswith("transform") or (len(args) == 3 and name != "map")
    variable = _variable(args[0], name)
    second = _variable(args[1], name) if two else ""
    if two and variable == second:
        raise MacroError(args[1].at, f"duplicate variable name: {variable}")
    for node, text in ((args[0], variable), (args[1], second)):
        if text in _FORBIDDEN:
            raise MacroError(node.at, "iteration variable overwrites accumulator variable")
    parts = args[2:] if two else args[1:]
    name = "exists_one" if name == "existsOne" else name
    fold = Comprehension(at, name, target, (variable, second, ACCUMULATOR), parts)
    fold.result = _accumulated(at)
    fold.condition = Literal(at, value=True, literal=BOOL)
    last = parts[-1]
    match name:
        case "all":
            fold.init = Literal(at, value=True, literal=BOOL)
            fold.condition = Call(at, "@not_strictly_false", [_accumulated(at)])
            fold.step = Call(at, "_&&_", [_accumulated(at), last])
            return fold
        case "exists":
            fold.init = Literal(at, value=False, literal=BOOL)
            fold.condition = Call(at, "@not_strictly_false", [Call(at, "!_", [_accumulated(at)])])
            fold.step = Call(at, "_||_", [_accumulated(at), last])
            return fold
        case "exists_one":
            fold.init = Literal(at, 0, INT)
            more = Call(at, "_+_", [_accumulated(at), Literal(at, 1, INT)])
            fold.step = Call(at, "_?_:_", [last, more, _accumulated(at)])
            fold.result = Call(at, "_==_", [_accumulated(at), Literal(at, 1, INT)])
            return fold
        case "filter":
            fold.init = ListNode(at, [])
            more = Call(at, "_+_", [_accumulated(at), ListNode(at, [args[0]])])
            fold.step = Call(at, "_?_:_", [last, more, _accumulated(at)])
            return fold
        case "transformMap":
            fold.init = MapNode(at, [])
            more = Call(at, "cel.@mapInsert", [_accumulated(at), Ident(at, variable), last])
        case "transformMapEntry":
            fold.init = MapNode(at, [])
            more = Call(at, "cel.@mapInsert", [_accumulated(at), last])
        case _:
            fold.init = ListNode(at, [])
            more = Call(at, "_+_", [_accumulated(at), ListNode(at, [last])])
    fold.step = Call(at, "_?_:_", [parts[0], more, _accumulated(at)]) if len(parts) == 2 else more
    return fold


def _of_optional(at: int, name: str, target: Node, args: list[Node]) -> Node:
    if not isinstance(args[0], Ident):
        raise MacroError(args[0].at, f"{name}() variable name must be a simple identifier")
    if _is_large(target):  # it is copied, so that nested macros grow exponentially
        raise MacroError(at, f"{name}() is called on an expression of more than {_LARGEST_COPIED} parts")
    bound = _bound(at, args[0].name, Call(at, "value", [], copied(target)), args[1])
    found: Node = bound if name == "optFlatMap" else Call(at, "optional.of", [bound])
    return Call(at, "_?_:_", [Call(at, "hasValue", [], target), found, Call(at, "optional.none", [])])


def _is_large(node: Node) -> bool:
    found = [node]
    for below in found:
        found += children(below)
        if len(found) > _LARGEST_COPIED:
            return True
    return False


def _sorted(at: int, target: Node, args: list[Node]) -> Node:
    """Expand sortBy: create both lists, and sort one by the other."""
    if not isinstance(args[0], Ident):
        raise MacroError(args[0].at, "argument must be a simple name")
    if args[0].name in _FORBIDDEN:
        raise MacroError(args[0].at, "iteration variable overwrites accumulator variable")
    name = "@__sortBy_input__"
    keys = _fold(at, "map", Ident(at, name), args)
    return _bound(at, name, target, Call(at, "@sortByAssociatedKeys", [keys], Ident(at, name)))


def _bound(at: int, name: str, value: Node, body: Node) -> Node:
    """Expand cel.bind: an expression with a variable."""
    bound = Comprehension(at, "bind", ListNode(at, []), (UNUSED, "", name), [value, body])
    bound.init = value
    bound.condition = Literal(at, value=False, literal=BOOL)
    bound.step = Ident(at, name)
    bound.result = body
    return bound


def _accumulated(at: int) -> Ident:
    return Ident(at, ACCUMULATOR)


def _variable(node: Node, macro: str) -> str:
    if not isinstance(node, Ident):
        message = "argument is not an identifier" if macro in ("map", "filter") else "argument must be a simple name"
        raise MacroError(node.at, message)
    return node.name
