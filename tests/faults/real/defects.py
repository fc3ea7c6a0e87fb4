"""Deliberate defects of a server process, to show that rounds with real faults find them: `OSTINATO_DEFECT=NAME`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from ostinato.server.store.etcd.freshness import Freshness, Reader
from ostinato.server.store.hub import Hub
from ostinato.server.store.log_sqlite import SQLiteLog
from ostinato.server.store.records import Event, Write

VARIABLE = "OSTINATO_DEFECT"


def _acknowledge_before_commit() -> None:
    """A batch is answered before it is written; it is written soon after, in order."""
    pending: list[asyncio.Task[None]] = []

    async def hasty(self: SQLiteLog, writes: Sequence[Write]) -> None:
        before = pending[-1] if pending else None

        async def later() -> None:
            if before is not None:
                with suppress(Exception):
                    await before
            await asyncio.sleep(0.005)
            await self._executor.run(self._append, writes)

        pending[:] = [asyncio.get_running_loop().create_task(later())]

    SQLiteLog.append = hasty  # type: ignore[method-assign]


def _reuse_a_version() -> None:
    """After a start, the last resourceVersions are given out again."""
    load = SQLiteLog.load

    def forgetful(self: SQLiteLog) -> tuple[int, Iterator[tuple[str, str, int, bytes]]]:
        version, objects = load(self)
        return max(1, version - 3), objects

    SQLiteLog.load = forgetful  # type: ignore[method-assign]


def _drop_one_event() -> None:
    """One of fifty events reaches no watcher."""
    publish = Hub.publish
    count = 0

    def forgetting(self: Hub, event: Event, *, alone: bool = False) -> None:
        nonlocal count
        count += 1
        if count % 50:
            publish(self, event, alone=alone)

    Hub.publish = forgetting  # type: ignore[method-assign]


def _stale_read() -> None:
    """Reads do not wait for what other servers have acknowledged."""

    def ready(self: Any, reader: Reader) -> None:
        asyncio.get_running_loop().call_soon(reader, None)

    Freshness.join = ready  # type: ignore[method-assign]


DEFECTS: dict[str, Callable[[], None]] = {
    "acknowledge-before-commit": _acknowledge_before_commit,
    "reuse-a-version": _reuse_a_version,
    "drop-one-event": _drop_one_event,
    "stale-read": _stale_read,
}
