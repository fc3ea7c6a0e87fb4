"""Decoding of built-in kinds: from a body to the object that kube-apiserver would hold.

kube-apiserver decodes a body to Go structs and encodes these again, which determines what is stored and what clients
see. This module does the same in one pass:

- Unknown fields are dropped; null equals absent.
- Empty values are dropped unless the field is a pointer; structs that are not pointers are always present.
- Numbers are range-checked; quantities and times take their canonical form.

It is driven by two tables: the schemas, and the declaration of each field (its Go type, and whether it has omitempty).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from importlib import resources
from typing import Any, Final

import msgspec

from ostinato.api.gvk import GroupVersionKind
from ostinato.api.quantity import Quantity
from ostinato.api.schema import builtin_schemas
from ostinato.api.text.short_cache import short_cache
from ostinato.api.time import MicroTime, Time
from ostinato.server.schema.decoding.base64 import Base64Error, canonical_base64
from ostinato.server.schema.decoding.embedded_structs import error_path

Convert = Callable[[Any], Any]

_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
_STORED_AS_JSON: Final = "io.k8s.apiextensions-apiserver."
_RAW: Final = "io.k8s.apimachinery.pkg.runtime.RawExtension"
_OPAQUE: Final = {
    _RAW,
    _META + "FieldsV1",
    _META + "Patch",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON",
}
_EMPTY: Final = {_STORED_AS_JSON + "pkg.apis.apiextensions.v1.CustomResourceSubresourceStatus"}  # has no fields
_JSON_SCHEMA: Final = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"


_KEPT_EMPTY: Final = {("io.k8s.api.autoscaling.v2.HPAScalingRules", "policies")}  # only an empty list is invalid


class TypeMismatch(Exception):  # noqa: N818
    """A value whose type the field cannot hold. The message is that of Go's JSON decoder."""

    def __init__(self, found: str, go_type: str, into: str = "", value: Any = None) -> None:
        super().__init__(found, go_type)
        self.found = found
        self.go_type = go_type
        self.into = into  # kind of `go_type`: struct, map, slice, string, int32, …; "": a type with its own decoder
        self.value = value
        self.struct = ""  # the innermost struct
        self.path: list[str] = []  # the fields that lead to it, innermost first

    def __str__(self) -> str:
        if not self.struct:
            return f"json: cannot unmarshal {self.found} into Go value of type {self.go_type}"
        field = ".".join(reversed(self.path))
        return f"json: cannot unmarshal {self.found} into Go struct field {self.struct}.{field} of type {self.go_type}"


class BadValue(Exception):  # noqa: N818
    """A value of the right type that cannot be parsed: a quantity, a time."""


class _Unknown:
    """Collects the paths of unknown fields. Paths are built from the inside out, so that known fields cost nothing."""

    __slots__ = ("paths",)

    def __init__(self) -> None:
        self.paths: list[str] = []

    def prefix(self, since: int, with_: str) -> None:
        paths = self.paths
        for i in range(since, len(paths)):
            paths[i] = with_ + paths[i] if paths[i].startswith("[") else f"{with_}.{paths[i]}"


_WRITTEN = ("metadata", "status")  # what a write of the status changes

# The decoder of a field; whether an empty value is dropped; and the type whose values need no decoding.
_Field = tuple[Callable[[Any, _Unknown], Any], bool, type | None]


