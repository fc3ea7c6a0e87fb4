"""Annotations from schemas: the Python type of a value, and markers for what the type does not express.

Keywords without a type or marker are kept in a `RawSchema`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from ostinato.api.markers import (
    EmbeddedResource,
    Enum,
    Example,
    ExternalDocs,
    Format,
    Ge,
    Gt,
    Inexact,
    Le,
    Len,
    ListAtomic,
    ListMap,
    ListSet,
    Lt,
    MapAtomic,
    MapGranular,
    Marker,
    MultipleOf,
    Pattern,
    PreserveUnknown,
    RawSchema,
    Rule,
    Title,
)
from ostinato.crd.schema.types.scalars import DURATION_PATTERN, QUANTITY_PATTERN, int_or_string
from ostinato.crd.source.text import call

Json = dict[str, Any]
MakeClass = Callable[[Json, tuple[str, ...]], str]

_SCALARS: Final = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
_FIELD_WORDS: Final = ("type", "description", "nullable", "default")  # expressed by the field itself
_RULE_WORDS: Final = {
    "message": "message",
    "messageExpression": "message_expression",
    "reason": "reason",
    "fieldPath": "field_path",
    "optionalOldSelf": "optional_old_self",
}


class Annotation(msgspec.Struct):
    """A Python type with its markers."""

    core: str
    markers: list[Marker]
    inside: set[str] = set()  # names used by the type
    is_class: bool = False  # a generated class

    @property
    def names(self) -> set[str]:
        """The names to import."""
        own = {type(marker).__name__ for marker in self.markers}
        return self.inside | own | ({"Annotated"} if own else set())

    def line(self, *, none: bool = False) -> str:
        core = f"{self.core} | None" if none else self.core
        return f"Annotated[{', '.join([core, *map(call, self.markers)])}]" if self.markers else core


def annotation_of(schema: Json, way: tuple[str, ...], make_class: MakeClass) -> Annotation:
    """Return the annotation of a schema; `make_class` generates a class for properties, and returns its name."""
    rest = {word: value for word, value in schema.items() if word not in _FIELD_WORDS}
    kind = schema.get("type")
    inside: set[str] = set()
    if rest.pop("x-kubernetes-int-or-string", False):
        core = _number_or_text(rest)
        rest |= {"type": kind} if kind else {}  # redundant
        kind = None
    elif kind == "object":
        if _needs_class(schema):
            return Annotation(make_class(schema, way), [], is_class=True)
        core, inside = _map(rest, way, make_class)
    elif kind == "array":
        item, inside = _inside(rest.pop("items", None), way, make_class)
        core = f"list[{item}]"
    elif kind in _SCALARS:
        core = _scalar(kind, rest)
    else:
        core = "Any"
        if not kind:
            rest.pop("x-kubernetes-preserve-unknown-fields", None)
    markers = markers_of(rest, kind or "any")
    if core == "float" and "format" not in schema:
        markers.insert(0, Inexact())
    return Annotation(core, markers, inside or {core})


def _needs_class(schema: Json) -> bool:
    """Return the annotation of an object: a map with additionalProperties, otherwise a class."""
    open_ = schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("additionalProperties") is not None
    return bool(schema.get("properties")) or not open_


def _number_or_text(rest: Json) -> str:
    usual = int_or_string()["anyOf"]
    if rest.get("anyOf") == usual:
        del rest["anyOf"]
    elif rest.get("allOf") == [{"anyOf": usual}]:
        del rest["allOf"]
    if rest.get("pattern") == QUANTITY_PATTERN:
        del rest["pattern"]
        return "Quantity"
    return "int | str"


def _map(rest: Json, way: tuple[str, ...], make_class: MakeClass) -> tuple[str, set[str]]:
    rest.pop("properties", None)
    values = rest.pop("additionalProperties", None)
    preserve = rest.pop("x-kubernetes-preserve-unknown-fields", False)
    if isinstance(values, dict):
        if preserve:
            rest["x-kubernetes-preserve-unknown-fields"] = True
        value, inside = _inside(values, way, make_class)
        return f"dict[str, {value}]", inside
    return "dict[str, Any]", {"Any"}


def _inside(schema: Any, way: tuple[str, ...], make_class: MakeClass) -> tuple[str, set[str]]:
    """Return the type of items or values, and the names that it uses."""
    if not isinstance(schema, dict):
        return "Any", {"Any"}
    found = annotation_of(schema, way, make_class)
    return found.line(none=bool(schema.get("nullable")) and found.core != "Any"), found.names


def _scalar(kind: str, rest: Json) -> str:
    if kind == "string":
        if rest.get("format") == "date-time":
            del rest["format"]
            return "Time"
        if rest.get("format") == "byte" and "enum" not in rest:
            del rest["format"]
            return "bytes"
        if rest.get("pattern") == DURATION_PATTERN and "format" not in rest:
            del rest["pattern"]
            return "Duration"
    return _SCALARS[kind]


def markers_of(words: Json, kind: str) -> list[Marker]:
    """Return the markers of keywords."""
    rest = dict(words)
    markers: list[Marker] = []
    for make in (_bounds, _lengths, _texts, _merging, _openness, _documentation, _rules):
        markers += make(rest, kind)
    rest = {word: value for word, value in rest.items() if value not in (None, False)}
    return [*markers, RawSchema(rest)] if rest else markers


def _bounds(rest: Json, kind: str) -> list[Marker]:
    if kind not in ("integer", "number"):
        return []
    found: list[Marker] = []
    for word, exclusive, closed, open_ in (
        ("minimum", "exclusiveMinimum", Ge, Gt),
        ("maximum", "exclusiveMaximum", Le, Lt),
    ):
        if _is_number(rest.get(word)) and (kind == "number" or not rest[word] % 1):
            found.append((open_ if rest.pop(exclusive, False) else closed)(rest.pop(word)))
    if _is_number(rest.get("multipleOf")) and rest["multipleOf"] > 0 and not rest["multipleOf"] % 1:
        found.append(MultipleOf(rest.pop("multipleOf")))
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _lengths(rest: Json, kind: str) -> list[Marker]:
    word = {"string": "Length", "array": "Items", "object": "Properties"}.get(kind)
    if word is None:
        return []
    least, most = rest.get(f"min{word}", 0), rest.get(f"max{word}")
    if not isinstance(least, int) or not isinstance(most, int | None) or least < 0 or (most or least) < least:
        return []
    rest.pop(f"min{word}", None)
    rest.pop(f"max{word}", None)
    return [Len(least, most)] if least or most is not None else []


def _texts(rest: Json, kind: str) -> list[Marker]:
    found: list[Marker] = []
    if kind in _SCALARS and isinstance(rest.get("format"), str) and rest["format"] and kind != "boolean":
        found.append(Format(rest.pop("format")))
    if kind == "string" and isinstance(rest.get("pattern"), str) and rest["pattern"]:
        found.append(Pattern(rest.pop("pattern")))
    match rest.get("allOf"):
        case [{"enum": values, **others}] if not others and "enum" not in rest:  # a nullable enum
            del rest["allOf"]
            rest["enum"] = values
    values, wanted = rest.get("enum"), {"string": str, "integer": int}.get(kind)
    if wanted and isinstance(values, list) and values and all(type(value) is wanted for value in values):
        found.append(Enum(*rest.pop("enum")))
    return found


def _merging(rest: Json, kind: str) -> list[Marker]:
    found: list[Marker] = []
    if kind == "array":
        match rest.get("x-kubernetes-list-type"):
            case "atomic":
                found.append(ListAtomic())
            case "set":
                found.append(ListSet())
            case "map" if rest.get("x-kubernetes-list-map-keys"):
                found.append(ListMap(*rest.pop("x-kubernetes-list-map-keys")))
        if found:
            del rest["x-kubernetes-list-type"]
    elif kind == "object":
        match rest.get("x-kubernetes-map-type"):
            case "atomic":
                found.append(MapAtomic())
            case "granular":
                found.append(MapGranular())
        if found:
            del rest["x-kubernetes-map-type"]
    return found


def _openness(rest: Json, kind: str) -> list[Marker]:
    found: list[Marker] = []
    if rest.pop("x-kubernetes-preserve-unknown-fields", False):
        found.append(PreserveUnknown())
    if kind == "object" and rest.pop("x-kubernetes-embedded-resource", False):
        found.append(EmbeddedResource())
    return found


def _documentation(rest: Json, _kind: str) -> list[Marker]:
    found: list[Marker] = []
    if isinstance(rest.get("title"), str) and rest["title"]:
        found.append(Title(rest.pop("title")))
    if "example" in rest:
        found.append(Example(rest.pop("example")))
    docs = rest.get("externalDocs")
    if isinstance(docs, dict) and isinstance(docs.get("url"), str):
        del rest["externalDocs"]
        found.append(ExternalDocs(docs["url"], docs.get("description", "")))
    return found


def _rules(rest: Json, _kind: str) -> list[Marker]:
    rules = rest.pop("x-kubernetes-validations", None) or []
    return [
        Rule(rule["rule"], **{_RULE_WORDS[word]: rule[word] for word in _RULE_WORDS if word in rule}) for rule in rules
    ]
