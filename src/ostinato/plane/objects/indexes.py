"""Indexes that several parts of the plane look things up by."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from ostinato.cache import IndexBy, Informer, by_field

NODE_NAME: Final[IndexBy] = by_field("spec.nodeName")
"""Pods by the node that they are bound to."""


def ensure_index(informer: Informer, index: IndexBy) -> None:
    """Have an informer keep an index, whoever else asks for the same."""
    with suppress(ValueError):  # it is kept already
        informer.add_index(index)
