"""Hub: broadcasts the writes of a collection to its watchers, in order.

Watchers are grouped by scope (everything, a namespace, one object): a write costs nothing for watchers of other scopes.
A watcher that is too slow is closed, so that its client relists; no event is skipped.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ostinato.server.store.records import Event

_logger = logging.getLogger(__name__)

BACKLOG_EVENTS = 10_000  # maximum events in a watcher's backlog before it is closed
BACKLOG_BYTES = 64 * 1024 * 1024  # maximum bytes of the objects in a backlog


class Subscription:
    """The events that a watcher has not read yet."""

    def __init__(self, hub: Hub, scope: str, accepts: Callable[[Event], bool] | None) -> None:
        self._hub = hub
        self.scope = scope
        self._accepts = accepts  # filter: other events are dropped without waking the watcher
        self._events: list[Event] = []
        self._bytes = 0
        self._wakeup: asyncio.Future[None] | None = None
        self._interrupted = False
        self._send: Callable[[Event], bool] | None = None  # see `forward`
        self.closed = False  # no more events: the watcher was too slow, or the server is stopping

    def offer(self, event: Event, *, alone: bool) -> None:
        """Add an event, or forward it. `alone`: it is the only one of its commit; several are sent in one piece."""
        try:
            if self._accepts is not None and not self._accepts(event):
                return
            if alone and self._wakeup is not None and not self._events and self._send is not None and self._send(event):
                self._hub.sent += 1
                return
        except Exception:  # an error in a watcher must not stop the store
            _logger.exception("watch failed, closing it scope=%r", self.scope)
            self.close()
            return
        if len(self._events) >= BACKLOG_EVENTS or self._bytes > BACKLOG_BYTES:
            self.close()
            return
        self._events.append(event)
        self._bytes += event.length
        self._wake()

    def forward(self, send: Callable[[Event], bool]) -> None:
        """Hand a lone event to a function while the watcher waits, instead of waking it.

        A function that returns False, since it cannot send now, leaves the event to the watcher.
        """
        self._send = send

    def close(self) -> None:
        self.closed = True
        self._hub.unsubscribe(self)
        self._wake()

    def interrupt(self) -> None:
        """Wake the watcher without an event, now or on its next wait."""
        self._interrupted = True
        self._wake()

    def _wake(self) -> None:
        if self._wakeup is not None and not self._wakeup.done():
            self._wakeup.set_result(None)

    @property
    def waiting(self) -> int:
        """The number of events to take."""
        return len(self._events)

    def take(self) -> list[Event]:
        """The events since the last call, without waiting."""
        events, self._events = self._events, []
        self._bytes = 0
        self._hub.sent += len(events)
        return events

    async def wait(self) -> bool:
        """Wait for an event, for close, or for `interrupt`; return whether it was interrupted."""
        if not (self._events or self.closed or self._interrupted):
            self._wakeup = asyncio.get_running_loop().create_future()
            try:
                await self._wakeup
            finally:
                self._wakeup = None
        interrupted, self._interrupted = self._interrupted, False
        return interrupted


class Hub:
    def __init__(self) -> None:
        # By key prefix of their objects: "" for everything, "namespace/", or the key of one object.
        # Subscriptions of a scope are in the order of their arrival.
        self._scopes: dict[str, dict[Subscription, None]] = {"": {}}
        self._listeners: list[Callable[[Event], None]] = []
        self.sent = 0  # events taken by watchers
        self._closed = False

    def subscribe(self, scope: str = "", accepts: Callable[[Event], bool] | None = None) -> Subscription:
        """Subscribe to the events of a scope from now on, or to those that the filter accepts."""
        subscription = Subscription(self, scope, accepts)
        if self._closed:
            subscription.closed = True
        else:
            self._scopes.setdefault(scope, {})[subscription] = None
        return subscription

    def listen(self, listener: Callable[[Event], None]) -> None:
        """Call a part of the server for each event, before the watchers receive it."""
        self._listeners.append(listener)

    def notify(self, event: Event) -> None:
        """Call the listeners, but not the watchers."""
        for listener in self._listeners:
            try:
                listener(event)
            except Exception:  # an error in a listener must not stop the store
                _logger.exception("store listener failed key=%s", event.key)

    def watcher_count(self, scope: str, key: str) -> int:
        """The number of watchers whose filter a write of a key in a scope would call."""
        scopes = self._scopes
        if len(scopes) == 1:
            return len(scopes[""])
        return sum(len(scopes[each]) for each in dict.fromkeys(("", scope, key)) if each in scopes)

    def unsubscribe(self, subscription: Subscription) -> None:
        scope = self._scopes.get(subscription.scope)
        if scope is not None:
            scope.pop(subscription, None)
            if not scope and subscription.scope:
                del self._scopes[subscription.scope]

    def publish(self, event: Event, *, alone: bool = False) -> None:
        if self._listeners:
            self.notify(event)
        scopes, key = self._scopes, event.key
        for subscription in tuple(scopes[""]):
            subscription.offer(event, alone=alone)
        if len(scopes) > 1:
            for scope in (key[: key.find("/") + 1], key):
                if scope and scope in scopes:
                    for subscription in tuple(scopes[scope]):
                        subscription.offer(event, alone=alone)

    def close(self) -> None:
        """Close all watchers, and reject new ones."""
        self._closed = True
        self.end()

    def end(self) -> None:
        """Close all current watchers."""
        for scope in tuple(self._scopes.values()):
            for subscription in tuple(scope):
                subscription.close()

    def __len__(self) -> int:
        if len(self._scopes) == 1:
            return len(self._scopes[""])
        return sum(map(len, self._scopes.values()))
