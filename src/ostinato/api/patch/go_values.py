"""Values and types in error messages, as Go formats decoded JSON."""

from __future__ import annotations

from typing import Any

from ostinato.api.text.go_format import plain

_TYPES = {
    dict: "map[string]interface {}",
    list: "[]interface {}",
    str: "string",
    bool: "bool",
    int: "int64",
    float: "float64",
}
_JSON_NAMES = {dict: "object", list: "array", str: "string", bool: "bool", int: "number", float: "number"}


def go_type(value: Any) -> str:
    """Return the type of a decoded JSON value, as `%T`."""
    return "%!s(<nil>)" if value is None else _TYPES.get(type(value), type(value).__name__)


def json_name(value: Any) -> str:
    """Return the type of a JSON value in errors of Go's decoder."""
    return _JSON_NAMES.get(type(value), type(value).__name__)


def go_value(value: Any) -> str:
    """Format a decoded JSON value as `%v`: `map[a:1 b:[x y]]`, with sorted keys."""
    if isinstance(value, str):
        return value
    words = []
    if isinstance(value, dict):
        for key in sorted(value):
            words.append(f"{key}:{go_value(value[key])}")  # noqa: PERF401 one frame a level, see `values.same`
        return f"map[{' '.join(words)}]"
    if isinstance(value, list):
        for item in value:
            words.append(go_value(item))  # noqa: PERF401
        return f"[{' '.join(words)}]"
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    return plain(value)


def go_string(value: Any) -> str:
    """Format a decoded JSON value as `%s`; other types than strings as Go's format error."""
    if isinstance(value, str | dict | list):
        return go_value(value)
    return "%!s(<nil>)" if value is None else f"%!s({go_type(value)}={go_value(value)})"


def shown(value: dict[str, Any]) -> str:
    """Format an object as YAML, with the quotes of Go's encoder."""
    import yaml  # noqa: PLC0415 rarely needed, and slow to import

    class Dumper(yaml.SafeDumper):
        """Double-quotes strings that are ambiguous."""

    def represent(dumper: Dumper, text: str) -> yaml.ScalarNode:
        plain_tag = dumper.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
        ambiguous = plain_tag != "tag:yaml.org,2002:str" or text in ("y", "Y", "n", "N")
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"' if ambiguous else None)

    Dumper.add_representer(str, represent)
    try:
        text: str = yaml.dump(value, Dumper=Dumper, default_flow_style=False, allow_unicode=True)
    except RecursionError:  # YAML needs many frames per level
        return go_value(value)
    return text
