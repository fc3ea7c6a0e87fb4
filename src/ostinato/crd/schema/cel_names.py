"""Names in CEL: how a rule refers to a field whose name is no identifier of CEL, or a word of it."""

from __future__ import annotations

import re
from typing import Final

from ostinato.crd.schema.place import Place

_WORDS: Final = re.compile(
    "true|false|null|in|as|break|const|continue|else|for|function|if|import|let|loop|package|namespace|return|var|void|"
    "while"
)
_ESCAPED: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_IDENTIFIER: Final = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_PARTS: Final = re.compile("__|[./-]")


def name_in_rules(wire: str, at: Place) -> str:
    """The name as rules write it. Raises SchemaError where they have none."""
    name = cel_name(wire)
    if not _IDENTIFIER.fullmatch(name):
        raise at.error(
            f"there can be no rule about {wire!r}, which is no name in CEL: rename it, or leave the marker out"
        )
    return name


def cel_name(wire: str) -> str:
    """The name as rules write it: `self.__namespace__`, `self.my__dash__field`."""
    if _WORDS.fullmatch(wire):
        return f"__{wire}__"
    return _PARTS.sub(lambda found: _ESCAPED[found[0]], wire)
