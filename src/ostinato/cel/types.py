"""CEL types: their names, and assignability.

A type has a kind (`int`, `list`, `struct`…), a name and parameters. Types from schemas have their declaration as
`origin`, which is not compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final


class Type:
    """A type. Immutable."""

    __slots__ = ("kind", "name", "origin", "params")

    def __init__(self, kind: str, name: str = "", params: tuple[Type, ...] = (), origin: Any = None) -> None:
        self.kind = kind
        self.name = name or kind
        self.params = params
        self.origin = origin  # declaration of a schema: evaluation needs its field names and equality

    def same(self, other: Type) -> bool:
        if self is other:
            return True
        if self.kind != other.kind or self.name != other.name or len(self.params) != len(other.params):
            return False
        return all(mine.same(theirs) for mine, theirs in zip(self.params, other.params, strict=True))

    def __str__(self) -> str:
        if self.kind == "error":
            return "!error!"
        if self.kind == "struct" and self.origin is not None:
            return self.name
        if not self.params:
            return self.name
        return f"{self.name}({', '.join(map(str, self.params))})"

    __repr__ = __str__


DYN: Final = Type("dyn")
ERROR: Final = Type("error")
NULL: Final = Type("null")
BOOL: Final = Type("bool")
INT: Final = Type("int")
UINT: Final = Type("uint")
DOUBLE: Final = Type("double")
STRING: Final = Type("string")
BYTES: Final = Type("bytes")
TIMESTAMP: Final = Type("timestamp")
DURATION: Final = Type("duration")
TYPE: Final = Type("type")
SIMPLE: Final = {t.name: t for t in (DYN, NULL, BOOL, INT, UINT, DOUBLE, STRING, BYTES, TIMESTAMP, DURATION, TYPE)}
# Types of the libraries: the first are messages in CEL, the second are not.
_MESSAGES: Final = (
    "kubernetes.Quantity",
    "kubernetes.Semver",
    "kubernetes.URL",
    "kubernetes.NamedFormat",
    "kubernetes.authorization.Authorizer",
    "kubernetes.authorization.PathCheck",
    "kubernetes.authorization.GroupCheck",
    "kubernetes.authorization.ResourceCheck",
    "kubernetes.authorization.Decision",
)
NAMED: Final = {
    **{name: Type("struct", name) for name in _MESSAGES},
    **{name: Type("opaque", name) for name in ("net.IP", "net.CIDR")},
}


def list_of(item: Type, origin: Any = None) -> Type:
    return Type("list", "list", (item,), origin)


def map_of(key: Type, value: Type, origin: Any = None) -> Type:
    return Type("map", "map", (key, value), origin)


def optional_of(value: Type) -> Type:
    return Type("opaque", "optional_type", (value,))


def type_of(value: Type) -> Type:
    return Type("type", "type", (value,))


def parameter(name: str) -> Type:
    return Type("param", name)


def is_dyn(t: Type) -> bool:
    return t.kind in ("dyn", "any")


def is_dyn_or_error(t: Type) -> bool:
    return t.kind in ("dyn", "any", "error")


def unwrap_optional(t: Type) -> tuple[Type, bool]:
    if t.kind == "opaque" and t.name == "optional_type":
        return t.params[0], True
    return t, False


class Bindings:
    """Bindings of type parameters."""

    __slots__ = ("_known",)

    def __init__(self, known: dict[str, Type] | None = None) -> None:
        self._known = known or {}

    def find(self, t: Type) -> Type | None:
        return self._known.get(t.name) if t.kind == "param" else None

    def assignable(self, first: Sequence[Type], second: Sequence[Type]) -> bool:
        """Whether the types of the first list are assignable to those of the second; binds type parameters."""
        if len(first) != len(second):
            return False
        tried = Bindings(dict(self._known))
        if not all(tried._fits(a, b) for a, b in zip(first, second, strict=True)):
            return False
        self._known = tried._known
        return True

    def _fits(self, a: Type, b: Type) -> bool:
        if b.kind == "param":
            valid, known = self._bind(a, b)
            if valid or known:
                return valid
        if a.kind == "param":
            return self._bind(b, a)[0]
        if is_dyn_or_error(a) or is_dyn_or_error(b):
            return True
        if a.kind == "null":
            return _nullable(b)
        if b.kind == "null":
            return _nullable(a)
        if a.kind == "type":
            return b.kind == "type"
        if a.kind in ("opaque", "list", "map"):
            return (
                a.kind == b.kind
                and a.name == b.name
                and len(a.params) == len(b.params)
                and all(self._fits(x, y) for x, y in zip(a.params, b.params, strict=True))
            )
        return a.same(b)

    def _bind(self, value: Type, param: Type) -> tuple[bool, bool]:
        """Bind a parameter to a type. Returns whether that is possible, and whether it was bound before."""
        if value.same(param):
            return True, True
        before = self.find(param)
        if before is None:
            if self._occurs(param, value):
                return False, False
            self._known[param.name] = value
            return True, False
        if value.same(before):
            return True, True
        if not self._fits(value, before):
            return False, True
        new = most_general(value, before)
        if not self._occurs(param, new):
            self._known[param.name] = new
        return True, True

    def _occurs(self, param: Type, within: Type) -> bool:
        if param.same(within):
            return True
        if within.kind == "param":
            known = self.find(within)
            return known is not None and self._occurs(param, known)
        return within.kind in ("opaque", "list", "map", "type") and any(self._occurs(param, p) for p in within.params)

    def substitute(self, t: Type, *, free: bool = False) -> Type:
        """Substitute bound parameters; `free`: unbound ones become dyn."""
        known = self.find(t)
        if known is not None:
            return self.substitute(known, free=free)
        if t.kind == "param":
            return DYN if free else t
        if t.params:
            params = tuple(self.substitute(p, free=free) for p in t.params)
            if any(new is not old for new, old in zip(params, t.params, strict=True)):
                return Type(t.kind, t.name, params, t.origin)
        return t


def most_general(a: Type, b: Type) -> Type:
    return a if _less_specific(a, b) else b


def _less_specific(a: Type, b: Type) -> bool:
    if is_dyn(a) or a.kind == "param":
        return True
    if is_dyn(b) or b.kind == "param" or a.kind != b.kind:
        return False
    if a.kind == "type":
        return True
    if a.kind in ("opaque", "list", "map"):
        if a.name != b.name or len(a.params) != len(b.params):
            return False
        return all(_less_specific(x, y) for x, y in zip(a.params, b.params, strict=True))
    return a.same(b)


def _nullable(t: Type) -> bool:
    return t.kind in ("null", "opaque", "struct", "any", "duration", "timestamp")


def parse_type(text: str) -> Type:
    """Parse a type in the notation of signatures: `map(string, list(A))`.

    Single capital letters are type parameters; `authz.` abbreviates a package.
    """
    name, _, rest = text.strip().replace("authz.", "kubernetes.authorization.").partition("(")
    params = tuple(parse_type(part) for part in split_parameters(rest[:-1])) if rest else ()
    if name == "list":
        return list_of(params[0])
    if name == "map":
        return map_of(*params)
    if name == "type" and params:
        return type_of(params[0])
    if name == "optional_type":
        return optional_of(params[0])
    if name in SIMPLE:
        return SIMPLE[name]
    return NAMED.get(name) or parameter(name)


def split_parameters(text: str) -> list[str]:
    """Split a list of types at its outer commas."""
    parts, depth, start = [], 0, 0
    for i, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [*parts, text[start:]] if text else []
