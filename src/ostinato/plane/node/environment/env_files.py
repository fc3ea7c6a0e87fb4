"""Files of variables in volumes: `NAME='value'` lines, a small and strict part of what shells read.

Values stand in single quotes, may go on over several lines, and are taken as they are. Comments begin with `#`.
"""

from __future__ import annotations

from typing import Final

LARGEST: Final = 64 * 1024  # bytes of a file
_BLANK: Final = " \t"


class EnvFileError(ValueError):
    """A file that cannot be read; the message says why, and names the line."""


def value_in(content: bytes, key: str) -> str:
    """The first value of a name; empty if it has none. What comes after it is not looked at."""
    lines = iter(content.decode(errors="replace").split("\n"))
    for number, line in enumerate(lines, 1):
        text = line.lstrip(_BLANK)
        if not text or text.startswith("#"):
            continue
        name, equals, rest = text.partition("=")
        if not equals or not name or name != name.rstrip(_BLANK):
            raise EnvFileError(f"invalid environment variable format at line {number}: want NAME='value'")
        if rest.startswith(tuple(_BLANK)) or not rest:
            value = ""  # as a shell has it: what follows the blank is no part of it
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
