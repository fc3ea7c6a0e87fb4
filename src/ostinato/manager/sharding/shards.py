"""The shards of this replica, on the manager's loop.

- A reconcile begins only in a shard that this replica holds.
- A shard that is handed over is drained: no reconcile begins, running ones finish and may write until the end.
- A shard that is lost is closed: running reconciles are cancelled, and their writes are rejected by its fence.
- A shard that is gained enqueues all of its keys.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, NamedTuple

from ostinato.controllers.current import current_reconcile
from ostinato.controllers.sharding import Selects, ShardListener
from ostinato.manager.election.fence import Fence
from ostinato.manager.sharding.settings import Sharding

_logger = logging.getLogger("ostinato.manager")


class Term(NamedTuple):
    """One period in which this replica holds a shard. Compare by identity."""

    shard: int
    fence: Fence


class ReplicaShards:
    """The `Shards` of the controllers."""

    def __init__(self, options: Sharding) -> None:
        self._options = options
        self._held: dict[int, Term] = {}  # shards in which reconciles may begin
        self._terms: dict[int, Term] = {}  # the last term of each shard, whose fence applies to writes
        self._running: dict[int, set[asyncio.Task[None]]] = {}
        self._listeners: list[ShardListener] = []
        self._leaving: set[asyncio.Task[None]] = set()

    @property
    def held(self) -> frozenset[int]:
        return frozenset(self._held)

    # For controllers

    def owns(self, key: Hashable) -> bool:
        return self._options.shard_of(key) in self._held

    async def run(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, None]]) -> bool:
        term = self._held.get(self._options.shard_of(key))
        if term is None or not term.fence.is_open:
            return False
        running = self._running.setdefault(self._options.shard_of(key), set())
        task = asyncio.get_running_loop().create_task(work())
        running.add(task)
        try:
            await task
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is None or current.cancelling():
                raise
            _logger.warning("reconcile cancelled, its shard was lost object=%s", key)
        finally:
            running.discard(task)
        return True

    def add(self, listener: ShardListener) -> None:
        self._listeners.append(listener)

    def remove(self, listener: ShardListener) -> None:
        if listener in self._listeners:
            self._listeners.remove(listener)

    def fence_of(self, key: Hashable) -> Fence | None:
        """Return the fence of writes for a key; None if this replica has never held its shard."""
        term = self._terms.get(self._options.shard_of(key))
        return None if term is None else term.fence

    # For the election

    def gain(self, term: Term) -> None:
        self._held[term.shard] = self._terms[term.shard] = term
        for listener in [*self._listeners]:
            listener.gained(self._selects(term.shard))

    async def drain(self, term: Term) -> None:
        """Begin no reconcile in a shard, and wait until everything that runs in it has ended."""
        if self._held.get(term.shard) is term:
            del self._held[term.shard]
        running = self._running.get(term.shard)
        while running:
            await asyncio.wait([*running])
        await asyncio.gather(*(each.left(self._selects(term.shard)) for each in self._listeners))

    def lose(self, term: Term) -> None:
        """End everything in a shard: another replica may hold it."""
        if self._terms.get(term.shard) is not term:
            return
        self._held.pop(term.shard, None)
        for task in self._running.get(term.shard, ()):
            task.cancel()
        for listener in self._listeners:
            leaving = asyncio.get_running_loop().create_task(self._leave(listener, self._selects(term.shard)))
            self._leaving.add(leaving)
            leaving.add_done_callback(self._leaving.discard)

    async def _leave(self, listener: ShardListener, selects: Selects) -> None:
        try:
            await listener.left(selects)
        except Exception:
            _logger.exception("cannot stop the work of a lost shard")

    def _selects(self, shard: int) -> Selects:
        shard_of = self._options.shard_of
        return lambda key: shard_of(key) == shard


class ShardFence:
    """The fence of the shard of the current reconcile, for the transport of sharded controllers."""

    def __init__(self, shards: ReplicaShards) -> None:
        self._shards = shards

    @property
    def is_open(self) -> bool:
        fence = self._current()
        return fence is not None and fence.is_open

    @property
    def refusal(self) -> str:
        if current_reconcile() is None:
            return "not in a reconcile; write from a runnable with needs_leader_election=False"
        return "this replica does not hold the shard of the object"

    def deadline(self) -> float | None:
        fence = self._current()
        return None if fence is None else fence.deadline()

    def unconfirmed_write(self) -> None:
        fence = self._current()
        if fence is not None:
            fence.unconfirmed_write()

    def _current(self) -> Fence | None:
        reconcile = current_reconcile()
        return None if reconcile is None else self._shards.fence_of(reconcile.request)
