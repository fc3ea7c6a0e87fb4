"""Estimated maximum cost and result size of function calls, from the sizes of their arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ostinato.cel.cost.ranges import ANY, MOST, ONE, Range, fixed
from ostinato.cel.cost.runtime import CHECK, LIST, MESSAGE
from ostinato.cel.tree import Literal

if TYPE_CHECKING:
    from ostinato.cel.cost.estimate import Estimator, Sized

Estimate = tuple[Range, Range | None]  # cost, and size of the result if known
_WALK: Final = 0.1  # per character
_REGEX: Final = 0.25  # per character of a pattern
_LONGEST_NAME_PATTERN: Final = 128
_ADDRESS: Final = Range(4, 16)
_SINGLE: Final = ("net.IP", "net.CIDR")
_UNIT_MESSAGES: Final = ("kubernetes.Quantity", "kubernetes.Semver", "kubernetes.authorization.")


class _Call:
    """A call, with the sizes of its arguments."""

    def __init__(self, estimator: Estimator, target: Sized | None, args: list[Sized]) -> None:
        self.estimator = estimator
        self.target = target
        self.args = args

    def size(self, index: int) -> Range:
        """Return the size of an argument; -1 is the receiver."""
        part = self.target if index < 0 else self.args[index]
        if part is None:
            return ANY
        return part.size if part.size is not None else self.estimator.declared_size(part.path) or ANY

    def own(self, index: int) -> Range:
        """Return the size of an argument without the limit of its schema."""
        part = self.target if index < 0 else self.args[index]
        return part.size if part is not None and part.size is not None else ANY

    def item_size(self) -> Range | None:
        """Return the size of the receiver's items; None if it is not a list."""
        if self.target is None or not self.target.type.params:
            return None
        return self.estimator.declared_size((*self.target.path, "@items") if self.target.path else ()) or ANY

    def literal(self, index: int, otherwise: int) -> int:
        node = self.args[index].node
        if isinstance(node, Literal) and type(node.value) is int:
            return max(node.value, 0)
        return otherwise


def call_estimate(
    estimator: Estimator, function: str, overload: str, target: Sized | None, args: list[Sized]
) -> Estimate:
    """Return the cost of a call without that of its arguments."""
    call = _Call(estimator, target, args)
    found = _BY_OVERLOAD.get(overload)
    if found is None and overload != "cidr_ip":
        found = _BY_FUNCTION.get(function)
    if found is not None:
        return found(call)
    if overload in ("equals", "not_equals") or (
        overload.endswith(("_string", "_bytes")) and overload.startswith(("less_", "greater_"))
    ):
        return _comparison(call, overload)
    return ONE, None


def _comparison(call: _Call, overload: str) -> Estimate:
    left = call.args[0].type
    if overload == "equals" and left.same(call.args[1].type):
        if left.name in _SINGLE or left.name.startswith(_UNIT_MESSAGES):
            return ONE, None
        if left.name == "kubernetes.NamedFormat":
            return Range(1, 64).times(_WALK), None
        if left.name == "kubernetes.URL":
            known = call.args[1].size
            return Range(1, known.most if known is not None else 1).times(_WALK), None
    smaller = min((part.size or ANY).most for part in call.args[:2])
    return Range(1 if smaller > 0 else 0, smaller).times(_WALK), None


def _walked(index: int, factor: float, *, keeps: bool = False) -> Callable[[_Call], Estimate]:
    def function(call: _Call) -> Estimate:
        size = call.size(index)
        return size.times(factor), size if keeps else None

    return function


def _items(call: _Call) -> Estimate:
    """Functions that traverse a list or string once."""
    item = call.item_size()
    if item is None or call.target is None:
        return call.size(-1).times(_WALK), None
    cost = ONE
    if call.target.type.params[0].kind in ("string", "bytes"):
        cost += item.times(_WALK)
    return call.size(-1) * cost, None


def _regex(call: _Call) -> Estimate:
    size = call.size(-1)
    return (size + ONE).times(_WALK) * call.size(0).times(_REGEX), Range(0, size.most)


def _matches(call: _Call) -> Estimate:
    return (call.own(-1) + ONE).times(_WALK) * call.own(0).times(_REGEX), None


def _contains(call: _Call) -> Estimate:
    return call.own(-1).times(_WALK) * call.own(0).times(_WALK), None


def _replace(call: _Call) -> Estimate:
    size, old, new = call.size(-1), call.size(0), call.size(1)
    most, kept_most = _replaced(size.most, old.least, new.most <= old.least)
    least, kept_least = _replaced(size.least, old.most, old.most <= new.least)
    made = Range(min(least, most), most) * new + Range(kept_least, kept_most)
    return size.times(2 * _WALK), Range(min(least * new.least + kept_least, MOST), made.most)


