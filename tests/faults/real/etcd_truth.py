"""The writes of a run as etcd has them: a watch of the workload's keys, from before the first to after the last."""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress

from ostinato.etcd import Compacted, EtcdClient, EtcdError, Event, prefix_end
from tests.faults.history.records import History

_PREFIX = b"/registry/configmaps/"
_VALUE = re.compile(rb'(?:\n\x05value\x12.|"value":")(\d+)', re.DOTALL)  # protobuf or JSON


class EtcdTruth:
    """Follows etcd. `revision`: everything up to it is in the history's commits."""

    def __init__(self, client: EtcdClient, history: History, keys: list[str]) -> None:
        self._client = client
        self._history = history
        self._keys = frozenset(keys)
        self.revision = 0
        history.is_exact = True

    async def start(self) -> None:
        self.revision = await self._client.revision()
        self._task = asyncio.create_task(self._follow(), name="truth")

    async def _follow(self) -> None:
        while True:
            with suppress(EtcdError):
                async with self._client.watch_stream() as stream:
                    watch = stream.watch(_PREFIX, prefix_end(_PREFIX), start_revision=self.revision + 1)
                    try:
                        async for batch in watch:
                            for event in batch.events:
                                self._take(event)
                                self.revision = max(self.revision, event.kv.mod_revision)
                    except Compacted as compacted:  # the writes between are known from the clients alone
                        self._history.is_exact = False
                        self.revision = compacted.revision
            await asyncio.sleep(0.1)

    def _take(self, event: Event) -> None:
        key = event.kv.key.removeprefix(_PREFIX).decode()
        if key in self._keys:
            found = None if event.is_delete else _VALUE.search(event.kv.value)
            self._history.commits[event.kv.mod_revision] = (key, int(found[1]) if found else 0)

    async def finish(self, revision: int) -> None:
        """Wait until the writes up to a revision are known."""
        async with asyncio.timeout(60):
            while self.revision < revision:  # noqa: ASYNC110 - the end of a round
                await asyncio.sleep(0.02)
        await self.close()

    async def close(self) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
