"""Words of errors: values as Go prints them, because clients know Kubernetes' errors in that form."""

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
    """The type of a decoded JSON value, as `%T` and reflection name it."""
    return "%!s(<nil>)" if value is None else _TYPES.get(type(value), type(value).__name__)


def json_name(value: Any) -> str:
    """The type of a JSON value, as Go's decoder names it."""
    return _JSON_NAMES.get(type(value), type(value).__name__)


def go_value(value: Any) -> str:
    """A decoded JSON value as `%v` prints it: `map[a:1 b:[x y]]`, with sorted keys."""
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
    """A decoded JSON value as `%s` prints it: what is no string shows as a mistake."""
    if isinstance(value, str | dict | list):
        return go_value(value)
    return "%!s(<nil>)" if value is None else f"%!s({go_type(value)}={go_value(value)})"


def shown(value: dict[str, Any]) -> str:
    """An object as YAML, with the quotes that Go's encoder sets."""
    import yaml  # noqa: PLC0415 rarely needed, and slow to import

    class Dumper(yaml.SafeDumper):
        """Quotes strings that could be taken for something else, doubly."""

    def represent(dumper: Dumper, text: str) -> yaml.ScalarNode:
        plain_tag = dumper.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
        ambiguous = plain_tag != "tag:yaml.org,2002:str" or text in ("y", "Y", "n", "N")
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"' if ambiguous else None)

    Dumper.add_representer(str, represent)
    try:
        text: str = yaml.dump(value, Dumper=Dumper, default_flow_style=False, allow_unicode=True)
    except RecursionError:  # YAML takes many frames a level; nobody reads so deep an object anyway
        return go_value(value)
    return text
