"""Informer indexes that several components share."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from ostinato.cache import IndexBy, Informer, by_field

NODE_NAME: Final[IndexBy] = by_field("spec.nodeName")
"""Index: Pods by spec.nodeName."""


def ensure_index(informer: Informer, index: IndexBy) -> None:
    """Add an index to an informer if it does not have it."""
    with suppress(ValueError):  # already added
        informer.add_index(index)
