"""The functions that every template has."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final
from urllib.parse import quote_plus

from ostinato.gotemplate.errors import TemplateError
from ostinato.gotemplate.fmt import sprint, sprintf, sprintln
from ostinato.gotemplate.functions import ANY, RAW, Function
from ostinato.gotemplate.strings import decode, encode, normalized, printable
from ostinato.gotemplate.values import NO_VALUE, Object, Uint8, Value, element_type, go_type, kind, zero

BOXED: Final = Object(go_type="interface {}")  # an index of `slice` that Go refuses whatever it is
_BASIC: Final = frozenset(["bool", "int", "uint", "float", "string"])
_HTML: Final = str.maketrans({"\0": "\ufffd", '"': "&#34;", "'": "&#39;", "&": "&amp;", "<": "&lt;", ">": "&gt;"})
_JS: Final = {
    "\\": "\\\\",
    "'": "\\'",
    '"': '\\"',
    "<": "\\u003C",
    ">": "\\u003E",
    "&": "\\u0026",
    "=": "\\u003D",
}
_JS_SPECIAL: Final = re.compile(r"""[\\'"<>&=\x00-\x1f]|[^\x00-\x7f]""")


def _position(index: Value, limit: int) -> int:
    sort = kind(index)
    if sort == "nil":
        raise TemplateError("cannot index slice/array with nil")
    if sort not in ("int", "uint"):
        raise TemplateError(f"cannot index slice/array with type {go_type(index)}")
    if index < 0 or index > limit:
        raise TemplateError(f"index out of range: {int(index)}")
    return int(index)


def index(item: Value, *indexes: Value) -> Value:
    """The element of maps, lists and strings inside each other."""
    if item is None or item is NO_VALUE:
        raise TemplateError("index of untyped nil")
    for key in indexes:
        item = _element(item, key)
    return item


def _element(item: Value, key: Value) -> Value:
    if item is None:
        raise TemplateError("index of nil pointer")
    if isinstance(item, dict):
        if isinstance(key, str):
            return item[key] if key in item else zero(element_type(item))
        if key is None or key is NO_VALUE:
            raise TemplateError("value is nil; should be of type string")
        raise TemplateError(f"value has type {go_type(key)}; should be string")
    sequence = encode(item) if isinstance(item, str) else item
    if not isinstance(sequence, list | bytes):
        raise TemplateError(f"can't index item of type {go_type(item)}")
    at = _position(key, len(sequence))
    if at == len(sequence):
        of = "string" if isinstance(item, str) else "slice"
        raise TemplateError(f"reflect: {of} index out of range")
    return Uint8(sequence[at]) if isinstance(sequence, bytes) else sequence[at]


def slice_(item: Value, *indexes: Value) -> Value:
    """A part of a string or list."""
    if item is None or item is NO_VALUE:
        raise TemplateError("slice of untyped nil")
    if len(indexes) > 3:
        raise TemplateError(f"too many slice indexes: {len(indexes)}")
    is_string = isinstance(item, str)
    if is_string and len(indexes) == 3:
        raise TemplateError("cannot 3-index slice a string")
    sequence = encode(item) if is_string else item
    if not isinstance(sequence, list | bytes):
        raise TemplateError(f"can't slice item of type {go_type(item)}")
    bounds = [0, len(sequence)]
    for number, value in enumerate(indexes):
        at = _position(value, len(sequence))
        bounds[number : number + 1] = [at]
    if bounds[0] > bounds[1]:
        raise TemplateError(f"invalid slice index: {bounds[0]} > {bounds[1]}")
    if len(bounds) > 2 and bounds[1] > bounds[2]:
        raise TemplateError(f"invalid slice index: {bounds[1]} > {bounds[2]}")
    part = sequence[bounds[0] : bounds[1]]
    if is_string:
        return decode(bytes(part))
    return part if isinstance(part, bytes) else type(sequence)(part)


def length(item: Value) -> int:
    """The number of bytes of a string, or of elements."""
    if isinstance(item, str):
        return len(item) if item.isascii() else len(encode(item))
    if isinstance(item, dict | list | bytes):
        return len(item)
    if item is None:
        raise TemplateError("len of nil pointer")
    if item is NO_VALUE:
        raise TemplateError("reflect: call of reflect.Value.Type on zero Value")
    raise TemplateError(f"len of type {go_type(item)}")


def not_(value: Value) -> bool:
    return not value


def equal(first: Value, *others: Value) -> bool:
    """Whether the first value equals one of the others."""
    if not others:
        raise TemplateError("missing argument for comparison")
    return any(_equal(first, other) for other in others)


def _equal(first: Value, other: Value) -> bool:
    if type(first) is type(other) and type(first) in (str, int, float, bool):
        return bool(first == other)
    sort, other_sort = kind(first), kind(other)
    basic, other_basic = sort in _BASIC, other_sort in _BASIC
    if basic and sort == other_sort:
        return bool(first == other)
    if {sort, other_sort} == {"int", "uint"}:
        return bool(first == other)
    if basic or other_basic:
        if "nil" in (sort, other_sort):
            return False
        raise TemplateError(f"incompatible types for comparison: {go_type(first)} and {go_type(other)}")
    if "nil" in (sort, other_sort):
        return sort == other_sort
    if sort != other_sort:
        raise TemplateError(
            f"non-comparable types {sprintf('%s', first)}: {go_type(first)}, {go_type(other)}: {sprint(other)}"
        )
    if sort in ("map", "slice", "func"):
        raise TemplateError(f"non-comparable type {sprintf('%s', other)}: {go_type(other)}")
    return first is other


def not_equal(first: Value, other: Value) -> bool:
    return not equal(first, other)


def less(first: Value, other: Value) -> bool:
    """Whether the first of two numbers or strings is less."""
    sort, other_sort = kind(first), kind(other)
    if sort not in _BASIC or other_sort not in _BASIC:
        raise TemplateError("invalid type for comparison")
    if sort != other_sort and {sort, other_sort} != {"int", "uint"}:
        raise TemplateError(f"incompatible types for comparison: {go_type(first)} and {go_type(other)}")
    if sort == "bool":
        raise TemplateError("invalid type for comparison")
    return bool(first < other)


def less_or_equal(first: Value, other: Value) -> bool:
    return less(first, other) or equal(first, other)


def greater(first: Value, other: Value) -> bool:
    return not less_or_equal(first, other)


def greater_or_equal(first: Value, other: Value) -> bool:
    return not less(first, other)


def _shown(values: tuple[Value, ...]) -> str:
    if len(values) == 1 and isinstance(values[0], str):
        return values[0]
    return sprint(*("<no value>" if value is None else value for value in values))


def html(*values: Value) -> str:
    """The values escaped for HTML."""
    return _shown(values).translate(_HTML)


def js(*values: Value) -> str:
    """The values escaped for JavaScript strings."""
    return _JS_SPECIAL.sub(_escaped_for_js, normalized(_shown(values)))


def _escaped_for_js(match: re.Match[str]) -> str:
    character = match.group()
    known = _JS.get(character)
    if known is not None:
        return known
    code = ord(character)
    if code >= 0x80 and (printable(character) or 0xD800 <= code < 0xE000):
        return character
    return f"\\u{code:04X}"


def urlquery(*values: Value) -> str:
    """The values escaped for the query of a URL."""
    return quote_plus(encode(_shown(values)), safe="")


def _unreachable(*_: Value) -> Value:
    raise TemplateError("not a plain function")


def call(name: str, called: Value, *arguments: Value) -> Value:
    """Call a value that is a function; functions are values only if the program made them so."""
    if called is None or called is NO_VALUE:
        raise TemplateError("call of nil")
    if not isinstance(called, Function):
        if not name:
            name = called if isinstance(called, str) else f"<{go_type(called)} Value>"
        raise TemplateError(f"non-function {name} of type {go_type(called)}")
    wanted = len(called.parameters)
    if len(arguments) != wanted and (called.variadic is None or len(arguments) < wanted):
        least = "" if called.variadic is None else "at least "
        raise TemplateError(f"wrong number of args for {name}: got {len(arguments)} want {least}{wanted}")
    return called(*(None if argument is NO_VALUE else argument for argument in arguments))


def _comparison(call: Callable[[Value, Value], bool]) -> Function:
    return Function(call, (RAW, RAW))


BUILTINS: Final[dict[str, Function]] = {
    "and": Function(_unreachable, (RAW,), RAW),  # and, or: they do not evaluate all arguments; see compile
    "or": Function(_unreachable, (RAW,), RAW),
    "call": Function(call, (RAW,), RAW),
    "html": Function(html, (), ANY),
    "index": Function(index, (RAW,), RAW),
    "slice": Function(slice_, (RAW,), RAW),
    "js": Function(js, (), ANY),
    "len": Function(length, (RAW,)),
    "not": Function(not_, (RAW,)),
    "print": Function(sprint, (), ANY),
    "printf": Function(sprintf, ("string",), ANY),
    "println": Function(sprintln, (), ANY),
    "urlquery": Function(urlquery, (), ANY),
    "eq": Function(equal, (RAW,), RAW),
    "ge": _comparison(greater_or_equal),
    "gt": _comparison(greater),
    "le": _comparison(less_or_equal),
    "lt": _comparison(less),
    "ne": _comparison(not_equal),
}
