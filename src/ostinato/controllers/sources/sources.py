"""Sources: enqueue the keys that a controller reconciles.

| source | enqueues keys |
|---|---|
| `KindSource(Widget, ForObject())` | for the events of a kind |
| `ChannelSource(channel)` | that a program puts into a channel |
| `CronSource("0 6 * * *", keys)` | on a schedule |
| `StartupSource(keys)` | once, at the start |

A source runs until it is cancelled. It calls `ready` when it has enqueued all initial keys; no reconcile runs before
all sources of a controller are ready. A source that raises stops the controller.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from logging import Logger
from typing import Protocol, TypeAlias

import msgspec

from ostinato.controllers.reasons import Cause
from ostinato.controllers.runnable import Dependencies

Add: TypeAlias = Callable[[Hashable, str, int, Cause | None], None]


class Sink(msgspec.Struct, frozen=True, kw_only=True):
    """The interface of a controller to its sources.

    - `add(key, reason, priority, cause)`: enqueue a key.
    - `ready()`: report that all initial keys are enqueued.
    - `sync_timeout`: seconds until `ready` must be called; None if the controller runs already and does not wait.
    """

    controller: str
    dependencies: Dependencies
    logger: Logger
    sync_timeout: float | None
    add: Add
    ready: Callable[[], None]


class Source(Protocol):
    def __str__(self) -> str:
        """Description for messages, such as `Widget of example.dev/v1`."""

    async def run(self, sink: Sink, /) -> None:
        """Enqueue keys until cancelled. Returns if no more keys will follow."""
