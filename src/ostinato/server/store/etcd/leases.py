"""Leases: etcd deletes an object some time after its last write.

As in kube-apiserver, objects that are written at about the same time share a lease: for a minute or a twentieth of
their time to live, and 1000 objects at most. They may live that much longer.
"""

from __future__ import annotations

import asyncio

from ostinato.etcd import EtcdClient
from ostinato.world import Clock

_SHARED_SECONDS = 60
_SHARED_PART = 0.05
_SHARED_OBJECTS = 1000


class _Shared:
    """The newest lease for one time to live."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()  # one request for a new lease at a time
        self.id = 0
        self.until = 0.0  # monotonic; later objects need another one
        self.objects = 0


class Leases:
    def __init__(self, client: EtcdClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._shared: dict[int, _Shared] = {}

    async def lease(self, ttl: float) -> int:
        """The id of a lease that lasts at least this many seconds. Raises EtcdError."""
        seconds = max(1, round(ttl))
        shared = self._shared.setdefault(seconds, _Shared())
        async with shared.lock:
            shared.objects += 1
            if self._clock.monotonic() >= shared.until or shared.objects > _SHARED_OBJECTS:
                longer = min(int(_SHARED_PART * seconds), _SHARED_SECONDS)
                now = self._clock.monotonic()
                shared.id = (await self._client.lease_grant(seconds + longer)).id
                shared.until, shared.objects = now + longer, 1
            return shared.id

    def forget(self, lease: int) -> None:
        """Do not use a lease again: etcd does not have it."""
        for shared in self._shared.values():
            if shared.id == lease:
                shared.until = 0.0
