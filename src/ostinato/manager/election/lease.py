"""Lease lock: reads and writes the Lease object of an election.

Updates are conditional on the resourceVersion that was last read or written: of two concurrent updates, one fails.
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
    """The content of a lease. Times are of the holder's clock; others only compare them for changes."""

    holder: str = ""  # "" if released
    seconds: int = 0  # lease duration
    acquired: datetime | None = None
    renewed: datetime | None = None
    transitions: int = 0  # number of holder changes

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
        """
        - `labels`: set on the lease with each write.
        - `timeout`: seconds for one request.
        """
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
        """The lease as subject of Events."""
        if self._lease is not None:
            return self._lease
        return Lease(metadata=ObjectMeta(namespace=self.namespace, name=self.name))

    async def read(self) -> Record:
        """Read the lease. NotFound if it does not exist."""
        lease = await self._client.get(Lease, self.name, namespace=self.namespace, timeout=self._timeout)
        self._lease = lease
        return Record.of(lease.spec)

    def observe(self, lease: Lease) -> None:
        """Take note of the lease as it was read elsewhere."""
        self._lease = lease

    async def create(self, record: Record) -> None:
        """Create the lease. AlreadyExists if another candidate has created it."""
        metadata = ObjectMeta(namespace=self.namespace, name=self.name, labels=dict(self._labels))
        lease = Lease(metadata=metadata, spec=record.spec())
        self._lease = await self._client.create(lease, timeout=self._timeout)

    async def update(self, record: Record) -> None:
        """Update the lease. Conflict if it has changed since it was last read or written here."""
        assert self._lease is not None, "update() requires read() or create()"
        lease = self._lease
        lease.metadata.labels.update(self._labels)
        lease.spec = record.spec()
        self._lease = await self._client.update(lease, timeout=self._timeout)
