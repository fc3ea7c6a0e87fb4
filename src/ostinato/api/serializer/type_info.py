"""Shapes: what a struct class, or a dataclass, says of the JSON it reads and writes, worked out once a class.

Decoding leniently, overlaying, leaving out what is empty and making schemas all follow the same tree: structs have
fields, lists have items, maps have values, and everything else is a leaf. A class may contain itself, so the fields of
a struct are worked out when they are first asked for.
"""

from __future__ import annotations

import types
from collections.abc import Iterable
from functools import cache, cached_property
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

from ostinato.api.markers import Marker, combined_schema
from ostinato.api.serializer.generics import class_of, hints_of
from ostinato.api.struct import Struct

Form = Literal["struct", "list", "map", "leaf", "any", "union"]


class TypeInfo:
    """One type, as annotated."""

    __slots__ = ("form", "inner", "markers", "nullable", "type", "variants")

    def __init__(self, annotation: Any) -> None:
        self.markers: tuple[Marker, ...] = ()  # of this place, not of the items or values
        self.nullable = False
        self.form: Form = "leaf"
        self.type: Any = object  # the class of a struct or leaf
        self.inner: TypeInfo | None = None  # of the items of a list, of the values of a map
        self.variants: tuple[TypeInfo, ...] = ()  # of a union, such as `int | str`
        self._read(annotation)

    def _read(self, annotation: Any) -> None:
        source = get_origin(annotation)
        if source is Annotated:
            inner, *metadata = get_args(annotation)
            self.markers += tuple(item for item in metadata if isinstance(item, Marker))
            self._read(inner)
        elif source in (Union, types.UnionType):
            self._read_union(get_args(annotation))
        elif annotation is list or source is list:
            self.form, self.type, self.inner = "list", list, TypeInfo(*(get_args(annotation) or (Any,)))
        elif annotation is dict or source is dict:
            self.form, self.type, self.inner = "map", dict, TypeInfo((get_args(annotation) or (Any, Any))[1])
        elif isinstance(source, type) and _has_fields(source):  # a generic one with its types
            self.form, self.type = "struct", annotation
        elif annotation is Any or source is not None or not isinstance(annotation, type):
            self.form = "any"  # Literal, TypeVar and the like: msgspec knows them
        else:
            self.form, self.type = "struct" if _has_fields(annotation) else "leaf", annotation

    def _read_union(self, alternatives: tuple[Any, ...]) -> None:
        others = [each for each in alternatives if each is not types.NoneType and each is not msgspec.UnsetType]
        self.nullable = types.NoneType in alternatives
        if len(others) == 1:
            self._read(others[0])
        else:
            self.form, self.variants = "union", tuple(map(TypeInfo, others))

    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields of a struct."""
        return fields_of(self.type)

    @property
    def tag(self) -> tuple[str, Any] | None:
        """Of a struct: the name on the wire of what tells it from others in a union, and what that says."""
        config: Any = getattr(class_of(self.type), "__struct_config__", None)
        return None if config is None or config.tag is None else (config.tag_field, config.tag)

    def struct_for(self, value: dict[str, Any]) -> TypeInfo | None:
        """Of a union: the struct that the value is of, by its tag where there are several."""
        structs = [variant for variant in self.variants if variant.form == "struct"]
        tagged = [each for each in structs if each.tag is not None and value.get(each.tag[0]) == each.tag[1]]
        return next(iter(tagged or structs), None)

    @property
    def schema(self) -> dict[str, Any]:
        """How the value at this place merges and which values are known, in OpenAPI's words."""
        return combined_schema(self.markers)


class Field:
    """One field of a struct class."""

    def __init__(self, info: msgspec.structs.FieldInfo, annotation: Any) -> None:
        self.attribute = info.name
        self.wire = info.encode_name
        self.required = info.required
        self._default = info.default
        self._factory = info.default_factory
        self._annotation = annotation

    @cached_property
    def type_info(self) -> TypeInfo:
        return TypeInfo(self._annotation)

    @cached_property
    def default(self) -> Any:
        """What the attribute holds if nobody set it, None where it is required. Never to be changed."""
        if self._factory is not msgspec.NODEFAULT:
            return self._factory()
        return None if self._default is msgspec.NODEFAULT else self._default

    @cached_property
    def empty_struct(self) -> msgspec.Struct | None:
        """The default where that is a struct with nothing in it: not worth writing. Never to be changed."""
        return self.default if isinstance(self.default, msgspec.Struct) else None


def _has_fields(cls: type) -> bool:
    """Whether a class is a struct, or a dataclass, which msgspec reads as well."""
    return issubclass(cls, msgspec.Struct) or hasattr(cls, "__dataclass_fields__")


@cache
def fields_of(cls: Any) -> tuple[Field, ...]:  # Any: a struct or a dataclass, or a generic one with its types
    hints = hints_of(cls)
    return tuple(Field(info, hints[info.name]) for info in _infos(class_of(cls)))


def _infos(cls: type[Any]) -> Iterable[msgspec.structs.FieldInfo]:
    if issubclass(cls, msgspec.Struct):
        return msgspec.structs.fields(cls)
    import dataclasses  # noqa: PLC0415 - only for who uses them

    def given(value: Any) -> Any:
        return msgspec.NODEFAULT if value is dataclasses.MISSING else value

    return [
        msgspec.structs.FieldInfo(each.name, each.name, each.type, given(each.default), given(each.default_factory))
        for each in dataclasses.fields(cls)
    ]


@cache
def fields_by_wire(cls: Any) -> dict[str, Field]:
    """The fields by their names on the wire. Never to be changed."""
    return {field.wire: field for field in fields_of(cls)}


def merge_rules_of(cls: type[Struct]) -> dict[str, dict[str, Any]]:
    """By wire name, how each field merges and which values it is known to take, in OpenAPI's words.

    Where the items of a list or the values of a map have rules, these stand under `items` or `additionalProperties`.
    """
    rules = {field.wire: _rules(field.type_info) for field in fields_of(cls)}
    return {name: rule for name, rule in rules.items() if rule}


def _rules(info: TypeInfo) -> dict[str, Any]:
    rules = info.schema
    if info.inner is not None and (inner := _rules(info.inner)):
        rules["items" if info.form == "list" else "additionalProperties"] = inner
    return rules
