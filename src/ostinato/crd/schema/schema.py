"""Structural schemas from classes, their annotations and markers.

- A field without a default is required. Non-empty defaults are part of the schema (`defaults`).
- `X | None = None` is an optional field; null and absent are the same. With another default, and in items and values,
  None is a value of its own, and the schema is `nullable`.
- Markers of the type apply first, then those of the field, which override them; rules accumulate.
- A list of `Condition` is a map list by `type` unless a marker says otherwise.
- Docstrings become descriptions (`docstrings`).
- What a structural schema cannot express raises `SchemaError` with class and field.
"""

from __future__ import annotations

import re
import types
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeVar, get_args, get_origin

import msgspec

from ostinato.api.markers import (
    ClientDefault,
    Column,
    Doc,
    Format,
    Immutable,
    Inexact,
    MapAtomic,
    Marker,
    Nullable,
    PatchMerge,
    PatchReplace,
    PatchRetainKeys,
    Rule,
    Schemaless,
    SchemaType,
    Selectable,
    ServerDefault,
    add_to,
    markers_on,
)
from ostinato.api.markers.constraints import MembersMarker
from ostinato.api.object import Object
from ostinato.api.serializer.generics import class_of
from ostinato.crd.schema.annotations import Reading, alternatives, name_of, read
from ostinato.crd.schema.cel_names import name_in_rules
from ostinato.crd.schema.defaults import check_server_default, mismatch, server_default
from ostinato.crd.schema.docstrings import class_doc
from ostinato.crd.schema.marker_checks import check_keywords, check_marker, check_members
from ostinato.crd.schema.models import (
    MISSING,
    ModelField,
    fields_of_model,
    is_model,
    is_pydantic,
    keeps_unknown,
    root_of,
)
from ostinato.crd.schema.place import Place
from ostinato.crd.schema.types.builtin import builtin_schema, is_condition
from ostinato.crd.schema.types.lists import check_list
from ostinato.crd.schema.types.maps import map_keys
from ostinato.crd.schema.types.scalars import choices, scalar
from ostinato.crd.schema.types.unions import union_schema

Json = dict[str, Any]

ANYTHING: Final = {"x-kubernetes-preserve-unknown-fields": True}
_NOT_IN_DEFINITIONS: Final = (PatchMerge, PatchReplace, PatchRetainKeys)
_LISTS: Final = (list, tuple, set, frozenset, Sequence)
_MAPS: Final = (dict, Mapping)
_OLD: Final = re.compile(r"\boldSelf\b")
_DESCRIPTIONS: Final = {
    "any": "anything",
    "array": "a list",
    "boolean": "a boolean",
    "int-or-string": "an int-or-string",
    "integer": "an integer",
    "number": "a number",
    "object": "a map or struct",
    "string": "a string",
}


def schema_of(cls: type, *, descriptions: bool = True) -> Json:
    """Return the structural schema of a struct, a dataclass or a pydantic model."""
    return SchemaBuilder(descriptions=descriptions).struct(cls, Place(cls.__name__))


