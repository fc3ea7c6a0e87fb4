"""CEL identifiers: reserved words, and escaping of field names.

Kubernetes escapes field names that are not CEL identifiers: `namespace` is `__namespace__`, `a-b` is `a__dash__b`.
"""

from __future__ import annotations

import re
from typing import Final

RESERVED: Final = frozenset(
    {
        *("as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "namespace"),
        *("package", "return", "var", "void", "while"),
    }
)  # not used by the grammar, but not allowed as identifiers
KEYWORDS: Final = RESERVED | {"true", "false", "null", "in"}

_IDENTIFIER: Final = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*")
_ESCAPES: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_ESCAPED: Final = re.compile(r"__|[-./]")
_ESCAPABLE: Final = re.compile(r"[A-Za-z_.\-/][A-Za-z0-9_.\-/]*", re.ASCII)


def is_identifier(name: str) -> bool:
    """Whether the name is an identifier, and not a keyword."""
    return _IDENTIFIER.fullmatch(name) is not None and name not in KEYWORDS


def escape(name: str) -> str | None:
    """Return the name of a field in expressions; None if it cannot be escaped."""
    if _ESCAPABLE.fullmatch(name) is None:
        return None
    return f"__{name}__" if name in KEYWORDS else _ESCAPED.sub(lambda part: _ESCAPES[part.group()], name)
