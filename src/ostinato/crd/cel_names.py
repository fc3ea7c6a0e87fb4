"""Names in CEL: how a rule refers to a field whose name is no identifier of CEL, or a word of it."""

from __future__ import annotations

import re
from typing import Final

_WORDS: Final = re.compile(
    "true|false|null|in|as|break|const|continue|else|for|function|if|import|let|loop|package|namespace|return|var|void|"
    "while"
)
_ESCAPED: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_PARTS: Final = re.compile("__|[./-]")


def cel_name(wire: str) -> str:
    """The name as rules write it: `self.__namespace__`, `self.my__dash__field`."""
    if _WORDS.fullmatch(wire):
        return f"__{wire}__"
    return _PARTS.sub(lambda found: _ESCAPED[found[0]], wire)
