"""Lists. A function of sprig and its `must` variant report the same error, so they are one function here."""

from __future__ import annotations

import math
from typing import Any, Final

from ostinato.gotemplate.errors import LimitError
from ostinato.gotemplate.library.defaults import is_empty
from ostinato.gotemplate.library.kinds import Lists, NilList, deep_equal, elements, is_slice, kind_of, same_type
from ostinato.gotemplate.library.numbers import to_int
from ostinato.gotemplate.library.registry import PanicError, Registry
from ostinato.gotemplate.values import Int64

LISTS: Final = Registry()
_SCALARS: Final = frozenset([str, int, float, bool, Int64])
_MOST_COMPARED: Final = 1_000
_register = LISTS

_NIL: Final = "runtime error: invalid memory address or nil pointer dereference"


def items(value: Any, problem: str) -> list[Any]:
    """Return the items of a list; an error of Go if the value is none. `problem` is before the name of the kind."""
    if is_slice(value):
        return elements(value)
    if value is None:
        raise PanicError(_NIL)
    raise PanicError(problem.format(kind_of(value)))


@_register("list tuple", "...interface {}")
def list_(*values: Any) -> list[Any]:
    return list(values)


@_register("append push mustAppend mustPush", "interface {}, interface {}")
def append(value: Any, added: Any) -> list[Any]:
    return [*items(value, "Cannot push on type {}"), added]


@_register("prepend mustPrepend", "interface {}, interface {}")
def prepend(value: Any, added: Any) -> list[Any]:
    return [added, *items(value, "Cannot prepend on type {}")]


@_register("first mustFirst", "interface {}")
def first(value: Any) -> Any:
    return next(iter(items(value, "Cannot find first on type {}")), None)


@_register("last mustLast", "interface {}")
def last(value: Any) -> Any:
    found = items(value, "Cannot find last on type {}")
    return found[-1] if found else None


@_register("rest mustRest", "interface {}")
def rest(value: Any) -> list[Any]:
    found = items(value, "Cannot find rest on type {}")
    return found[1:] if found else NilList()


@_register("initial mustInitial", "interface {}")
def initial(value: Any) -> list[Any]:
    found = items(value, "Cannot find initial on type {}")
    return found[:-1] if found else NilList()


@_register("reverse mustReverse", "interface {}")
def reverse(value: Any) -> list[Any]:
    return items(value, "Cannot find reverse on type {}")[::-1]


@_register("compact mustCompact", "interface {}")
def compact(value: Any) -> list[Any]:
    return [each for each in items(value, "Cannot compact on type {}") if not is_empty(each)]


@_register("uniq mustUniq", "interface {}")
def uniq(value: Any) -> list[Any]:
    made: list[Any] = []
    scalars: set[tuple[type, Any]] = set()
    others: list[Any] = []
    for each in items(value, "Cannot find uniq on type {}"):
        if type(each) in _SCALARS:
            key = (type(each), each)
            if key in scalars and each == each:  # noqa: PLR0124 - a NaN equals nothing
                continue
            scalars.add(key)
        elif _is_in(each, others):
            continue
        elif len(others) > _MOST_COMPARED:
            raise LimitError(f"a list with more than {_MOST_COMPARED} maps and lists is too long to compare them all")
        else:
            others.append(each)
        made.append(each)
    return made


@_register("without mustWithout", "interface {}, ...interface {}")
def without(value: Any, *omitted: Any) -> list[Any]:
    return [each for each in items(value, "Cannot find without on type {}") if not _is_in(each, omitted)]


def _is_in(value: Any, values: Any) -> bool:
    return any(deep_equal(value, each) for each in values)


@_register("has mustHas", "interface {}, interface {}")
def has(needle: Any, value: Any) -> bool:
    return value is not None and _is_in(needle, items(value, "Cannot find has on type {}"))


@_register("slice mustSlice", "interface {}, ...interface {}")
def slice_(value: Any, *bounds: Any) -> Any:
    found = items(value, "list should be type of slice or array but {}")
    if not found:
        return None
    start = to_int(bounds[0]) if bounds else 0
    end = to_int(bounds[1]) if len(bounds) > 1 else len(found)
    if not 0 <= start <= end <= len(found):
        raise PanicError("reflect.Value.Slice: slice index out of bounds")
    return same_type(value, found[start:end])


@_register("concat", "...interface {}")
def concat(*values: Any) -> list[Any]:
    made = [each for value in values for each in items(value, "Cannot concat type {} as list")]
    return made or NilList()


@_register("chunk mustChunk", "int, interface {}")
def chunk(size: int, value: Any) -> Lists:
    found = items(value, "Cannot chunk type {}")
    count = math.floor((len(found) - 1) / size) + 1 if size else -1
    if count < 0 or (size < 0 < count and len(found) % size == 0):
        raise PanicError("runtime error: makeslice: len out of range")
    return Lists([found[at * size : (at + 1) * size if size > 0 else None] for at in range(count)])
