"""Unions in structural schemas.

- `int | str`: int-or-string, as ports and percentages.
- Literals and enums: one enum of all values.
- Tagged structs (`class Http(Struct, tag="http")`), and pydantic models with a discriminator such as
  `kind: Literal["http"]`: the fields of all, with `required` by tag. A field in several must have the same schema;
  defaults are not part of the schema, as the server would set them for every tag.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

import msgspec

from ostinato.crd.schema.annotations import name_of, read
from ostinato.crd.schema.models import is_pydantic
from ostinato.crd.schema.place import Place
from ostinato.crd.schema.types.scalars import choices, int_or_string

if TYPE_CHECKING:
    from ostinato.crd.schema.schema import SchemaBuilder

Json = dict[str, Any]


def union_schema(builder: SchemaBuilder, members: Sequence[Any], at: Place) -> Json:
    cores = [read(member, at).core for member in members]
    if set(cores) == {int, str}:
        return int_or_string()
    if set(cores) == {int, float}:
        return {"type": "number"}
    if all(map(is_enumeration, cores)):
        return choices(list(dict.fromkeys(value for core in cores for value in values_of(core))), at)
    classes = [core for core in cores if isinstance(core, type)]
    if len(classes) == len(cores) and all(issubclass(cls, msgspec.Struct) or is_pydantic(cls) for cls in classes):
        return _tagged(builder, classes, at)
    raise at.error(
        f"{' | '.join(map(name_of, cores))} cannot be expressed as a schema: use int | str, one enum, structs "
        "with tags, or a struct with one field for each and ExactlyOneOf"
    )


def is_enumeration(core: Any) -> bool:
    """Whether a type is a Literal or an Enum."""
    return get_origin(core) is Literal or (isinstance(core, type) and issubclass(core, enum.Enum))


def values_of(core: Any) -> list[Any]:
    """Return the values of a Literal or an Enum."""
    return list(get_args(core)) if get_origin(core) is Literal else [member.value for member in core]


def _tagged(builder: SchemaBuilder, classes: list[type], at: Place) -> Json:
    for cls in classes:
        if issubclass(cls, msgspec.Struct) and cls.__struct_config__.tag is None:
            name = cls.__name__
            raise at.error(f"{name} has no tag: write class {name}(Struct, tag=...), to distinguish it")
    schemas = [builder.struct(cls, at) for cls in classes]
    tag_field = _tag_field(classes, schemas, at)
    properties: Json = {}
    owners: dict[str, str] = {}
    variants: list[Json] = []
    for cls, schema in zip(classes, schemas, strict=True):
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


def _tag_field(classes: list[type], schemas: list[Json], at: Place) -> str:
    """Return the wire name of the discriminator."""
    first = classes[0]
    if issubclass(first, msgspec.Struct):
        return str(first.__struct_config__.tag_field)
    for name in schemas[0].get("properties", ()):
        tags = [schema.get("properties", {}).get(name, {}).get("enum", ()) for schema in schemas]
        if all(len(each) == 1 for each in tags) and len({each[0] for each in tags}) == len(tags):
            return str(name)
    raise at.error(f"{first.__name__} cannot be distinguished from the others: add a field kind: Literal[...] to all")
