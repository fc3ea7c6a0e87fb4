"""Channels: keys from outside of Kubernetes, for example from an HTTP endpoint.

    orders = Channel()
    ...watches_source(ChannelSource(orders))...
    orders.put(Request("default", "a"))

- Keys that are put before the first subscription are delivered to it.
- Every subscribed controller receives every key. Keys that it has not taken yet are held, each once.
- `close` ends the channel: subscribers receive the remaining keys, then no more.
- `put` is thread-safe; a reconciler that is a plain function may call it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable
from contextlib import suppress
from typing import Any

from ostinato.controllers.reasons import CHANNEL
from ostinato.controllers.sources.sources import Sink


class Channel:
    def __init__(self) -> None:
        self._early: dict[Hashable, int] = {}  # keys put before the first subscription, and their priorities
        self._subscriptions: set[_Subscription] = set()
        self._closed = False

    def put(self, key: Hashable, priority: int = 0) -> None:
        """Enqueue a key in every subscribed controller."""
        if self._closed:
            raise RuntimeError(f"put() of {key!r} into a closed channel")
        hash(key)
        if not self._subscriptions:
            self._early[key] = max(priority, self._early.get(key, priority))
        for each in tuple(self._subscriptions):
            each.call(each.add, key, priority)

    def close(self) -> None:
        """Close the channel. No effect if it is closed."""
        self._closed = True
        for each in tuple(self._subscriptions):
            each.call(each.end)

    @property
    def closed(self) -> bool:
        return self._closed

    def _subscribe(self) -> _Subscription:
        subscription = _Subscription()
        self._subscriptions.add(subscription)  # before taking the early keys: another thread may put meanwhile
        early, self._early = self._early, {}
        for key, priority in tuple(early.items()):
            subscription.add(key, priority)
        if self._closed:
            subscription.end()
        return subscription

    def _unsubscribe(self, subscription: _Subscription) -> None:
        self._subscriptions.discard(subscription)


class _Subscription:
    """The pending keys of one subscriber. Bound to the loop that created it; only `call` is thread-safe."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[Hashable, int] = {}
        self._ended = False
        self._changed = asyncio.Event()

    def call(self, method: Callable[..., None], *arguments: Any) -> None:
        """Call a method on the loop of the subscription: immediately, or threadsafe from another thread."""
        if _loop_of_this_thread() is self._loop:
            method(*arguments)
            return
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(method, *arguments)

    def add(self, key: Hashable, priority: int) -> None:
        self._waiting[key] = max(priority, self._waiting.get(key, priority))
        self._changed.set()

    def end(self) -> None:
        """No more keys follow."""
        self._ended = True
        self._changed.set()

    async def take(self) -> dict[Hashable, int]:
        """Wait for keys and return them with their priorities; {} if no more follow."""
        await self._changed.wait()
        if not self._ended:
            self._changed.clear()
        taken, self._waiting = self._waiting, {}
        return taken


def _loop_of_this_thread() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class ChannelSource:
    """Enqueues the keys of a channel."""

    def __init__(
        self,
        channel: Channel,
        *,
        keys: Callable[[Hashable], Iterable[Hashable]] | None = None,
        wanted: Callable[[Hashable], object] | None = None,
    ) -> None:
        """
        - `keys`: maps a value of the channel to keys. Defaults to the value itself.
        - `wanted`: predicate on a value. Defaults to None: all.
        """
        if not isinstance(channel, Channel):
            raise TypeError(f"ChannelSource() needs a Channel, got {channel!r}")
        self._channel = channel
        self._keys = keys
        self._wanted = wanted

    def __str__(self) -> str:
        return "a channel"

    async def run(self, sink: Sink) -> None:
        subscription = self._channel._subscribe()
        try:
            sink.ready()
            while taken := await subscription.take():
                for value, priority in taken.items():
                    self._enqueue(value, priority, sink)
        finally:
            self._channel._unsubscribe(subscription)

    def _enqueue(self, value: Hashable, priority: int, sink: Sink) -> None:
        try:
            if self._wanted is not None and not self._wanted(value):
                return
            for key in (value,) if self._keys is None else self._keys(value):
                sink.add(key, CHANNEL, priority, None)
        except Exception:
            sink.logger.exception(
                "mapping a channel value failed; not enqueued controller=%s value=%r", sink.controller, value
            )
