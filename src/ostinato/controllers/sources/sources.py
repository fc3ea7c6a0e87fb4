"""Sources: where a controller learns what is to be reconciled.

| source | tells |
|---|---|
| `KindSource(Widget, ForObject())` | of the objects of a kind, and of what happens to them |
| `ChannelSource(channel)` | what somebody puts into a channel: a webhook, another system |
| `CronSource("0 6 * * *", keys)` | the same keys at certain times |
| `StartupSource(keys)` | keys once, at the beginning |

A source runs until it is cancelled, and says when it is ready: when it has told all that was there at the beginning.
No reconcile runs before all sources of a controller are. One that ends by an error ends the controller.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from logging import Logger
from typing import Protocol, TypeAlias

import msgspec

from ostinato.controllers.reasons import Cause
from ostinato.controllers.runnable import Surroundings

Add: TypeAlias = Callable[[Hashable, str, int, Cause | None], None]


class Sink(msgspec.Struct, frozen=True, kw_only=True):
    """What a controller gives to a source.

    - `add(key, reason, priority, cause)`: have a key reconciled.
    - `ready()`: all that was there at the beginning is told.
    - `sync_timeout`: seconds that the source has for that; None if nobody waits for it: the controller works already.
    """

    controller: str
    surroundings: Surroundings
    logger: Logger
    sync_timeout: float | None
    add: Add
    ready: Callable[[], None]


class Source(Protocol):
    def __str__(self) -> str:
        """What it is a source of, for messages: `Widgets of example.dev/v1`."""

    async def run(self, sink: Sink, /) -> None:
        """Tell until cancelled. Returning means that there will never be anything more to tell."""
