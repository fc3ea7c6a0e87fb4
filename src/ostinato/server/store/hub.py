"""The hub: hands every write of a collection to its watchers, in order.

A watcher that cannot keep up is closed, so that its client lists anew; no event is ever skipped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ostinato.server.store.index import Event

BACKLOG_EVENTS = 10_000  # that a watcher may be behind before it is closed
BACKLOG_BYTES = 64 * 1024 * 1024  # of the objects that these events show


class Subscription:
    """The events that a watcher has not read yet."""

    def __init__(self, hub: Hub, concerns: Callable[[Event], bool] | None) -> None:
        self._hub = hub
        self._concerns = concerns  # events that do not are left out, without waking the watcher
        self._events: list[Event] = []
        self._bytes = 0
        self._wakeup: asyncio.Future[None] | None = None
        self.closed = False  # no more events will come: the watcher was too slow, or the server stops

    def offer(self, event: Event) -> None:
        if self._concerns is not None and not self._concerns(event):
            return
        if len(self._events) >= BACKLOG_EVENTS or self._bytes > BACKLOG_BYTES:
            self.close()
            return
        self._events.append(event)
        self._bytes += event.length
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
        events, self._events = self._events, []
        self._bytes = 0
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
        self._closed = False

    def subscribe(self, concerns: Callable[[Event], bool] | None = None) -> Subscription:
        """Every event from now on, or those that concern the watcher."""
        subscription = Subscription(self, concerns)
        if self._closed:
            subscription.closed = True
        else:
            self._subscriptions[subscription] = None
        return subscription

    def leave(self, subscription: Subscription) -> None:
        self._subscriptions.pop(subscription, None)

    def publish(self, event: Event) -> None:
        for subscription in tuple(self._subscriptions):
            subscription.offer(event)

    def close(self) -> None:
        """End every watch; no other begins."""
        self._closed = True
        for subscription in tuple(self._subscriptions):
            subscription.close()

    def __len__(self) -> int:
        return len(self._subscriptions)
