"""Informer indexes that several components share."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from ostinato.cache import Entry, IndexBy, Informer, by_field
from ostinato.plane.objects.pod_state import FINISHED_PHASES

NODE_NAME: Final[IndexBy] = by_field("spec.nodeName")
"""Index: Pods by spec.nodeName."""

_PHASE: Final = by_field("status.phase")


def _finished(entry: Entry) -> str | None:
    phase = _PHASE.function(entry)
    return phase if isinstance(phase, str) and phase in FINISHED_PHASES else None


FINISHED: Final = IndexBy("finished", _finished, field=_PHASE.field)
"""Index: finished Pods by status.phase."""


def ensure_index(informer: Informer, index: IndexBy) -> None:
    """Add an index to an informer if it does not have it."""
    with suppress(ValueError):  # already added
        informer.add_index(index)
