"""Cache metrics, under client-go's names where it has them.

| metric | value |
|---|---|
| `informer_queued_items` | deltas in the FIFO |
| `informer_processing_latency_seconds` | time of a batch from the FIFO to the store and the handlers' queues |
| `informer_store_resource_version` | last 15 digits of the store's resourceVersion: a float holds no more |
| `ostinato_cache_objects` | objects in the store |

Labels: `name`, `group`, `version`, `resource`. Gauges are computed when they are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

QUEUED_ITEMS: Final = "informer_queued_items"
PROCESSING_LATENCY: Final = "informer_processing_latency_seconds"
STORE_VERSION: Final = "informer_store_resource_version"
OBJECTS: Final = "ostinato_cache_objects"

_EXACT_DIGITS: Final = 15


class CacheMetrics(Protocol):
    """Receives observations. Called for every batch: must be fast and never raise."""

    def observe(self, name: str, value: float, labels: Mapping[str, str], /) -> None:
        """Observe a value in a histogram."""


def version_number(version: str) -> float:
    """Return the last 15 digits of a resourceVersion; 0 if it is not a number."""
    digits = version[-_EXACT_DIGITS:]
    return float(digits) if digits.isdecimal() else 0.0
