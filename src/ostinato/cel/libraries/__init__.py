"""Implementations of CEL functions, by overload name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ostinato.cel.libraries import (
    amounts,
    arithmetic,
    authorizer,
    lists,
    moments,
    named_formats,
    network,
    texts,
    urls,
)

IMPLEMENTATIONS: Final[Mapping[str, Callable[..., Any]]] = {
    **arithmetic.FUNCTIONS,
    **moments.FUNCTIONS,
    **texts.FUNCTIONS,
    **lists.FUNCTIONS,
    **network.FUNCTIONS,
    **amounts.FUNCTIONS,
    **urls.FUNCTIONS,
    **named_formats.FUNCTIONS,
    **authorizer.FUNCTIONS,
}

__all__ = ["IMPLEMENTATIONS"]
