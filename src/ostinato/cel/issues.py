"""Issues: errors in the text of an expression with their position, in kube-apiserver's format.

ERROR: <input>:1:5: undefined field 'b'
 | self.b > 1
 | ....^
"""

from __future__ import annotations

from typing import Final

_MOST_SHOWN: Final = 100
_LONGEST_LINE: Final = 16384


class Issues:
    """A list of errors, printed in source order."""

    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")
        self._found: list[tuple[int, int, str]] = []
        self._count = 0

    def __bool__(self) -> bool:
        return bool(self._found)

    def add(self, at: int, message: str) -> None:
        self._count += 1
        if self._count <= _MOST_SHOWN:
            line, column = self._place(at)
            self._found.append((line, column, message))

    def _place(self, at: int) -> tuple[int, int]:
        for number, line in enumerate(self._lines, 1):
            if at <= len(line):
                return number, at
            at -= len(line) + 1
        return len(self._lines), len(self._lines[-1])

    def __str__(self) -> str:
        ordered = sorted(self._found, key=lambda issue: issue[:2])
        shown = [self._shown(*issue) for issue in ordered]
        if self._count > _MOST_SHOWN:
            shown.append(f"{self._count - _MOST_SHOWN} more errors were truncated")
        return "\n".join(shown)

    def _shown(self, number: int, column: int, message: str) -> str:
        text = f"ERROR: <input>:{number}:{column + 1}: {message}"
        line = self._lines[number - 1].replace("\t", " ")
        if len(line.encode()) > _LONGEST_LINE or not "".join(self._lines):
            return text
        dots = "".join("." if character.isascii() else "．" for character in line[: max(column, 0)])  # noqa: RUF001
        mark = "^" if column < 0 or line[column : column + 1].isascii() else "＾"  # noqa: RUF001
        return f"{text}\n | {line}\n | {dots}{mark}"
