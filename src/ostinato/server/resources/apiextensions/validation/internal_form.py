"""Internal Go form of a definition's parts, as kube-apiserver prints them in errors: all fields, by Go name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ostinato.api.text.go_format import json_text

_NAMES = {"JSONPath": "jsonPath", "ID": "id", "Schema": "$schema", "Ref": "$ref", "URL": "url"}
_EXTENSIONS = {
    "XPreserveUnknownFields": "x-kubernetes-preserve-unknown-fields",
    "XEmbeddedResource": "x-kubernetes-embedded-resource",
    "XIntOrString": "x-kubernetes-int-or-string",
    "XListMapKeys": "x-kubernetes-list-map-keys",
    "XListType": "x-kubernetes-list-type",
    "XMapType": "x-kubernetes-map-type",
    "XValidations": "x-kubernetes-validations",
}
_VERSION = {
    "Name": "",
    "Served": False,
    "Storage": False,
    "Deprecated": False,
    "DeprecationWarning": None,
    "Schema": None,
    "Subresources": None,
    "AdditionalPrinterColumns": None,
    "SelectableFields": None,
}
_SCHEMA = {
    "ID": "",
    "Schema": "",
    "Ref": None,
    "Description": "",
    "Type": "",
    "Nullable": False,
    "Format": "",
    "Title": "",
    "Default": None,
    "Maximum": None,
    "ExclusiveMaximum": False,
    "Minimum": None,
    "ExclusiveMinimum": False,
    "MaxLength": None,
    "MinLength": None,
    "Pattern": "",
    "MaxItems": None,
    "MinItems": None,
    "UniqueItems": False,
    "MultipleOf": None,
    "Enum": None,
    "MaxProperties": None,
    "MinProperties": None,
    "Required": None,
    "Items": None,
    "AllOf": None,
    "OneOf": None,
    "AnyOf": None,
    "Not": None,
    "Properties": None,
    "AdditionalProperties": None,
    "PatternProperties": None,
    "Dependencies": None,
    "AdditionalItems": None,
    "Definitions": None,
    "ExternalDocs": None,
    "Example": None,
    "XPreserveUnknownFields": None,
    "XEmbeddedResource": False,
    "XIntOrString": False,
    "XListMapKeys": None,
    "XListType": None,
    "XMapType": None,
    "XValidations": None,
}
_SCALE = {"SpecReplicasPath": "", "StatusReplicasPath": "", "LabelSelectorPath": None}
_COLUMN = {"Name": "", "Type": "", "Format": "", "Description": "", "Priority": 0, "JSONPath": ""}
_FIELD = {"JSONPath": ""}
_RULE = {
    "Rule": "",
    "Message": "",
    "MessageExpression": "",
    "Reason": None,
    "FieldPath": "",
    "OptionalOldSelf": None,
}
_DOCS = {"Description": "", "URL": ""}


class Shown:
    """A value with its own text in errors."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __str__(self) -> str:
        return self._text


def shown_schema(schema: Mapping[str, Any]) -> Shown:
    return Shown(_schema(schema))


def shown_rule(rule: Mapping[str, Any]) -> Shown:
    return Shown(_struct(rule, _RULE))


def shown_version(version: Mapping[str, Any], shared: set[str]) -> Shown:
    """A version without the parts that all versions share."""
    own = {name: value for name, value in version.items() if name not in shared}
    return Shown(_struct(own, _VERSION))


def _struct(value: Mapping[str, Any], fields: Mapping[str, Any]) -> str:
    """All fields of a struct; absent ones have their zero value."""
    parts = []
    for name, empty in fields.items():
        key = _EXTENSIONS.get(name) or (name[0].lower() + name[1:] if fields is _VERSION else _NAMES.get(name))
        item = value.get(key or name[0].lower() + name[1:])
        parts.append(f'"{name}":{json_text(empty) if item is None else _field(name, item, fields)}')
    return "{" + ",".join(parts) + "}"


def _field(name: str, value: Any, fields: Mapping[str, Any]) -> str:
    if fields is _VERSION:
        return _version_field(name, value)
    match name:
        case "Items":
            many = isinstance(value, list)
            single = "null" if many else _schema(value)
            return f'{{"Schema":{single},"JSONSchemas":{_list(value, _SCHEMA) if many else "null"}}}'
        case "AllOf" | "OneOf" | "AnyOf":
            return _list(value, _SCHEMA)
        case "Not":
            return _schema(value)
        case "Properties" | "PatternProperties" | "Definitions":
            return _map({key: _schema(item) for key, item in value.items()})
        case "AdditionalProperties" | "AdditionalItems":
            given = isinstance(value, Mapping)
            allows = json_text(given or bool(value))
            return f'{{"Allows":{allows},"Schema":{_schema(value) if given else "null"}}}'
        case "Dependencies":
            return _map({key: _dependency(item) for key, item in value.items()})
        case "XValidations":
            return _list(value, _RULE)
        case "ExternalDocs":
            return _struct(value, _DOCS)
        case _:
            return json_text(value)


def _version_field(name: str, value: Any) -> str:
    match name:
        case "Schema":
            inner = value.get("openAPIV3Schema")
            return f'{{"OpenAPIV3Schema":{"null" if inner is None else _schema(inner)}}}'
        case "Subresources":
            scale = value.get("scale")
            status = "null" if value.get("status") is None else "{}"
            return f'{{"Status":{status},"Scale":{"null" if scale is None else _struct(scale, _SCALE)}}}'
        case "AdditionalPrinterColumns":
            return _list(value, _COLUMN)
        case "SelectableFields":
            return _list(value, _FIELD)
        case _:
            return json_text(value)


def _schema(value: Mapping[str, Any]) -> str:
    return _struct(value, _SCHEMA)


def _dependency(value: Any) -> str:
    if isinstance(value, Mapping):
        return f'{{"Schema":{_schema(value)},"Property":null}}'
    return f'{{"Schema":null,"Property":{json_text(value)}}}'


def _list(values: Any, fields: Mapping[str, Any]) -> str:
    return f"[{','.join(_struct(value, fields) for value in values)}]"


def _map(values: Mapping[str, str]) -> str:
    return "{" + ",".join(f"{json_text(key)}:{values[key]}" for key in sorted(values)) + "}"
