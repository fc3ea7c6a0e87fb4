"""Resource versions: which state of a collection is the later one.

They are decimal numbers without a leading zero, of any length, and those of one collection only grow. So the longer of
two is the later, and of two that are as long the one that sorts later. Anything else cannot be compared: "" and "0" are
requests ("the latest", "any"), not states.
"""

from __future__ import annotations


def is_version(text: str) -> bool:
    """Whether it is a state that can be compared with others."""
    return text.isascii() and text.isdigit() and text[0] != "0"


def compare(left: str, right: str) -> int:
    """Below zero if `left` is the earlier, above if it is the later, zero if they are the same.

    A ValueError for what is no version.
    """
    for text in (left, right):
        if not is_version(text):
            raise ValueError(f"{text!r} is no resource version that can be compared")
    return (sort_key(left) > sort_key(right)) - (sort_key(left) < sort_key(right))


def sort_key(version: str) -> tuple[int, str]:
    """A sort key for versions."""
    return len(version), version


def reached(seen: str, wanted: str) -> bool:
    """Whether who has seen `seen` has seen `wanted` too. What cannot be compared is not reached, unless it is equal."""
    if seen == wanted:
        return True
    if len(seen) == len(wanted) and seen < wanted:
        return False
    return is_version(seen) and is_version(wanted) and len(seen) >= len(wanted)
