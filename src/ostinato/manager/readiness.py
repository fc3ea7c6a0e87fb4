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

    def __init__(self, caches: Callable[[], Awaitable[object]], expected: Callable[[], Iterable[Runnable]]) -> None:
        """
        - `caches`: raises unless the started caches have synced.
        - `expected`: returns the runnables that run, or are about to start.
        """
        self._caches = caches
        self._expected = expected
        self._passed = False

    async def check(self) -> None:
        """Raise until the caches of all expected controllers have synced."""
        if self._passed:
            return
        await self._caches()
        late = [each.name for each in self._expected() if not getattr(each, "has_synced", True)]
        if late:
            raise RuntimeError(f"controllers not synced: {', '.join(sorted(late))}")
        self._passed = True


def converts(runnable: Runnable) -> bool:
    """Return whether a runnable converts objects of CustomResourceDefinitions."""
    return bool(getattr(runnable, "definitions", ()))