class SchemaBuilder:
    """Builds the schema of one class, and collects printer columns and selectable fields."""

    def __init__(self, *, descriptions: bool = True) -> None:
        self.columns: list[tuple[Place, Column]] = []
        self.selectable: list[tuple[Place, Selectable]] = []
        self._descriptions = descriptions
        self._stack: list[Any] = []  # the enclosing classes, outermost first

    def struct(self, model: Any, at: Place, *, skip: Sequence[str] = ()) -> Json:
        """Return the schema of a class, without the fields to skip (by wire name)."""
        cls: type = class_of(model)
        at = at.of_class(cls)
        if model in self._stack:
            way = " → ".join(class_of(each).__name__ for each in [*self._stack[self._stack.index(model) :], model])
            raise at.error(
                f"it contains itself ({way}), which a schema cannot express: "
                "use dict[str, Any] or Annotated[..., Schemaless()] where it does"
            )
        if issubclass(cls, msgspec.Struct) and cls.__struct_config__.array_like:
            raise at.error("it is encoded as a list; remove array_like=True, as schemas need fields by name")
        self._stack.append(model)
        fields = [field for field in fields_of_model(model, at) if field.wire not in skip]
        schema: Json = {"type": "object", **(ANYTHING if keeps_unknown(cls) else {})}
        self._describe(schema, class_doc(cls))
        properties, required, rules = {}, [], []
        for field in fields:
            place = at.of_field(field.attribute, field.wire)
            reading = read(field.annotation, place)
            below = properties[field.wire] = self.value(reading, place)
            self._apply_default(field, reading, below, place)
            if field.required and "default" not in below:
                required.append(field.wire)
            elif Immutable() in reading.markers:
                rules.append(_not_removed(field.wire, place))
        properties |= _tag(cls)
        if properties:
            schema["properties"] = properties
        if required:
            schema["required"] = sorted(required)
        self._mark(schema, (*_class_markers(cls, fields, schema, at), *rules), at)
        self._stack.pop()
        return schema

    def value(self, reading: Reading, at: Place) -> Json:
        """Return the schema of an annotation."""
        markers = reading.markers
        if Nullable() in markers and not reading.none and reading.core is not Any:
            raise at.error(f"{name_of(reading.core)} is not optional, which Nullable() requires: add | None")
        typed = [marker for marker in markers if isinstance(marker, SchemaType)]
        if Schemaless() in markers:
            schema: Json = {**ANYTHING}
        elif typed:
            schema = typed[-1].schema
        else:
            schema = self._plain(reading, at)
        self._mark(schema, markers, at)
        if schema.get("nullable"):
            _allow_null(schema)
        return schema

    def _plain(self, reading: Reading, at: Place) -> Json:
        """Return the schema of a type without its markers."""
        core = reading.core
        source = get_origin(core) or core
        if core is Any:
            return {**ANYTHING}
        if core is msgspec.Raw:
            raise at.error("msgspec.Raw cannot be updated: use Any")
        if core is types.NoneType:
            raise at.error("None is not a type for a field: use Any, or an optional type")
        if source is Literal:
            return choices(list(get_args(core)), at)
        if members := alternatives(core):
            return union_schema(self, members, at)
        if isinstance(core, TypeVar):
            raise at.error(f"{name_of(core)} is a type variable: set it where the class is used, {at.owner}[...]")
        if source in _LISTS:
            return self._list(core, source, reading, at)
        if source in _MAPS:
            return self._map(core, at)
        if core is float and not any(isinstance(marker, Inexact | Format) for marker in reading.markers):
            raise at.error(
                "floats are not portable between languages: use Quantity, or allow them with "
                "Annotated[float, Inexact()]"
            )
        if isinstance(core, type) and issubclass(core, Object):
            raise at.error(f"{core.__name__} is a whole object: use AnyResource, or the struct that is its spec")
        if isinstance(core, type) and is_pydantic(core) and issubclass(class_of(self._stack[-1]), msgspec.Struct):
            raise at.error(
                f"{core.__name__} is a pydantic model, which a Struct cannot decode: use a Struct or a dataclass, "
                "or pydantic models for the whole kind"
            )
        found = scalar(core, at) or (builtin_schema(core, at) if isinstance(core, type) else None)
        if found is not None:
            return found
        if (root := root_of(core)) is not None:
            return self.value(read(root, at), at)
        if is_model(core):
            return self.struct(core, at)
        raise at.error(
            f"{name_of(core)} has no schema: use a Struct, a type of JSON, or Annotated[..., SchemaType(...)]"
        )

    def _list(self, core: Any, source: Any, reading: Reading, at: Place) -> Json:
        arguments = get_args(core) or (Any,)
        schema: Json = {"type": "array"}
        if source is tuple and arguments[-1:] != (Ellipsis,) and get_args(core):
            if len(set(arguments)) != 1:
                raise at.error(f"{name_of(core)} has items of several types: use a Struct")
            schema |= {"minItems": len(arguments), "maxItems": len(arguments)}
        if source in (set, frozenset):
            schema["x-kubernetes-list-type"] = "set"
        merged = {**schema, **_keywords(reading.markers, "array")}
        item = read(arguments[0], at)
        if "x-kubernetes-list-type" not in merged and is_condition(item.core) and not item.none:
            schema |= (by_type := {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]})
            merged |= by_type
        by_key = merged.get("x-kubernetes-list-type") == "map"
        schema["items"] = self._inside(arguments[0], at.item(correlated=by_key))
        check_list({**merged, "items": schema["items"]}, arguments[0], at)
        return schema

    def _map(self, core: Any, at: Place) -> Json:
        key, value = get_args(core) or (str, Any)
        if names := map_keys(core, key, at):
            return {"type": "object", "properties": {name: self._inside(value, at.entry()) for name in names}}
        if value is Any:
            return {"type": "object", **ANYTHING}
        return {"type": "object", "additionalProperties": self._inside(value, at.entry())}

    def _inside(self, annotation: Any, at: Place) -> Json:
        """Return the schema of items or values, where None cannot be omitted."""
        reading = read(annotation, at)
        schema = self.value(reading, at)
        if reading.none:
            _allow_null(schema)
        return schema

    def _mark(self, schema: Json, markers: Sequence[Marker], at: Place) -> None:
        """Apply markers to a schema."""
        json_type = _type_of(schema)
        for marker in markers:
            if marker.types and json_type not in marker.types:
                raise at.error(f"{marker!r} is for {_spoken(marker.types)}, and this is {_DESCRIPTIONS[json_type]}")
            check_marker(marker, json_type, at)
            if isinstance(marker, _NOT_IN_DEFINITIONS) or (isinstance(marker, Doc) and not self._descriptions):
                continue
            add_to(schema, marker.schema_for(json_type))
            self._collect(marker, at)
        if markers:
            check_keywords(schema, json_type, at)

    def _collect(self, marker: Marker, at: Place) -> None:
        if isinstance(marker, Column | Selectable) and at.field:
            if at.path is None:
                raise at.error(f"{marker!r} is inside a list or map, so its path is ambiguous")
            if isinstance(marker, Column):
                self.columns.append((at, marker))
            else:
                self.selectable.append((at, marker))
        if isinstance(marker, Rule | Immutable) and not at.correlated and _compares_with_old(marker):
            raise at.error(
                f"{marker!r} uses oldSelf, which is not available in a list without keys: "
                "make it a ListMap, or put the rule on the field with the list"
            )

    def _apply_default(self, field: ModelField, reading: Reading, schema: Json, at: Place) -> None:
        """Set description, default and nullable of a field."""
        self._describe(schema, "" if any(isinstance(marker, Doc) for marker in reading.markers) else field.doc)
        if reading.none and field.default is not None and field.default is not msgspec.UNSET:
            _allow_null(schema)
        own = any(isinstance(marker, ServerDefault) for marker in reading.markers)
        if own and field.left_out:
            check_server_default(field, schema["default"], at)
        if not own and ClientDefault() not in reading.markers and at.path != ".status":
            try:
                default = server_default(field, schema)
            except (TypeError, NotImplementedError) as error:
                raise at.error(f"its default cannot be encoded as JSON: {error}") from None
            if default is not MISSING:
                schema["default"] = default
        if "default" in schema and (problem := mismatch(schema, schema["default"])):
            raise at.error(f"its default is invalid: {problem}; give another, or add ClientDefault()")

    def _describe(self, schema: Json, text: str) -> None:
        if text and self._descriptions:
            schema["description"] = text


