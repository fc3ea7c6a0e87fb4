"""Compare the output that a page shows with what was printed.

- Ages, durations, times, ports, addresses, temporary paths, process ids, generated names may differ, and the numbers of
  lines in Python files.
- Runs of spaces are equal.
- `…` or `...` stands for any text; alone on a line, for any lines.
- What kubectl's watch logs when kubectl itself ends it is ignored: it does so in some runs.
"""

from __future__ import annotations

import re

_ELLIPSIS = ("…", "...")
_LOG_OF_A_WATCH = " reflector.go:"
_VOLATILE = (
    (r"https://127\.0\.0\.1:\d+", r"https://127\.0\.0\.1:\d+"),
    (r"\b\d+\.\d+\.\d+\.\d+(:\d+)?\b", r"\d+\.\d+\.\d+\.\d+(:\d+)?"),
    (r"/tmp/[\w./-]*", r"/\S+"),
    (r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?Z?", r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?Z?"),
    (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", r"[0-9a-f-]{36}"),
    (r"-[bcdf0-9][bcdfghjklmnpqrstvwxz0-9]{4,9}-[bcdfghjklmnpqrstvwxz0-9]{5}\b", r"-[a-z0-9]+-[a-z0-9]{5}"),
    (r"\b(\d+h)?(\d+m)?\d+(\.\d+)?\s?(ms|s)\b", r"(\d+h)?(\d+m)?\d*(\.\d+)?\s?(ms|s|m)"),
    (r"\.py:\d+\b", r"\.py:\d+"),
    (r"\s+", r"\s+"),
)
_ANY = re.compile("|".join(f"(?P<v{number}>{pattern})" for number, (pattern, _) in enumerate(_VOLATILE)) + r"|…|\.\.\.")


def _regex(line: str) -> str:
    """Return the regular expression of the lines that may be printed instead of this one."""
    made, at = "", 0
    for found in _ANY.finditer(line.rstrip()):
        made += re.escape(line[at : found.start()])
        made += r".*" if found.lastgroup is None else _VOLATILE[int(found.lastgroup[1:])][1]
        at = found.end()
    return made + re.escape(line[at:].rstrip())


def lines_match(shown: list[str], printed: list[str]) -> bool:
    if not shown:
        return not printed
    if shown[0].strip() in _ELLIPSIS:
        return any(lines_match(shown[1:], printed[n:]) for n in range(len(printed) + 1))
    return bool(printed) and _matches(shown[0], printed[0]) and lines_match(shown[1:], printed[1:])


def _matches(shown: str, printed: str) -> bool:
    return re.fullmatch(_regex(shown), printed.rstrip()) is not None


def ends_with(shown: list[str], printed: list[str]) -> bool:
    """Report whether the last shown line is among the printed ones: a program in the background is ready."""
    return any(_matches(shown[-1], line) for line in printed)


def same(shown: str, printed: str) -> bool:
    lines = [line for line in printed.strip("\n").splitlines() if _LOG_OF_A_WATCH not in line]
    return lines_match(shown.strip("\n").splitlines(), lines)
