"""Values as YAML documents."""

from __future__ import annotations

from typing import Any

from ostinato.api.wire.json import DecodeError
from ostinato.charts.chart import ChartError
from ostinato.gotemplate.library.formats.yaml import read_yaml

Values = dict[str, Any]


def read_values(data: bytes, name: str) -> Values:
    """Decode a map; numbers become floats, as in Helm. Raises ChartError."""
    try:
        document = read_yaml(data)
    except DecodeError as error:
        raise ChartError(f"cannot load {name}: {error}") from None
    if document is None:
        return {}
    if not isinstance(document, dict):
        kind = {list: "array", str: "string", bool: "bool"}.get(type(document), "number")
        raise ChartError(
            f"cannot load {name}: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {kind} into "
            "Go value of type map[string]interface {}"
        )
    return document


def copied(value: Any) -> Any:
    """Return a deep copy of a value."""
    if isinstance(value, dict):
        return {key: copied(each) for key, each in value.items()}
    if isinstance(value, list):
        return [copied(each) for each in value]
    return value


def table(values: Any, path: str) -> Values | None:
    """Return the map at a path of keys with dots; None if there is none."""
    for key in path.split("."):
        values = values.get(key) if isinstance(values, dict) else None
    return values if isinstance(values, dict) else None


def path_value(values: Values, path: str) -> Any:
    """Return the value at a path; None if there is none, or a map."""
    parent, _, key = path.rpartition(".")
    found = (table(values, parent) if parent else values) or {}
    value = found.get(key)
    return None if isinstance(value, dict) else value
