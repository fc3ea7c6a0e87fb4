"""The patterns of `.Files.Glob`: github.com/gobwas/glob with the separator `/`."""

from __future__ import annotations

import re
from functools import lru_cache


def glob_match(pattern: str, name: str) -> bool:
    """Whether a pattern matches a path: `*` and `?` within a part, `**` across parts, `[a-z]`, `[!a]`, `{a,b}`, `\\`.

    A malformed pattern matches everything, as in Helm.
    """
    compiled = _compiled(pattern)
    return compiled is None or compiled.fullmatch(name) is not None


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str] | None:
    made: list[str] = []
    at = depth = 0
    while at < len(pattern):
        c = pattern[at]
        at += 1
        match c:
            case "*":
                across = pattern.startswith("*", at)
                while pattern.startswith("*", at):
                    at += 1
                made.append("(?>.*)" if across and at == len(pattern) and not depth else ".*" if across else "[^/]*")
            case "?":
                made.append("[^/]")
            case "[":
                end = pattern.find("]", at + 2 if pattern[at : at + 1] == "!" else at + 1)
                if end < 0:
                    return None
                inner = pattern[at:end]
                negated = inner.startswith("!")
                body = inner[negated:]
                ranged = re.fullmatch(r"(.)-(.)", body, re.DOTALL)
                if ranged and ranged[1] > ranged[2]:
                    return None
                text = f"{re.escape(ranged[1])}-{re.escape(ranged[2])}" if ranged else re.escape(body)
                made.append(f"[{'^' if negated else ''}{text}]")
                at = end + 1
            case "{":
                depth += 1
                made.append("(?:")
            case "}" if depth:
                depth -= 1
                made.append(")")
            case "," if depth:
                made.append("|")
            case "\\":
                if at == len(pattern):
                    return None
                made.append(re.escape(pattern[at]))
                at += 1
            case _:
                made.append(re.escape(c))
    return None if depth else re.compile("".join(made), re.DOTALL)
