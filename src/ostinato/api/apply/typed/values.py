"""JSON values in typed values: the absent value, and limits of nesting."""

from __future__ import annotations

from typing import Any, Final


class Absent:
    """The type of ABSENT: no value, as opposed to null."""

    __slots__ = ()


ABSENT: Final = Absent()
NESTED: Final = (dict, list)


def shallow(value: Any, levels: int = 8) -> bool:
    """Whether a value is nested at most this deep."""
    if isinstance(value, dict):
        value = list(value.values())
    return not isinstance(value, list) or (levels > 0 and all(shallow(inner, levels - 1) for inner in value))
