"""Values of parameters: every value is stored as a string, and has a type when it is rendered.

- Arrays and maps are stored as YAML. Templates receive them as lists and maps; values of all other types are strings in
  templates, numbers and booleans too.
- A parameter is required if it says so and has no default.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from ostinato.api.wire.json import DecodeError
from ostinato.api.wire.yaml import decode_yaml
from ostinato.api.wire.yaml_output import encode_yaml
from ostinato.frontends.plans.api import Parameter

TYPES: Final = ("string", "integer", "number", "boolean", "array", "map")
_BOOLEANS: Final = dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True) | dict.fromkeys(
    ("0", "f", "F", "false", "FALSE", "False"), False
)
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_NUMBER: Final = re.compile(
    r"[+-]?((([0-9]+(\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]+)?)|0x[0-9a-f]+(\.[0-9a-f]*)?p[+-]?[0-9]+|inf|infinity|nan)",
    re.IGNORECASE,
)
_INT64: Final = 2**63


class ParameterError(ValueError):
    """A value does not fit its parameter."""


def load_yaml(text: str) -> Any:  # Any: whatever the document holds
    """Parse a document as Kubernetes does. Raises DecodeError."""
    return decode_yaml(text)


def boolean(text: str) -> bool:
    """Parse a boolean as Go does. Raises ParameterError."""
    try:
        return _BOOLEANS[text]
    except KeyError:
        raise ParameterError(f"{text!r} is not a boolean; use true or false") from None


def stored(value: Any, kind: str) -> str | None:
    """Return a value as it is stored; None for null."""
    if kind in ("array", "map"):
        return "null\n" if value is None else encode_yaml(value).decode()
    return None if value is None else _text(value)


def _text(value: Any) -> str:
    """Return a value of a YAML document in the words of Go."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() and abs(value) < 1e21 else repr(value)
    if isinstance(value, list):
        return "[" + " ".join(map(_text, value)) + "]"
    if isinstance(value, dict):
        return "map[" + " ".join(f"{name}:{_text(value[name])}" for name in sorted(value)) + "]"
    return "<nil>" if value is None else str(value)


def rendered(value: str | None, kind: str) -> Any:
    """Return a stored value as templates receive it. Raises ParameterError."""
    if kind not in ("array", "map"):
        return value or ""
    try:
        parsed = load_yaml(value or "")
    except DecodeError as error:
        raise ParameterError(f"not a valid {kind}: {_flat(error)}") from None
    if kind == "array" and parsed is not None and not isinstance(parsed, list):
        raise ParameterError("not an array")
    return parsed


def check_value(parameter: Parameter, value: str) -> None:
    """Check the value of a parameter in an instance. Raises ParameterError."""
    if value == "":
        if parameter.is_required and parameter.default is None:
            raise ParameterError(f'parameter "{parameter.name}" is required but has no value set')
        return
    problem = type_problem(parameter.type, value) or enum_problem(parameter.enum, value)
    if problem:
        raise ParameterError(f'parameter "{parameter.name}" has an invalid value "{value}": {problem}')


def type_problem(kind: str, value: Any) -> str:
    """Return why a value is not of a type; "" if it is. A string may be the stored form."""
    if kind in ("", "string"):
        return "" if isinstance(value, str) or kind == "" else f'type is "string" but the value is {value!r}'
    fits = {
        "integer": lambda: (isinstance(value, int) and not isinstance(value, bool)) or _is_integer(value),
        "number": lambda: (isinstance(value, int | float) and not isinstance(value, bool)) or _is_number(value),
        "boolean": lambda: isinstance(value, bool) or (isinstance(value, str) and value in _BOOLEANS),
        "array": lambda: isinstance(value, list) or _is_yaml(value, list),
        "map": lambda: isinstance(value, dict) or _is_yaml(value, dict),
    }.get(kind)
    if fits is None:
        return f'unknown type "{kind}"; types are {", ".join(TYPES)}'
    return "" if fits() else f'type is "{kind}" but format of "{value}" is invalid'


def enum_problem(allowed: list[str] | None, value: str) -> str:
    if allowed is None or value in allowed:
        return ""
    return f'value is "{value}", but only allowed values are [{" ".join(allowed)}]'


def _is_integer(value: Any) -> bool:
    return isinstance(value, str) and bool(_INTEGER.fullmatch(value)) and -_INT64 <= int(value) < _INT64


def _is_number(value: Any) -> bool:
    return isinstance(value, str) and bool(_NUMBER.fullmatch(value))


def _is_yaml(value: Any, kind: type) -> bool:
    if not isinstance(value, str):
        return False
    try:
        parsed = load_yaml(value)
    except DecodeError:
        return False
    return parsed is None or isinstance(parsed, kind)


def check_values(parameters: Iterable[Parameter], values: Mapping[str, str]) -> None:
    """Check the values of an instance against all parameters. Raises ParameterError for the first that is wrong."""
    for parameter in parameters:
        check_value(parameter, values.get(parameter.name, ""))


def values_for_templates(parameters: Iterable[Parameter], values: Mapping[str, str]) -> dict[str, Any]:
    """Return `.Params`. Raises ParameterError."""
    found: dict[str, Any] = {}
    for parameter in parameters:
        value = values.get(parameter.name, parameter.default)
        try:
            found[parameter.name] = rendered(value, parameter.type)
        except ParameterError as error:
            raise ParameterError(f'parameter "{parameter.name}": {error}') from None
    return found


def values_of_file(text: str, source: str) -> dict[str, str]:
    """Read a file of values, as `-P FILE` names it. Raises ParameterError."""
    try:
        parsed = load_yaml(text)
    except DecodeError as error:
        raise ParameterError(f"{source}: not YAML: {_flat(error)}") from None
    if parsed is None:
        return {}
    if not isinstance(parsed, dict):
        raise ParameterError(f"{source}: expected a map of parameters, found a {type(parsed).__name__}")
    values: dict[str, str] = {}
    for name, value in parsed.items():
        kind = "map" if isinstance(value, dict) else "array" if isinstance(value, list) else "string"
        text_of = stored(value, kind)
        if text_of is None:
            raise ParameterError(
                f"{source}: {name}: null is not supported; leave the parameter out, or use an empty text"
            )
        values[str(name)] = text_of
    return values


def value_of_argument(argument: str) -> tuple[str, str]:
    """Parse `-p NAME=VALUE`. Raises ParameterError."""
    name, equals, value = argument.partition("=")
    if not equals:
        raise ParameterError(f"parameter not set: {argument}; use -p NAME=VALUE")
    if not name:
        raise ParameterError(f"parameter name can not be empty: {argument}")
    if not value:
        raise ParameterError(f"parameter value can not be empty: {argument}")
    return name, value


def _flat(error: Exception) -> str:
    return " ".join(str(error).split())


class Difference(msgspec.Struct, frozen=True):
    """Names of parameters whose values differ between two instances."""

    changed: tuple[str, ...]  # or added
    removed: tuple[str, ...]


def difference(old: Mapping[str, str], new: Mapping[str, str]) -> Difference:
    return Difference(
        changed=tuple(name for name, value in new.items() if old.get(name) != value),
        removed=tuple(name for name in old if name not in new),
    )
