"""The hub: hands every write of a collection to the watchers that it concerns, in order.

Watchers are kept by the scope that they watch (everything, a namespace, one object), so that a write costs nothing for
those of other scopes. A watcher that cannot keep up is closed, so that its client lists anew; no event is ever skipped.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ostinato.server.store.index import Event

_logger = logging.getLogger(__name__)

BACKLOG_EVENTS = 10_000  # that a watcher may be behind before it is closed
BACKLOG_BYTES = 64 * 1024 * 1024  # of the objects that these events show


class Subscription:
    """The events that a watcher has not read yet."""

    def __init__(self, hub: Hub, scope: str, concerns: Callable[[Event], bool] | None) -> None:
        self._hub = hub
        self.scope = scope
        self._concerns = concerns  # events that do not are left out, without waking the watcher
        self._events: list[Event] = []
        self._bytes = 0
        self._wakeup: asyncio.Future[None] | None = None
        self._rung = False
        self.closed = False  # no more events will come: the watcher was too slow, or the server stops

    def offer(self, event: Event) -> None:
        try:
            if self._concerns is not None and not self._concerns(event):
                return
        except Exception:  # a watcher's fault must not stop the store
            _logger.exception("a watcher of %r cannot be asked", self.scope)
            self.close()
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

    def ring(self) -> None:
        """Wake the watcher, now or when it waits the next time, though there is no event."""
        self._rung = True
        self._wake()

    def _wake(self) -> None:
        if self._wakeup is not None and not self._wakeup.done():
            self._wakeup.set_result(None)

    def take(self) -> list[Event]:
        """What has come since the last call, without waiting."""
        events, self._events = self._events, []
        self._bytes = 0
        self._hub.sent += len(events)
        return events

    async def wait(self) -> bool:
        """Wait until there is an event to take, or the subscription is closed, or it rings: this is what it says."""
        if not (self._events or self.closed or self._rung):
            self._wakeup = asyncio.get_running_loop().create_future()
            try:
                await self._wakeup
            finally:
                self._wakeup = None
        rung, self._rung = self._rung, False
        return rung


class Hub:
    def __init__(self) -> None:
        # By what the keys of their objects begin with: "" everything, "namespace/", or the whole key of one object.
        # Those of a scope are in the order in which they came.
        self._scopes: dict[str, dict[Subscription, None]] = {"": {}}
        self.sent = 0  # events that watchers have taken
        self._closed = False

    def subscribe(self, scope: str = "", concerns: Callable[[Event], bool] | None = None) -> Subscription:
        """Every event of a scope from now on, or those of them that concern the watcher."""
        subscription = Subscription(self, scope, concerns)
        if self._closed:
            subscription.closed = True
        else:
            self._scopes.setdefault(scope, {})[subscription] = None
        return subscription

    def interested(self, scope: str, key: str) -> int:
        """How many would be asked about a write of a key in a scope."""
        scopes = self._scopes
        if len(scopes) == 1:
            return len(scopes[""])
        return sum(len(scopes[each]) for each in dict.fromkeys(("", scope, key)) if each in scopes)

    def leave(self, subscription: Subscription) -> None:
        scope = self._scopes.get(subscription.scope)
        if scope is not None:
            scope.pop(subscription, None)
            if not scope and subscription.scope:
                del self._scopes[subscription.scope]

    def publish(self, event: Event) -> None:
        scopes, key = self._scopes, event.key
        for subscription in tuple(scopes[""]):
            subscription.offer(event)
        if len(scopes) > 1:
            for scope in (key[: key.find("/") + 1], key):
                if scope and scope in scopes:
                    for subscription in tuple(scopes[scope]):
                        subscription.offer(event)

    def close(self) -> None:
        """End every watch; no other begins."""
        self._closed = True
        self.end()

    def end(self) -> None:
        """End every watch there is now."""
        for scope in tuple(self._scopes.values()):
            for subscription in tuple(scope):
                subscription.close()

    def __len__(self) -> int:
        if len(self._scopes) == 1:
            return len(self._scopes[""])
        return sum(map(len, self._scopes.values()))
