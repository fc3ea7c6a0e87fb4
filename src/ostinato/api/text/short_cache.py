"""Cache for functions of text that clients send.

A plain `lru_cache` would keep texts of any length: a thousand of them may be gigabytes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

R = TypeVar("R")

LONGEST = 256  # characters


def short_cache(maxsize: int) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Cache results as `lru_cache` does, unless a text is longer than `LONGEST`: then the function is called."""

    def decorate(function: Callable[..., R]) -> Callable[..., R]:
        cached = lru_cache(maxsize)(function)

        @wraps(function)
        def call(*texts: str) -> R:
            for text in texts:
                if len(text) > LONGEST:
                    return function(*texts)
            return cached(*texts)

        return call

    return decorate
