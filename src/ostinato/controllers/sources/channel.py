"""Channels: keys from outside of Kubernetes, such as a webhook's or another system's.

    orders = Channel()
    ...watches_source(ChannelSource(orders))...
    orders.put(Request("default", "a"))

- What is put in before a controller listens is told when it does.
- Every controller that listens hears everything, at its own pace. What it has not heard yet is held, each key once.
- `close` ends the channel: who listens hears the rest, and no more.
- `put` may be called from any thread, by a plain function that reconciles for instance.
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
        self._early: dict[Hashable, int] = {}  # put in before anybody listened, with their priorities
        self._ears: set[_Ear] = set()
        self._closed = False

    def put(self, key: Hashable, priority: int = 0) -> None:
        """Have a key reconciled by all who listen."""
        if self._closed:
            raise RuntimeError(f"{key!r} was put into a channel that is closed")
        hash(key)
        if not self._ears:
            self._early[key] = max(priority, self._early.get(key, priority))
        for ear in tuple(self._ears):
            ear.call(ear.tell, key, priority)

    def close(self) -> None:
        """Nothing more will come. Harmless when it is closed."""
        self._closed = True
        for ear in tuple(self._ears):
            ear.call(ear.end)

    @property
    def closed(self) -> bool:
        return self._closed

    def _listen(self) -> _Ear:
        ear = _Ear()
        self._ears.add(ear)  # first: another thread tells it what it puts in from now on, early or not
        early, self._early = self._early, {}
        for key, priority in tuple(early.items()):
            ear.tell(key, priority)
        if self._closed:
            ear.end()
        return ear

    def _leave(self, ear: _Ear) -> None:
        self._ears.discard(ear)


class _Ear:
    """One who listens. It belongs to the loop that it was made on; `call` is for everybody."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[Hashable, int] = {}
        self._ended = False
        self._news = asyncio.Event()

    def call(self, method: Callable[..., None], *arguments: Any) -> None:
        """Call a method of it: now, or on its loop soon, if that is another thread's."""
        if _loop_of_this_thread() is self._loop:
            method(*arguments)
            return
        with suppress(RuntimeError):  # the loop is closed, and nobody listens any more
            self._loop.call_soon_threadsafe(method, *arguments)

    def tell(self, key: Hashable, priority: int) -> None:
        self._waiting[key] = max(priority, self._waiting.get(key, priority))
        self._news.set()

    def end(self) -> None:
        """All has been told."""
        self._ended = True
        self._news.set()

    async def hear(self) -> dict[Hashable, int]:
        """What was put in since the last time; {} if nothing more comes."""
        await self._news.wait()
        if not self._ended:
            self._news.clear()
        heard, self._waiting = self._waiting, {}
        return heard


def _loop_of_this_thread() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class ChannelSource:
    """What is put into a channel; `keys` makes of it the keys to reconcile. Defaults to what was put in."""

    def __init__(
        self,
        channel: Channel,
        *,
        keys: Callable[[Hashable], Iterable[Hashable]] | None = None,
        wanted: Callable[[Hashable], object] | None = None,
    ) -> None:
        if not isinstance(channel, Channel):
            raise TypeError(f"a channel is needed, got {channel!r}")
        self._channel = channel
        self._keys = keys
        self._wanted = wanted

    def __str__(self) -> str:
        return "a channel"

    async def run(self, sink: Sink) -> None:
        ear = self._channel._listen()
        try:
            sink.ready()
            while heard := await ear.hear():
                for thing, priority in heard.items():
                    self._tell(thing, priority, sink)
        finally:
            self._channel._leave(ear)

    def _tell(self, thing: Hashable, priority: int, sink: Sink) -> None:
        try:
            if self._wanted is not None and not self._wanted(thing):
                return
            for key in (thing,) if self._keys is None else self._keys(thing):
                sink.add(key, CHANNEL, priority, None)
        except Exception:  # whatever the user's functions do
            sink.logger.exception("controller %s: %r from a channel is lost", sink.controller, thing)
