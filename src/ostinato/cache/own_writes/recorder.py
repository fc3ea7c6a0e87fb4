"""Own writes: what was written in a stretch of code, and whether the caches have seen it.

    with own_writes() as writes:
        await reconcile(request)
    ...
    await writes.wait_seen(timeout=10)      # before the next reconcile of the same key

A reconcile that runs before its last writes are in the cache decides on what was there before them. So whoever runs it
keeps the writes of each run and lets the next one wait for them. Tasks that are started in the block count too.

A write that got no answer may have been done, and under which version nobody knows. The caches then get a moment in
which its event would come: who creates what it does not find would otherwise create it twice.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Final

import msgspec

from ostinato.api import access
from ostinato.api.access import AnyObject
from ostinato.api.gvk import GroupVersionKind, NamespacedName
from ostinato.cache.own_writes.expectations import Expectation, wait_for
from ostinato.world import Clock

_recording: ContextVar[OwnWrites | None] = ContextVar("ostinato.cache.own_writes.recorder", default=None)


UNANSWERED_DELAY: Final = (
    1.0  # seconds; an event takes a few thousandths, but a connection that broke is made anew first
)


class OwnWrite(msgspec.Struct, frozen=True):
    """One write: the object as the server answered with it, and which one it is."""

    gvk: GroupVersionKind
    key: NamespacedName
    resource_version: str
    instance: AnyObject

    @classmethod
    def of(cls, instance: AnyObject) -> OwnWrite:
        return cls(access.gvk(instance), access.key(instance), access.resource_version(instance), instance)


class OwnWrites:
    def __init__(self, on_write: Callable[[OwnWrite], object] | None = None) -> None:
        """`on_write` is called with each write. Defaults to nobody."""
        self.on_write = on_write
        self._expectations: list[Expectation] = []
        self._clock: Clock | None = None  # on which they are waited for; known when there are any
        self._until = 0.0  # when those that got no answer count as seen

    def add(self, expectation: Expectation, clock: Clock) -> None:
        if not expectation.satisfied:
            self._expectations.append(expectation)
            self._clock = clock

    def unanswered(self, clock: Clock) -> None:
        """A write got no answer, and may have been done."""
        self._clock = clock
        self._until = clock.monotonic() + UNANSWERED_DELAY

    @property
    def all_seen(self) -> bool:
        for expectation in self._expectations:
            if not expectation.satisfied:
                return False
        return self._clock is None or self._clock.monotonic() >= self._until

    async def wait_seen(self, timeout: float) -> None:  # noqa: ASYNC109 - the error says what was waited for
        """Return when the caches have seen all of them; `StaleCache` after `timeout` seconds."""
        if self._clock is not None and not self.all_seen:
            await wait_for(self._expectations, timeout, self._clock)
            await self._clock.sleep(self._until - self._clock.monotonic())


class own_writes:  # noqa: N801 - it is used like a function: `with own_writes() as writes:`
    """Record the writes of the block that go through cached clients; `on_write` is called with each."""

    __slots__ = ("_token", "_writes")

    def __init__(self, on_write: Callable[[OwnWrite], object] | None = None) -> None:
        self._writes = OwnWrites(on_write)

    def __enter__(self) -> OwnWrites:
        self._token = _recording.set(self._writes)
        return self._writes

    def __exit__(self, *_: object) -> None:
        _recording.reset(self._token)
        self._writes.on_write = None  # who waits for the writes does not hold what was told


def current_own_writes() -> OwnWrites | None:
    """The writes of the block that is running, if there is one."""
    return _recording.get()
