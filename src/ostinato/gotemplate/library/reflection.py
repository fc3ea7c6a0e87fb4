"""Types and kinds of values."""

from __future__ import annotations

from typing import Any, Final

from ostinato.gotemplate.library import kinds
from ostinato.gotemplate.library.kinds import kind_of
from ostinato.gotemplate.library.registry import Registry
from ostinato.gotemplate.limits import check_parts
from ostinato.gotemplate.values import go_type

REFLECTION: Final = Registry()
_register = REFLECTION


@_register("typeOf", "interface {}")
def type_of_(value: Any) -> str:
    return go_type(value)


@_register("typeIs", "string, interface {}")
def type_is(name: str, value: Any) -> bool:
    return name == go_type(value)


@_register("typeIsLike", "string, interface {}")
def type_is_like(name: str, value: Any) -> bool:
    return go_type(value) in (name, f"*{name}")


@_register("kindOf", "interface {}")
def kind_of_(value: Any) -> str:
    return kind_of(value)


@_register("kindIs", "string, interface {}")
def kind_is(name: str, value: Any) -> bool:
    return name == kind_of(value)


@_register("deepEqual", "interface {}, interface {}")
def deep_equal(a: Any, b: Any) -> bool:
    check_parts(a)
    check_parts(b)
    return kinds.deep_equal(a, b)