def _allow_null(schema: Json) -> None:
    """Allow null in a typed schema. An enum would reject it, unless it is inside allOf."""
    if _type_of(schema) == "any":
        return
    schema["nullable"] = True
    if "enum" in schema:
        schema["allOf"] = [*schema.get("allOf", ()), {"enum": schema.pop("enum")}]


def _class_markers(cls: type, fields: list[ModelField], schema: Json, at: Place) -> list[Marker]:
    """Return the markers of a class; one-of markers as rules on wire names."""
    found: list[Marker] = [MapAtomic()] if getattr(cls, "__atomic__", False) else []
    names = {field.wire: field.wire for field in fields} | {field.attribute: field.wire for field in fields}
    for marker in markers_on(cls):
        if isinstance(marker, MembersMarker):
            unknown = [name for name in marker.fields if name not in names]
            if unknown:
                raise at.error(f"{marker!r}: there is no field {unknown[0]}")
            wire = [names[name] for name in marker.fields]
            check_members(marker, wire, schema, at)
            found.append(marker.rule([name_in_rules(name, at) for name in wire], wire))
        else:
            found.append(marker)
    return found


def _tag(cls: type) -> Json:
    """Return the property of the tag."""
    config = cls.__struct_config__ if issubclass(cls, msgspec.Struct) else None
    if config is None or config.tag is None or config.tag_field is None:
        return {}
    return {config.tag_field: {"type": "string" if isinstance(config.tag, str) else "integer", "enum": [config.tag]}}


def _compares_with_old(marker: Marker) -> bool:
    return _OLD.search(marker.schema["x-kubernetes-validations"][0]["rule"]) is not None


def _not_removed(wire: str, at: Place) -> Rule:
    name = name_in_rules(wire, at)
    return Rule(f"!has(oldSelf.{name}) || has(self.{name})", message=f"{wire} is immutable and cannot be removed")


def _keywords(markers: Sequence[Marker], json_type: str) -> Json:
    """Return the keywords of the markers for a type."""
    keywords: Json = {}
    for marker in markers:
        if json_type in marker.types:
            add_to(keywords, marker.schema_for(json_type))
    return keywords


def _type_of(schema: Json) -> str:
    return "int-or-string" if schema.get("x-kubernetes-int-or-string") else schema.get("type", "any")


def _spoken(json_types: frozenset[str]) -> str:
    shown = json_types - {"int-or-string"} - ({"integer"} if "number" in json_types else set())
    return " or ".join(sorted(_DESCRIPTIONS[each] for each in shown))
