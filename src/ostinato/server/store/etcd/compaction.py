"""Compaction: one of the servers of an etcd drops its old history, every five minutes.

The servers agree as those of kube-apiserver do, and with them: each knows how often `compact_rev_key` was written and,
at the end of the interval, writes it if no other server has. The one that succeeds compacts to the revision of the
previous interval's end, so that history is kept for one to two intervals.
"""

from __future__ import annotations

import logging
from contextlib import suppress

from ostinato.etcd import Compacted, EtcdClient, EtcdError, RangeResult, compare, op
from ostinato.world import Clock

_logger = logging.getLogger(__name__)

_KEY = b"compact_rev_key"


class Compactor:
    def __init__(self, client: EtcdClient, clock: Clock, interval: float) -> None:
        self._client = client
        self._clock = clock
        self._interval = interval
        self._writes = 0  # the key's version: how often it was written
        self._revision = 0  # at the end of the previous interval

    async def run(self) -> None:
        while True:
            await self._clock.sleep(self._interval)
            try:
                await self.compact()
            except EtcdError as error:
                _logger.warning("etcd compaction failed, retrying retry_seconds=%g error=%s", self._interval, error)

    async def compact(self) -> None:
        """End an interval. Raises EtcdError."""
        result = await self._client.txn(
            [compare.version(_KEY, "=", self._writes)],
            [op.put(_KEY, str(self._revision).encode())],
            [op.range(_KEY)],
        )
        if result.succeeded:
            self._writes += 1
            if self._revision:
                with suppress(Compacted):  # by an operator
                    await self._client.compact(self._revision)
                _logger.info("etcd compacted revision=%d", self._revision)
        else:
            (found,) = result.results
            assert isinstance(found, RangeResult)
            self._writes = found.kvs[0].version if found.kvs else 0
        self._revision = result.revision
