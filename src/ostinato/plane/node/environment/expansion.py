"""Expansion of variable references `$(NAME)` in commands and values; `$$` is a dollar."""

from __future__ import annotations

from collections.abc import Mapping


def expand(text: str, variables: Mapping[str, str], missing: list[str] | None = None) -> str:
    """Replace known references; unknown ones stay, and are added to `missing`."""
    if "$" not in text:
        return text
    out = []
    at = 0
    while (dollar := text.find("$", at)) >= 0 and dollar + 1 < len(text):
        out.append(text[at:dollar])
        following = text[dollar + 1]
        close = text.find(")", dollar) if following == "(" else -1
        if following == "$":
            out.append("$")
            at = dollar + 2
        elif close >= 0:
            name = text[dollar + 2 : close]
            if name in variables:
                out.append(variables[name])
            else:
                out.append(f"$({name})")
                if missing is not None:
                    missing.append(name)
            at = close + 1
        elif following == "(":
            out.append("$(")
            at = dollar + 2
        else:
            out.append("$" + following)
            at = dollar + 2
    out.append(text[at:])
    return "".join(out)
