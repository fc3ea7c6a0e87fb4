"""Environment files in volumes (`fileKeyRef`): lines of `NAME='value'`, a strict subset of shell syntax.

Values are in single quotes, may span lines and are taken literally. Comments start with `#`.
"""

from __future__ import annotations

from typing import Final

LARGEST: Final = 64 * 1024  # bytes
_BLANK: Final = " \t"


class EnvFileError(ValueError):
    """A syntax error; the message names the line."""


def value_in(content: bytes, key: str) -> str:
    """Return the first value of a name; empty if there is none. Later lines are not parsed."""
    lines = iter(content.decode(errors="replace").split("\n"))
    for number, line in enumerate(lines, 1):
        text = line.lstrip(_BLANK)
        if not text or text.startswith("#"):
            continue
        name, equals, rest = text.partition("=")
        if not equals or not name or name != name.rstrip(_BLANK):
            raise EnvFileError(f"invalid environment variable format at line {number}: want NAME='value'")
        if rest.startswith(tuple(_BLANK)) or not rest:
            value = ""  # as in a shell: text after a blank is not part of the value
        elif rest.startswith("'"):
            value = rest[1:]
            while "'" not in value:
                following = next(lines, None)
                if following is None:
                    raise EnvFileError(f"invalid environment variable format at line {number}: the quote never ends")
                value += f"\n{following}"
            value, _, after = value.partition("'")
            if after.lstrip(_BLANK) and not after.lstrip(_BLANK).startswith("#"):
                raise EnvFileError(f"invalid environment variable format at line {number}: text after the quote")
        else:
            raise EnvFileError(f"invalid environment variable format at line {number}: want single quotes")
        if name == key:
            return value
    return ""
