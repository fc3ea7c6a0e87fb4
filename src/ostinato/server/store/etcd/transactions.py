"""Transactions: writes that etcd makes only if the object is in the state that the writer knows."""

from __future__ import annotations

from typing import NamedTuple

from ostinato.api.errors import Unknown
from ostinato.etcd import (
    DeadlineExceeded,
    EtcdClient,
    EtcdError,
    LeaseNotFound,
    NoSpace,
    Op,
    RangeResult,
    RequestTooLarge,
    compare,
    op,
)
from ostinato.server.store.etcd.leases import Leases
from ostinato.server.store.records import OutcomeUnknown, StoreFailed, StoreFull
from ostinato.world import Clock

WRITE_SECONDS = 30.0  # that a writer waits for etcd


class Changed(NamedTuple):
    """The object was in another state."""

    version: int  # a revision at which it was


class Transactions:
    def __init__(self, client: EtcdClient, clock: Clock) -> None:
        self._client = client
        self._leases = Leases(client, clock)
        self.is_full = False  # the last failure was for lack of space

    async def put(self, key: bytes, value: bytes, expected: int, ttl: float = 0.0) -> int | Changed:
        """Write an object whose mod_revision is `expected` (0: it does not exist). Returns the revision.

        `ttl`: seconds after which etcd deletes it. Raises StoreFailed if nothing was written, OutcomeUnknown if that
        is not certain.
        """
        if not ttl:
            return await self._commit(key, expected, op.put(key, value))
        try:
            lease = await self._leases.lease(ttl)
            try:
                return await self._commit(key, expected, op.put(key, value, lease=lease))
            except LeaseNotFound:  # revoked, or expired while this process was stopped
                self._leases.forget(lease)
                lease = await self._leases.lease(ttl)
                return await self._commit(key, expected, op.put(key, value, lease=lease))
        except EtcdError as error:
            raise self._failed(error) from error

    async def delete(self, key: bytes, expected: int) -> int | Changed:
        return await self._commit(key, expected, op.delete(key))

    async def _commit(self, key: bytes, expected: int, operation: Op) -> int | Changed:
        try:
            result = await self._client.txn(
                [compare.mod_revision(key, "=", expected)], [operation], [op.range(key)], within=WRITE_SECONDS
            )
        except LeaseNotFound:
            raise
        except RequestTooLarge as error:
            raise Unknown.of(str(error)) from error
        except EtcdError as error:
            raise self._failed(error) from error
        if result.succeeded:
            return result.revision
        (found,) = result.results
        assert isinstance(found, RangeResult)
        return Changed(found.kvs[0].mod_revision if found.kvs else result.revision)

    def _failed(self, error: EtcdError) -> StoreFailed:
        self.is_full = isinstance(error, NoSpace)
        if self.is_full:
            return StoreFull(str(error))
        if error.may_have_happened:
            return OutcomeUnknown(str(error), timed_out=isinstance(error, DeadlineExceeded))
        return StoreFailed(f"the store cannot write: {error}")
