"""What caches tell of themselves, under the names that client-go gives its metrics.

| metric | is |
|---|---|
| `informer_queued_items` | what came from the server and is not in the store yet |
| `informer_processing_latency_seconds` | how long a batch takes, from the FIFO into the store and to the handlers |
| `informer_store_resource_version` | the version of the store, its last 15 digits: a float holds no more |
| `ostinato_cache_objects` | how many objects the store has |

Labels are `name`, `group`, `version` and `resource`. What is the case now is computed when it is read.
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
    """Keeps what it is told. Called for every batch: be quick, and never raise."""

    def observe(self, name: str, value: float, labels: Mapping[str, str], /) -> None:
        """One more, that took so long."""


def version_number(version: str) -> float:
    """The last digits of a version, as many as a float holds exactly; 0 if it is none."""
    digits = version[-_EXACT_DIGITS:]
    return float(digits) if digits.isdecimal() else 0.0
