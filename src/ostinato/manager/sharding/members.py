"""Members: the replicas, each with a Lease that it renews.

As in leader election, clocks are not compared: a replica counts as long as its Lease has changed within the lease
duration, on the clock of whoever counts.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable
from contextlib import suppress
from typing import Final, NamedTuple

from ostinato.api.errors import APIError, Conflict, NotFound
from ostinato.client.client import Client
from ostinato.client.transport.protocol import TransportError
from ostinato.kinds.coordination_v1 import Lease
from ostinato.manager.election.lease import LeaseLock, Record
from ostinato.manager.sharding.settings import COUNT_LABEL, LABEL, Sharding
from ostinato.world import World

_FORGET: Final = 10  # lease durations after which the Lease of a dead replica is deleted

_logger = logging.getLogger("ostinato.manager")


class _Seen(NamedTuple):
    record: Record
    shards: str  # number of shards that the replica uses
    since: float  # when this state was first observed


class Members:
    def __init__(self, client: Client, namespace: str, options: Sharding, world: World) -> None:
        self._client = client
        self._options = options
        self._clock = world.clock
        identity = hashlib.sha256(options.identity.encode()).hexdigest()[:10]
        self._prefix = f"{options.name}-member-"
        labels = {LABEL: options.name, COUNT_LABEL: str(options.shards)}
        timeout = options.election(0).request_timeout
        self._lock = LeaseLock(client, namespace, f"{self._prefix}{identity}", labels=labels, timeout=timeout)
        self._exists = False
        self._seen: dict[str, _Seen] = {}  # by the name of the Lease
        self.active_until = float("-inf")  # when the others may count this replica as dead
        self._waits_for: list[str] = []  # replicas with another number of shards, as reported

    @property
    def namespace(self) -> str:
        """The namespace of the Leases."""
        return self._lock.namespace

    @property
    def is_active(self) -> bool:
        """Whether this replica counts for the others and has seen none with another number of shards."""
        return self._clock.monotonic() <= self.active_until

    async def renew(self) -> float:
        """Renew the Lease of this replica. Returns when the renewal was sent."""
        sent_at, now = self._clock.monotonic(), self._clock.now()
        options = self._options
        record = Record(holder=options.identity, seconds=options.lease_duration, acquired=now, renewed=now)
        try:
            if not self._exists:
                with suppress(NotFound):
                    await self._lock.read()
                    self._exists = True
            await (self._lock.update(record) if self._exists else self._lock.create(record))
            self._exists = True
        except (NotFound, Conflict):
            self._exists = False  # read it again
            raise
        return sent_at

    def observe(self, leases: Iterable[Lease], renewed_at: float) -> None:
        """Take note of all Leases, which were listed after this replica's own was renewed."""
        now = self._clock.monotonic()
        before, self._seen = self._seen, {}
        for lease in leases:
            name = lease.metadata.name
            if name.startswith(self._prefix):
                record, known = Record.of(lease.spec), before.get(name)
                since = known.since if known is not None and known.record == record else now
                self._seen[name] = _Seen(record, lease.metadata.labels.get(COUNT_LABEL, ""), since)
        others = sorted(each.record.holder for each in self._live() if each.shards != str(self._options.shards))
        if others and not self.is_active:
            if others != self._waits_for:
                _logger.warning(
                    "waiting for replicas with another number of shards to end name=%s shards=%d replicas=%s",
                    self._options.name,
                    self._options.shards,
                    ",".join(others),
                )
            self._waits_for = others
            return
        self._waits_for = []
        self.active_until = renewed_at + self._options.renew_deadline

    @property
    def share(self) -> int:
        """The number of shards that this replica should hold."""
        replicas = self._replicas()
        whole, rest = divmod(self._options.shards, len(replicas))
        return whole + (replicas.index(self._options.identity) < rest)

    @property
    def count(self) -> int:
        """The number of replicas."""
        return len(self._replicas())

    async def leave(self) -> None:
        """Delete the Lease of this replica."""
        if self._exists:
            await self._delete(self._lock.name)

    async def forget_dead(self) -> None:
        """Delete the Leases of replicas that have ended long ago."""
        limit = self._clock.monotonic() - _FORGET * self._options.lease_duration
        for name in [name for name, each in self._seen.items() if each.since < limit and name != self._lock.name]:
            await self._delete(name)

    def _replicas(self) -> list[str]:
        """Return the identities of the replicas with this number of shards, sorted."""
        same = {each.record.holder for each in self._live() if each.shards == str(self._options.shards)}
        return sorted(same | {self._options.identity})

    def _live(self) -> list[_Seen]:
        now = self._clock.monotonic()
        return [each for each in self._seen.values() if each.record.holder and now - each.since <= each.record.seconds]

    async def _delete(self, name: str) -> None:
        try:
            await self._client.delete(
                Lease, name, namespace=self._lock.namespace, timeout=self._options.election(0).request_timeout
            )
        except NotFound:
            pass
        except (APIError, TransportError, TimeoutError) as error:
            _logger.warning("cannot delete lease of replica lease=%s error=%s", name, error)
