"""Readiness of a manager: whether its controllers have synced their caches.

- `/readyz` has the check `caches` by default. It fails until the caches have synced, and then always passes: a cache
  that starts later does not remove the Pod from its Services.
- Controllers that need leadership are not waited for while another process leads, so that a rolling update proceeds.
- There is no such check if webhooks of the manager convert objects: the initial lists may need them, and a Service does
  not route to a Pod that is not ready.
- `/healthz` has no such check: a restart does not help a slow server.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from ostinato.controllers.runnable import Runnable

CACHES: Final = "caches"


class InitialSync:
    """The check `caches`."""

    def __init__(
        self,
        has_started: Callable[[], bool],
        expected: Callable[[], Iterable[Runnable]],
        caches: Callable[[], Awaitable[object]],
    ) -> None:
        """
        - `has_started`: whether the manager has synced its own caches and starts the runnables.
        - `expected`: returns the runnables that run, or are about to start.
        - `caches`: raises for started caches that have not synced, with their kinds and the cause.
        """
        self._has_started = has_started
        self._expected = expected
        self._caches = caches
        self._passed = False

    async def check(self) -> None:
        """Raise until the caches of all expected controllers have synced, except those of optional kinds."""
        if self._passed:
            return
        late = [each.name for each in self._expected() if not getattr(each, "has_synced", True)]
        if self._has_started() and not late:
            self._passed = True
            return
        await self._caches()
        raise RuntimeError(f"not synced: {', '.join(sorted(late))}" if late else "the manager is starting")


def converts(runnable: Runnable) -> bool:
    """Return whether a runnable converts objects of CustomResourceDefinitions."""
    return bool(getattr(runnable, "definitions", ()))