class Struct:
    """One Go struct: decodes a JSON object to it, and encodes it again."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.fields: dict[str, _Field] = {}
        self.always: list[tuple[str, Callable[[], Any]]] = []  # fields without omitempty, and their zero values

    def read(self, value: Any, unknown: _Unknown) -> dict[str, Any]:
        if type(value) is not dict:
            raise TypeMismatch(json_type(value), f"v1.{self.name}", "struct", value)
        fields, paths, name = self.fields, unknown.paths, ""
        out: dict[str, Any] = {}
        try:
            for name, item in value.items():
                field = fields.get(name)
                if field is None:
                    paths.append(name)
                    continue
                if item is None:
                    continue
                read, gone, plain = field
                if type(item) is plain:
                    new = item
                else:
                    since = len(paths)
                    new = read(item, unknown)
                    if len(paths) > since:
                        unknown.prefix(since, name)
                if new or not gone:
                    out[name] = new
        except TypeMismatch as error:
            if not error.struct:
                error.struct = self.name
            error.path.append(error_path(self.name, name))
            raise
        for name, zero in self.always:
            if name not in out:
                out[name] = zero()
        return out


def json_type(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, int | float):
        return "number"
    return "array" if isinstance(value, list) else "object"


def read(model: str, value: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Decode a body to a model: the object, and the paths of its unknown fields. The body is not modified."""
    unknown = _Unknown()
    return struct(model).read(value, unknown), unknown.paths


