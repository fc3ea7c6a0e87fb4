"""Balancers: which backend a client is sent to.

Backends take turns, from a random one on. Where clients are sticky, one stays with its backend as long as that is there
and the client comes back in time; of very many clients, those are forgotten first that have been away the longest.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from ostinato.plane.network.services.table import Backend, BackendSet
from ostinato.world import World

_CLIENTS: Final = 10_000  # that are remembered


class Balancer:
    def __init__(self, world: World, backend_set: BackendSet) -> None:
        self._clock = world.clock
        self._turn = world.rng.randrange(1 << 16)
        self._backend_set = backend_set
        self._known: OrderedDict[str, tuple[Backend, float]] = OrderedDict()  # by client: with whom it was, and when

    @property
    def backend_set(self) -> BackendSet:
        return self._backend_set

    def update(self, backend_set: BackendSet) -> None:
        """Go on with others."""
        self._backend_set = backend_set
        if backend_set.sticky is None:
            self._known.clear()

    def candidates(self, client: str) -> list[Backend]:
        """All backends, the client's first; the others are for when that cannot be reached."""
        backends = self._backend_set.backends
        if not backends:
            return []
        self._turn = (self._turn + 1) % len(backends)
        candidates = [*backends[self._turn :], *backends[: self._turn]]
        if self._backend_set.sticky is not None and (known := self._known.get(client)) is not None:
            backend, when = known
            if self._clock.monotonic() - when < self._backend_set.sticky and backend in candidates:
                candidates.remove(backend)
                candidates.insert(0, backend)
        return candidates

    def record(self, client: str, backend: Backend) -> None:
        """That is where it went."""
        if self._backend_set.sticky is None:
            return
        self._known[client] = (backend, self._clock.monotonic())
        self._known.move_to_end(client)
        if len(self._known) > _CLIENTS:
            self._known.popitem(last=False)
