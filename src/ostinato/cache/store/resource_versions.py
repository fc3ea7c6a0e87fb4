"""Comparison of resourceVersions.

They are decimal numbers without a leading zero, of any length, and increase within a collection: the longer of two is
the later one, and of two of equal length the one that sorts later. Anything else is not comparable: "" and "0" are
requests ("most recent", "any"), not states.
"""

from __future__ import annotations


def is_version(text: str) -> bool:
    """Whether the text is a comparable resourceVersion."""
    return text.isascii() and text.isdigit() and text[0] != "0"


def compare(left: str, right: str) -> int:
    """Return a negative number if `left` is earlier, a positive one if it is later, 0 if both are equal.

    Raises ValueError if one is not comparable.
    """
    for text in (left, right):
        if not is_version(text):
            raise ValueError(f"{text!r} is not a comparable resourceVersion")
    return (sort_key(left) > sort_key(right)) - (sort_key(left) < sort_key(right))


def sort_key(version: str) -> tuple[int, str]:
    """Return the sort key of a comparable resourceVersion."""
    return len(version), version


def reached(seen: str, wanted: str) -> bool:
    """Whether a store at `seen` includes `wanted`. Those that are not comparable must be equal."""
    if seen == wanted:
        return True
    if len(seen) == len(wanted) and seen < wanted:
        return False
    return is_version(seen) and is_version(wanted) and len(seen) >= len(wanted)