def read_status_update(model: str, value: dict[str, Any], old: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Like `read`, for a write of the status of a stored object, which is decoded already.

    Fields besides metadata and status that both share are not decoded again; the output shares them as well.
    """
    kept = {name for name, item in value.items() if name not in _WRITTEN and item and item is old.get(name)}
    out, unknown = read(model, {name: item for name, item in value.items() if name not in kept})
    made = {name: value[name] if name in kept else out[name] for name in value if name in kept or name in out}
    return {**made, **{name: item for name, item in out.items() if name not in made}}, unknown


@cache
def struct(model: str) -> Struct:
    """The struct of a definition, built on first use."""
    definitions, declared = _tables()
    found = Struct(model.rpartition(".")[2])
    _structs[model] = found
    properties: Mapping[str, Any] = definitions[model].get("properties", {})
    for name, (go_type, omit, *zero) in declared.get(model, {}).items():
        if name not in properties:
            continue
        raw = properties[name]
        pointer = go_type.startswith("*")
        plain_struct = not pointer and _is_struct(raw)
        # kube-apiserver stores an empty list like an absent one, except in CustomResourceDefinitions.
        collection = go_type.startswith(("[]", "map[")) and not model.startswith(_STORED_AS_JSON)
        gone = collection or (bool(omit) and not pointer and not plain_struct)
        if (model, name) in _KEPT_EMPTY or _target(raw) == _RAW:
            gone = False
        found.fields[name] = (_reader(raw, go_type), gone, _plain(raw))
        if (plain_struct and not zero) or not omit:
            found.always.append((name, _zero(raw, go_type)))
    for name in ("kind", "apiVersion"):
        if name in properties and name not in found.fields:
            found.fields[name] = (_reader(properties[name], "string"), True, str)
    return found


_structs: dict[str, Struct] = {}


@cache
def _tables() -> tuple[Mapping[str, Any], dict[str, Any]]:
    fields = resources.files("ostinato.server").joinpath("data/go_fields.json").read_bytes()
    return builtin_schemas().definitions, msgspec.json.decode(fields)


def _target(raw: Mapping[str, Any]) -> str | None:
    ref = raw.get("$ref")
    return None if ref is None else str(ref).removeprefix("#/definitions/")


_SCALAR_STRUCTS: Final = (".Quantity", ".IntOrString")  # structs in Go, strings or numbers in JSON


def _is_struct(raw: Mapping[str, Any]) -> bool:
    target = _target(raw)
    return target is not None and (
        bool(_tables()[0][target].get("properties")) or target.endswith((".Time", ".MicroTime", *_SCALAR_STRUCTS))
    )


def _zero(raw: Mapping[str, Any], go_type: str) -> Callable[[], Any]:
    target = _target(raw)
    if go_type.startswith(("*", "[]", "map[")) or (target and target.endswith((".Time", ".MicroTime"))):
        return lambda: None
    if target and target.endswith(".Quantity"):
        return lambda: "0"
    if target and target.endswith(".IntOrString"):
        return lambda: 0
    if target and target not in _OPAQUE:
        return lambda: struct(target).read({}, _Unknown())
    kind = raw.get("type")
    if kind in ("array", "object") or target:
        return lambda: None
    zero = {"string": "", "integer": 0, "number": 0, "boolean": False}[str(kind)]
    return lambda: zero


def _plain(raw: Mapping[str, Any]) -> type | None:
    """The type whose values are used unchanged, if any."""
    if raw.get("type") == "string" and raw.get("format") != "byte":
        return str
    return bool if raw.get("type") == "boolean" else None


def _reader(raw: Mapping[str, Any], go_type: str) -> Callable[[Any, _Unknown], Any]:
    go_type = go_type.removeprefix("*")
    target = _target(raw)
    if target is not None:
        return _reference(target, go_type)
    kind = raw.get("type")
    if kind == "array":
        of = go_type.removeprefix("[]")
        return _list(_reader(raw["items"], of), _zero(raw["items"], of), go_type)
    if kind == "object":
        values = raw.get("additionalProperties")
        of = go_type.partition("]")[2]
        if not values:
            return _opaque
        return _map(_reader(values, of), str if values.get("format") == "byte" else _zero(values, of), go_type)
    if kind == "string" and raw.get("format") == "byte":
        return _bytes
    if kind == "string":
        return _string(go_type)
    if kind == "integer":
        return _integer(go_type, raw.get("format", "int64"))
    if kind == "number":
        return _number(go_type)
    if kind == "boolean":
        return _boolean(go_type)
    return _opaque


def _reference(target: str, go_type: str) -> Callable[[Any, _Unknown], Any]:
    if target in _OPAQUE:
        return _opaque
    if target == f"{_JSON_SCHEMA}OrArray":
        return _schema_or_list
    if target.startswith(_JSON_SCHEMA) and target != _JSON_SCHEMA:
        return _schema_or_other
    name = target.rpartition(".")[2]
    if name == "Quantity":
        return _quantity
    if name == "Time":
        return _time
    if name == "MicroTime":
        return _micro_time
    if name == "IntOrString":
        return _int_or_string
    if not _tables()[0][target].get("properties") and target not in _EMPTY:
        return _opaque

    def read_struct(value: Any, unknown: _Unknown) -> Any:
        try:
            return struct(target).read(value, unknown)
        except TypeMismatch as error:
            if not error.struct:
                error.go_type = go_type
            raise

    return read_struct


def _opaque(value: Any, _unknown: _Unknown) -> Any:
    return value


def _schema_or_list(value: Any, unknown: _Unknown) -> Any:
    """JSONSchemaPropsOrArray: values of other types are ignored."""
    return _schema_or_other(value, unknown) if type(value) is dict or type(value) is list else None


def _schema_or_other(value: Any, _unknown: _Unknown) -> Any:
    """JSONSchemaPropsOrBool and similar types. Unknown fields below them are dropped silently."""
    if type(value) is list:
        return [_schema_or_other(item, _unknown) if type(item) is dict else item for item in value]
    if type(value) is bool:
        return value
    if type(value) is not dict:
        raise BadValue("boolean or JSON schema expected")
    return struct(_JSON_SCHEMA).read(value, _Unknown())


def _string(go_type: str) -> Callable[[Any, _Unknown], Any]:
    def read_string(value: Any, _unknown: _Unknown) -> Any:
        if type(value) is not str:
            raise TypeMismatch(json_type(value), go_type, "string", value)
        return value

    return read_string


def _integer(go_type: str, format_: str) -> Callable[[Any, _Unknown], Any]:
    limit = 1 << (31 if format_ == "int32" else 63)

    def read_integer(value: Any, _unknown: _Unknown) -> Any:
        if type(value) is int and -limit <= value < limit:
            return value
        if type(value) is float and value.is_integer() and -limit <= value < limit:
            return int(value)
        found = json_type(value)
        raise TypeMismatch(f"number {value}" if found == "number" else found, go_type, format_, value)

    return read_integer


def _number(go_type: str) -> Callable[[Any, _Unknown], Any]:
    def read_number(value: Any, _unknown: _Unknown) -> Any:
        if type(value) is not int and type(value) is not float:
            raise TypeMismatch(json_type(value), go_type, "float64", value)
        return value

    return read_number


def _boolean(go_type: str) -> Callable[[Any, _Unknown], Any]:
    def read_boolean(value: Any, _unknown: _Unknown) -> Any:
        if type(value) is not bool:
            raise TypeMismatch(json_type(value), go_type, "bool", value)
        return value

    return read_boolean


def _bytes(value: Any, _unknown: _Unknown) -> Any:
    if type(value) is not str:
        raise TypeMismatch(json_type(value), "[]uint8", "slice", value)
    try:
        return canonical_base64(value)
    except Base64Error as error:
        raise BadValue(str(error)) from error


def _quantity(value: Any, _unknown: _Unknown) -> Any:
    if type(value) is not str and type(value) is not int and type(value) is not float:
        return _canonical_quantity("?")  # any other value is reported as an invalid quantity string
    return _canonical_quantity(str(value))


@short_cache(4096)
def _canonical_quantity(text: str) -> str:
    try:
        return str(Quantity.parse(text))
    except ValueError as error:
        raise BadValue(str(error)) from error


def _time(value: Any, _unknown: _Unknown) -> Any:
    if type(value) is not str:
        raise TypeMismatch(json_type(value), "string")
    try:
        return _canonical_time(value) if len(value) <= _USUAL_TIME else str(Time.parse(value))
    except ValueError as error:
        raise BadValue(str(error)) from error


_USUAL_TIME: Final = 40  # characters


@lru_cache(maxsize=1024)  # objects created together have the same timestamps
def _canonical_time(text: str) -> str:
    return str(Time.parse(text))


def _micro_time(value: Any, _unknown: _Unknown) -> Any:
    if type(value) is not str:
        raise TypeMismatch(json_type(value), "string")
    try:
        return str(MicroTime.parse(value))
    except ValueError as error:
        raise BadValue(str(error)) from error


def _int_or_string(value: Any, _unknown: _Unknown) -> Any:
    if type(value) is str:
        return value
    if type(value) is int and -(1 << 31) <= value < 1 << 31:
        return value
    found = json_type(value)
    raise TypeMismatch(f"number {value}" if found == "number" else found, "int32")


def _list(
    item: Callable[[Any, _Unknown], Any], zero: Callable[[], Any], go_type: str
) -> Callable[[Any, _Unknown], Any]:
    def read_list(value: Any, unknown: _Unknown) -> Any:
        if type(value) is not list:
            raise TypeMismatch(json_type(value), go_type, "slice", value)
        out = []
        for i, element in enumerate(value):
            since = len(unknown.paths)
            out.append(zero() if element is None else item(element, unknown))
            if len(unknown.paths) > since:
                unknown.prefix(since, f"[{i}]")
        return out

    return read_list


def _map(item: Callable[[Any, _Unknown], Any], zero: Callable[[], Any], go_type: str) -> Callable[[Any, _Unknown], Any]:
    def read_map(value: Any, unknown: _Unknown) -> Any:
        if type(value) is not dict:
            raise TypeMismatch(json_type(value), go_type, "map", value)
        out = {}
        for key, element in value.items():
            since = len(unknown.paths)
            out[key] = zero() if element is None else item(element, unknown)
            if len(unknown.paths) > since:
                unknown.prefix(since, key)
        return out

    return read_map


def model_of(gvk: GroupVersionKind) -> str:
    """The name of a kind's definition."""
    name = builtin_schemas().name(gvk)
    if name is None:
        raise KeyError(gvk)
    return name
