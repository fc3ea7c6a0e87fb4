"""Implementations of CEL functions, by overload name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ostinato.cel.libraries import (
    arithmetic,
    authorizer,
    lists,
    named_formats,
    network,
    quantities,
    strings,
    timestamps,
    urls,
)

IMPLEMENTATIONS: Final[Mapping[str, Callable[..., Any]]] = {
    **arithmetic.FUNCTIONS,
    **timestamps.FUNCTIONS,
    **strings.FUNCTIONS,
    **lists.FUNCTIONS,
    **network.FUNCTIONS,
    **quantities.FUNCTIONS,
    **urls.FUNCTIONS,
    **named_formats.FUNCTIONS,
    **authorizer.FUNCTIONS,
}

__all__ = ["IMPLEMENTATIONS"]
