"""`fieldPath` of validation rules (`.spec.name`, `.labels['a.b']`), resolved in a schema."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

_TOKENS: Final = re.compile(r"'(?:[^'\\]|\\.)*'|[.\[\]]|[^.\[\]]+")
_ESCAPE: Final = re.compile(r"\\(.)")
_ESCAPED: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "'": "'", "\\": "\\"}


class FieldPathError(ValueError):
    """The text is not a path to a field of a schema."""


def normal_path(text: str, schema: Mapping[str, Any]) -> str:
    """Resolve a path; return it in the form of error messages: `spec.labels[a.b]`."""
    tokens = _TOKENS.findall(text)
    found, at = "", 0
    while at < len(tokens):
        if tokens[at] == "." and at + 1 < len(tokens):
            name, at = tokens[at + 1], at + 2
        elif tokens[at] == "[" and at + 2 < len(tokens) and tokens[at + 2] == "]":
            name, at = _unquoted(tokens[at + 1]), at + 3
        else:
            raise FieldPathError(f"{text}: expected [ or .")
        properties, additional = schema.get("properties"), schema.get("additionalProperties")
        if properties is not None:
            if name not in properties:
                raise FieldPathError(f"{text}: does not refer to a valid field")
            found, schema = f"{found}.{name}", properties[name]
        elif additional is not None:
            found, schema = f"{found}[{name}]", additional if isinstance(additional, Mapping) else {}
        else:
            raise FieldPathError(f"{text}: does not refer to a valid field")
    return found.removeprefix(".")


def _unquoted(token: str) -> str:
    if len(token) < 2 or token[0] != "'" or token[-1] != "'":
        raise FieldPathError(f"expected single quoted string but got {token}")
    if any(match[1] not in _ESCAPED for match in _ESCAPE.finditer(token[1:-1])):
        raise FieldPathError(f"invalid string literal: {token}")
    return _ESCAPE.sub(lambda match: _ESCAPED[match[1]], token[1:-1])
