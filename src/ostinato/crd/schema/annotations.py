"""Annotations: the type, its markers, and whether None is allowed.

Constraints of msgspec (`Meta`), annotated-types and pydantic are translated into markers.
"""

from __future__ import annotations

import types
import typing
from typing import Annotated, Any, Literal, NewType, Union, get_args, get_origin

import msgspec

from ostinato.api.markers import Doc, Example, Ge, Gt, Le, Len, Lt, Marker, MultipleOf, Pattern, RawSchema, Title
from ostinato.crd.schema.place import Place

_BOUNDS: dict[str, type[Marker]] = {"ge": Ge, "gt": Gt, "le": Le, "lt": Lt, "multiple_of": MultipleOf}
_TEXTS: dict[str, type[Marker]] = {"pattern": Pattern, "title": Title, "description": Doc, "documentation": Doc}
_OTHERS = ("annotated_types", "msgspec", "pydantic", "typing_extensions", "annotated_doc")


class Reading(msgspec.Struct, frozen=True):
    """A parsed annotation."""

    core: Any  # the bare type
    markers: tuple[Marker, ...] = ()  # of the type, then of the field
    none: bool = False  # whether None is allowed


def read(annotation: Any, at: Place) -> Reading:
    core = annotation
    markers: list[Marker] = []
    none = False
    while True:
        source = get_origin(core)
        if source is Annotated:
            core, *metadata = get_args(core)
            markers = [marker for item in metadata for marker in _markers(item, at)] + markers
        elif source is Union or source is types.UnionType:
            others = [each for each in get_args(core) if each is not types.NoneType and each is not msgspec.UnsetType]
            none = none or types.NoneType in get_args(core)
            if len(others) != 1:
                return Reading(Union[tuple(others)] if others else types.NoneType, tuple(markers), none)  # noqa: UP007
            core = others[0]
        elif source is Literal and None in get_args(core):
            none, core = True, Literal[tuple(value for value in get_args(core) if value is not None)]
        elif isinstance(core, NewType):
            core = core.__supertype__
        elif type(core).__name__ == "TypeAliasType":  # `type Port = int`, from Python 3.12 on
            core = core.__value__
        else:
            return Reading(core, tuple(markers), none)


def alternatives(core: Any) -> tuple[Any, ...]:
    """Return the members of a union; () for any other type."""
    return get_args(core) if get_origin(core) in (Union, types.UnionType) else ()


def name_of(core: Any) -> str:
    """Return a type as source code."""
    if isinstance(core, type) and not get_args(core):
        return core.__name__
    return str(core).replace("typing.", "")


def _markers(item: Any, at: Place) -> list[Marker]:
    if isinstance(item, Marker):
        return [item]
    if isinstance(item, type) and issubclass(item, Marker):
        raise at.error(f"{item.__name__} is a class of markers: write {item.__name__}(...)")
    if type(item).__module__.partition(".")[0] not in _OTHERS:
        return []  # metadata of another library
    nested = getattr(item, "metadata", None)  # of pydantic's Field(...)
    try:
        return [*_foreign(item), *(marker for each in nested or () for marker in _foreign(each))]
    except (TypeError, ValueError) as error:
        raise at.error(f"{item!r} cannot be part of a schema: {error}") from None


def _foreign(item: Any) -> typing.Iterator[Marker]:
    for attribute, bound in _BOUNDS.items():
        if (number := getattr(item, attribute, None)) is not None:
            yield bound(number)
    least, most = getattr(item, "min_length", None), getattr(item, "max_length", None)
    if least or most is not None:
        yield Len(least or 0, most)
    for attribute, said in _TEXTS.items():
        if isinstance(text := getattr(item, attribute, None), str) and text:
            yield said(text)
    for example in (getattr(item, "examples", None) or ())[:1]:
        yield Example(example)
    if extra := getattr(item, "extra_json_schema", None):
        yield RawSchema(extra)
