"""Unions that a structural schema can say.

- `int | str`: a number or a text, as ports and percentages are.
- Literals and enumerations: one enumeration of all values.
- Structs with tags (`class Http(Struct, tag="http")`): the fields of all, of which the tag says which must be there. A
  field that several have must be the same in all; their defaults stay with the classes, since the server would set them
  whatever the tag.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

import msgspec

from ostinato.crd.place import Place
from ostinato.crd.reading import name_of, read
from ostinato.crd.scalars import choices, int_or_string

if TYPE_CHECKING:
    from ostinato.crd.schema import SchemaBuilder

Json = dict[str, Any]


def union_schema(builder: SchemaBuilder, members: Sequence[Any], at: Place) -> Json:
    cores = [read(member, at).core for member in members]
    if set(cores) == {int, str}:
        return int_or_string()
    if set(cores) == {int, float}:
        return {"type": "number"}
    if all(map(_is_enumeration, cores)):
        return choices(list(dict.fromkeys(value for core in cores for value in _values(core))), at)
    if all(isinstance(core, type) and issubclass(core, msgspec.Struct) for core in cores):
        return _tagged(builder, cores, at)
    raise at.error(
        f"{' | '.join(map(name_of, cores))} is more than a schema can say: use int | str, one enumeration, structs "
        "with tags, or a struct with one field for each and ExactlyOneOf"
    )


def _is_enumeration(core: Any) -> bool:
    return get_origin(core) is Literal or (isinstance(core, type) and issubclass(core, enum.Enum))


def _values(core: Any) -> list[Any]:
    return list(get_args(core)) if get_origin(core) is Literal else [member.value for member in core]


def _tagged(builder: SchemaBuilder, classes: list[type[msgspec.Struct]], at: Place) -> Json:
    untagged = [cls.__name__ for cls in classes if cls.__struct_config__.tag is None]
    if untagged:
        raise at.error(f"{untagged[0]} has no tag: write class {untagged[0]}(Struct, tag=...), so that it can be told")
    tag_field: str = str(classes[0].__struct_config__.tag_field)
    properties: Json = {}
    owners: dict[str, str] = {}
    variants: list[Json] = []
    for cls in classes:
        schema = builder.struct(cls, at)
        if "x-kubernetes-validations" in schema:
            raise at.error(f"{cls.__name__} has rules, which would hold for all of the union: put them on its fields")
        for name, below in schema["properties"].items():
            below.pop("default", None)
            if name == tag_field:
                continue
            if properties.setdefault(name, below) != below:
                raise at.error(f"{name} is not the same in {owners[name]} and {cls.__name__}: rename one")
            owners.setdefault(name, cls.__name__)
        tag = {"enum": schema["properties"][tag_field]["enum"]}
        variants.append({"properties": {tag_field: tag}, "required": sorted({*schema.get("required", ()), tag_field})})
    tags = [variant["properties"][tag_field]["enum"][0] for variant in variants]
    return {
        "type": "object",
        "properties": {tag_field: choices(tags, at), **properties},
        "required": [tag_field],
        "oneOf": variants,
    }
