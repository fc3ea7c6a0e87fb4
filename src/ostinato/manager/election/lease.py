"""The lease: who leads, written down in one object of the cluster that all candidates read.

A `LeaseLock` reads and writes it. A write is guarded by the version that was last read or written: of two candidates
that write at the same time, one fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import msgspec

from ostinato.api.meta import ObjectMeta
from ostinato.api.time import MicroTime
from ostinato.client.client import Client
from ostinato.kinds.coordination_v1 import Lease, LeaseSpec


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What a lease says. Times are those of the holder's clock: others only see whether they change."""

    holder: str = ""  # "" when it was released
    seconds: int = 0  # how long it is valid
    acquired: datetime | None = None
    renewed: datetime | None = None
    transitions: int = 0  # how often the holder has changed

    @staticmethod
    def of(spec: LeaseSpec) -> Record:
        return Record(
            holder=spec.holder_identity or "",
            seconds=spec.lease_duration_seconds or 0,
            acquired=spec.acquire_time,
            renewed=spec.renew_time,
            transitions=spec.lease_transitions or 0,
        )

    def spec(self) -> LeaseSpec:
        return LeaseSpec(
            holder_identity=self.holder,
            lease_duration_seconds=self.seconds,
            acquire_time=None if self.acquired is None else MicroTime.of(self.acquired),
            renew_time=None if self.renewed is None else MicroTime.of(self.renewed),
            lease_transitions=self.transitions,
        )


class LeaseLock:
    def __init__(
        self,
        client: Client,
        namespace: str,
        name: str,
        *,
        labels: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> None:
        """`labels` are put on the lease with each write; `timeout` is how long one request may take."""
        self.namespace = namespace
        self.name = name
        self._client = client
        self._labels = dict(labels or {})
        self._timeout = timeout
        self._lease: Lease | None = None  # as last read or written

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def reference(self) -> Lease:
        """The lease as something that events can be about."""
        if self._lease is not None:
            return self._lease
        return Lease(metadata=ObjectMeta(namespace=self.namespace, name=self.name))

    async def read(self) -> Record:
        """NotFound if there is no lease."""
        lease = await self._client.get(Lease, self.name, namespace=self.namespace, timeout=self._timeout)
        self._lease = lease
        return Record.of(lease.spec)

    async def create(self, record: Record) -> None:
        """AlreadyExists if somebody else was faster."""
        metadata = ObjectMeta(namespace=self.namespace, name=self.name, labels=dict(self._labels))
        lease = Lease(metadata=metadata, spec=record.spec())
        self._lease = await self._client.create(lease, timeout=self._timeout)

    async def update(self, record: Record) -> None:
        """Conflict if it has been written since it was last read or written here."""
        assert self._lease is not None, "a lease is read before it is updated"
        lease = self._lease
        lease.metadata.labels.update(self._labels)
        lease.spec = record.spec()
        self._lease = await self._client.update(lease, timeout=self._timeout)