def _replaced(size: int, part: int, keeps: bool) -> tuple[int, int]:
    """Return how often a substring of this size can be replaced, and how much of the string remains."""
    if part == 0:
        return min(size + 1, MOST), size
    return (0, size) if keeps else (min(-(-size // part), MOST), 0)


def _split(call: _Call) -> Estimate:
    size = call.size(-1)
    most = call.literal(1, size.most) if len(call.args) > 1 else size.most
    if len(call.args) > 1 and isinstance(call.args[1].node, Literal) and call.args[1].node.value < 0:
        most = MOST
    return size.times(2 * _WALK), Range(0, most)


def _join(call: _Call) -> Estimate:
    count, item = call.size(-1), call.item_size()
    size = count * item if item is not None else Range(0, 0)
    if call.args:
        between = Range(max(count.least - 1, 0), max(count.most - 1, 0))
        size += call.size(0) * between
    return size.times(_WALK), size


def _selector(call: _Call) -> Estimate:
    size = call.size(0)
    return fixed(LIST) + size.times(_WALK) + size.times(0.5).times(LIST + MESSAGE), None


def _contains_address(*, network: bool, text: bool) -> Callable[[_Call], Estimate]:
    def function(call: _Call) -> Estimate:
        cost = (_ADDRESS + _ADDRESS).times(_WALK)
        if network:
            cost += _ADDRESS.times(_WALK) + ONE
        return cost + call.size(0).times(_WALK) if text else cost, None

    return function


def _made(factor: float, size: Range) -> Estimate:
    return size.times(factor) + fixed(LIST + 1), size


def _pairs(index: int, *, texts: bool = False) -> Callable[[_Call], Estimate]:
    def function(call: _Call) -> Estimate:
        size = call.size(index)
        return _made(2.1 if texts else 2.0, size * size)

    return function


def _sets(factor: float) -> Callable[[_Call], Estimate]:
    def function(call: _Call) -> Estimate:
        return (call.size(0) * call.size(1)).times(factor) + ONE, None

    return function


def _slice(call: _Call) -> Estimate:
    start, end = call.literal(0, 0), call.literal(1, MOST)
    return _made(1, fixed(end - start if end >= start else (end - start) % (1 << 64)))


def _flatten(call: _Call) -> Estimate:
    return _made(call.literal(0, MOST) if call.args else 1, call.size(-1))


def _joined(*, walks: bool) -> Callable[[_Call], Estimate]:
    def function(call: _Call) -> Estimate:
        size = call.own(0) + call.own(1)
        return size.times(_WALK) if walks else ONE, size

    return function


def _bytes(call: _Call) -> Estimate:
    size = call.own(0)
    return size.times(_WALK), Range(size.least, size.most * 4 % (1 << 64))


def _text(call: _Call) -> Estimate:
    size = call.own(0)
    return size.times(_WALK), Range(size.least // 4, size.most)


def _quoted(call: _Call) -> Estimate:
    size = call.own(0)
    return size.times(_WALK), Range(size.least + 2, (size.most * 2 + 2) % (1 << 64))


_ALL_TYPES: Final = (
    "int", "uint", "double", "bool", "google.protobuf.Duration", "google.protobuf.Timestamp", "string", "bytes",
)  # fmt: skip
_BY_OVERLOAD: Final[dict[str, Callable[[_Call], Estimate]]] = {
    "list_slice": _slice,
    "list_flatten": _flatten,
    "list_flatten_int": _flatten,
    "lists_range": lambda call: _made(1, fixed(call.literal(0, MOST))),
    "list_reverse": lambda call: _made(1, call.size(-1)),
    "list_distinct": _pairs(-1),
    **{f"list_{kind}_sort": _pairs(-1, texts=kind in ("string", "bytes")) for kind in _ALL_TYPES},
    **{f"list_{kind}_sortByAssociatedKeys": _pairs(0, texts=kind in ("string", "bytes")) for kind in _ALL_TYPES},
    "list_sets_contains_list": _sets(1),
    "list_sets_intersects_list": _sets(1),
    "list_sets_equivalent_list": _sets(2),
    "string_format": lambda call: (call.own(-1).times(_WALK), None),
    "string_to_bytes": _bytes,
    "bytes_to_string": _text,
    "strings_quote": _quoted,
    **dict.fromkeys(("starts_with_string", "ends_with_string"), lambda call: (call.own(0).times(_WALK), None)),
    "in_list": lambda call: (call.own(1).times(1), None),
    "matches_string": _matches,
    "contains_string": _contains,
    "add_string": _joined(walks=True),
    "add_bytes": _joined(walks=True),
    "add_list": _joined(walks=False),
    "cidr_contains_ip_ip": _contains_address(network=False, text=False),
    "cidr_contains_ip_string": _contains_address(network=False, text=True),
    "cidr_contains_cidr": _contains_address(network=True, text=False),
    "cidr_contains_cidr_string": _contains_address(network=True, text=True),
}
_BY_FUNCTION: Final[dict[str, Callable[[_Call], Estimate]]] = {
    "check": lambda _: (fixed(CHECK), None),
    **dict.fromkeys(("fieldSelector", "labelSelector"), _selector),
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _items),
    **dict.fromkeys(("url", "jsonpatch.escapeKey"), _walked(0, _WALK, keeps=True)),
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _walked(-1, _WALK, keeps=True)),
    "replace": _replace,
    "split": _split,
    "join": _join,
    **dict.fromkeys(("find", "findAll"), _regex),
    **dict.fromkeys(
        ("cidr", "isIP", "isCIDR", "ip", "quantity", "isQuantity", "semver", "isSemver"), _walked(0, _WALK)
    ),
    "ip.isCanonical": _walked(0, 2 * _WALK),
    "validate": lambda call: (call.size(0).times(_WALK).times(_LONGEST_NAME_PATTERN * _REGEX), None),
}
