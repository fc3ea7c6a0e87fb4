"""Type information of struct classes and dataclasses: a tree of structs, lists, maps, unions and leaves.

Lenient decoding, overlays, omission of empty structs and schema generation use it. Fields of structs are computed on
first use, as types can be recursive, and cached per class.
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
    """A type, from its annotation."""

    __slots__ = ("form", "inner", "markers", "nullable", "type", "variants")

    def __init__(self, annotation: Any) -> None:
        self.markers: tuple[Marker, ...] = ()  # of the type itself, not of its items or values
        self.nullable = False
        self.form: Form = "leaf"
        self.type: Any = object  # class of a struct or leaf
        self.inner: TypeInfo | None = None  # items of a list, or values of a map
        self.variants: tuple[TypeInfo, ...] = ()  # alternatives of a union, such as `int | str`
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
        elif isinstance(source, type) and _has_fields(source):  # generic, with type arguments
            self.form, self.type = "struct", annotation
        elif annotation is Any or source is not None or not isinstance(annotation, type):
            self.form = "any"  # Literal, TypeVar and others are left to msgspec
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
        """JSON name and value of the tag of a struct in a union."""
        config: Any = getattr(class_of(self.type), "__struct_config__", None)
        return None if config is None or config.tag is None else (config.tag_field, config.tag)

    def struct_for(self, value: dict[str, Any]) -> TypeInfo | None:
        """Return the struct of a union for a value, by tag if there are several."""
        structs = [variant for variant in self.variants if variant.form == "struct"]
        tagged = [each for each in structs if each.tag is not None and value.get(each.tag[0]) == each.tag[1]]
        return next(iter(tagged or structs), None)

    @property
    def schema(self) -> dict[str, Any]:
        """OpenAPI keywords of the markers: merge strategy and known values."""
        return combined_schema(self.markers)


class Field:
    """A field of a struct class."""

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
        """The default; None for required fields. Must not be modified."""
        if self._factory is not msgspec.NODEFAULT:
            return self._factory()
        return None if self._default is msgspec.NODEFAULT else self._default

    @cached_property
    def empty_struct(self) -> msgspec.Struct | None:
        """The default if it is an empty struct, which is not encoded. Must not be modified."""
        return self.default if isinstance(self.default, msgspec.Struct) else None


def _has_fields(cls: type) -> bool:
    """Whether a class is a struct or a dataclass, which msgspec decodes too."""
    return issubclass(cls, msgspec.Struct) or hasattr(cls, "__dataclass_fields__")


@cache
def fields_of(cls: Any) -> tuple[Field, ...]:  # Any: a struct or dataclass, possibly with type arguments
    hints = hints_of(cls)
    return tuple(Field(info, hints[info.name]) for info in _infos(class_of(cls)))


def _infos(cls: type[Any]) -> Iterable[msgspec.structs.FieldInfo]:
    if issubclass(cls, msgspec.Struct):
        return msgspec.structs.fields(cls)
    import dataclasses  # noqa: PLC0415 - only if dataclasses are used

    def given(value: Any) -> Any:
        return msgspec.NODEFAULT if value is dataclasses.MISSING else value

    return [
        msgspec.structs.FieldInfo(each.name, each.name, each.type, given(each.default), given(each.default_factory))
        for each in dataclasses.fields(cls)
    ]


@cache
def fields_by_wire(cls: Any) -> dict[str, Field]:
    """Return the fields by JSON name. Must not be modified."""
    return {field.wire: field for field in fields_of(cls)}


def merge_rules_of(cls: type[Struct]) -> dict[str, dict[str, Any]]:
    """Return the OpenAPI keywords of the markers of each field, by JSON name.

    Those of the items of a list or the values of a map are in `items` or `additionalProperties`.
    """
    rules = {field.wire: _rules(field.type_info) for field in fields_of(cls)}
    return {name: rule for name, rule in rules.items() if rule}


def _rules(info: TypeInfo) -> dict[str, Any]:
    rules = info.schema
    if info.inner is not None and (inner := _rules(info.inner)):
        rules["items" if info.form == "list" else "additionalProperties"] = inner
    return rules
