"""Derived state: what a server computes from stored objects, kept up to date with the writes of other servers.

- Served custom resources and the configuration of flow control are reconciled after each write, by whichever server.
- A server may be behind: another one has acknowledged a write that it has not seen. A request that it would refuse is
  decided again after it has caught up, so that a refusal never depends on outdated state.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from functools import partial

from ostinato.server.store.collection import Collection
from ostinato.server.store.index import Index
from ostinato.server.store.records import Event

Reconcile = Callable[[], Awaitable[None]]
_logger = logging.getLogger(__name__)

# Status codes that may depend on stored objects; others follow from the request alone.
_DEPENDENT = frozenset({401, 403, 404, 405, 409, 422, 500})


class DerivedState:
    """The reconciles of one server, by collection."""

    def __init__(self, index: Index, reconciles: Iterable[tuple[Collection, Reconcile]]) -> None:
        self._index = index
        self._due: dict[Reconcile, None] = {}
        self._reconciled = 0
        self._task: asyncio.Task[None] | None = None
        if index.is_shared:  # otherwise each write is reconciled by its own request
            for collection, reconcile in reconciles:
                collection.hub.listen(partial(self._note, reconcile))

    def _note(self, reconcile: Reconcile, _: Event) -> None:
        self._due[reconcile] = None
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run(), name="derived state")

    async def _run(self) -> None:
        try:
            while self._due:
                reconcile = next(iter(self._due))
                del self._due[reconcile]
                try:
                    await reconcile()
                except Exception:
                    _logger.exception("reconcile after a write of another server failed")
                self._reconciled += 1
        finally:
            self._task = None

    async def catch_up(self) -> None:
        """Wait until everything that any server has acknowledged is effective here."""
        if self._index.is_shared:
            await self._index.catch_up()
            if self._task is not None:
                await asyncio.shield(self._task)

    @property
    def is_reconciling(self) -> bool:
        """Whether writes that the index has are not effective yet."""
        return self._task is not None

    @property
    def age(self) -> int:
        """Grows with each change of the state that requests are decided on."""
        return self._index.version + self._reconciled

    async def was_behind(self, age: int, code: int) -> bool:
        """Whether an answer with a status code may be due to writes that were not effective here at an `age`."""
        if not self._index.is_shared or code not in _DEPENDENT:
            return False
        await self.catch_up()
        return self.age != age

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
