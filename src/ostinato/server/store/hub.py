"""The hub: hands every write of a collection to its watchers, in order.

A watcher that cannot keep up is closed, so that its client lists anew; no event is ever skipped.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ostinato.server.store.index import Event

BACKLOG = 10_000  # events that a watcher may be behind before it is closed


class Subscription:
    """The events that a watcher has not read yet."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._events: deque[Event] = deque()
        self._wakeup: asyncio.Future[None] | None = None
        self.closed = False  # no more events will come: the watcher was too slow, or the server stops

    def offer(self, event: Event) -> None:
        if len(self._events) >= BACKLOG:
            self.close()
            return
        self._events.append(event)
        self._wake()

    def close(self) -> None:
        self.closed = True
        self._hub.leave(self)
        self._wake()

    def _wake(self) -> None:
        if self._wakeup is not None and not self._wakeup.done():
            self._wakeup.set_result(None)

    def take(self) -> list[Event]:
        """What has come since the last call, without waiting."""
        events = list(self._events)
        self._events.clear()
        return events

    async def wait(self) -> None:
        """Wait until there is an event to take, or the subscription is closed."""
        if self._events or self.closed:
            return
        self._wakeup = asyncio.get_running_loop().create_future()
        try:
            await self._wakeup
        finally:
            self._wakeup = None


class Hub:
    def __init__(self) -> None:
        self._subscriptions: dict[Subscription, None] = {}  # in the order in which they came

    def subscribe(self) -> Subscription:
        subscription = Subscription(self)
        self._subscriptions[subscription] = None
        return subscription

    def leave(self, subscription: Subscription) -> None:
        self._subscriptions.pop(subscription, None)

    def publish(self, event: Event) -> None:
        for subscription in list(self._subscriptions):
            subscription.offer(event)

    def close(self) -> None:
        for subscription in list(self._subscriptions):
            subscription.close()

    def __len__(self) -> int:
        return len(self._subscriptions)
