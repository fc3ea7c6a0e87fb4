"""Load balancer: chooses the backend of a client.

Clients outside of the source ranges have none, and those on a node of this machine may have their own. Round robin from
a random start. With session affinity a client keeps its backend while the backend exists and the timeout has not
expired; the least recently used clients are dropped beyond a limit.
"""

from __future__ import annotations

import ipaddress
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from ostinato.plane.network.services.endpoints import Backend, Backends
from ostinato.plane.network.services.table import BackendSet
from ostinato.world import World

_CLIENTS: Final = 10_000  # with session affinity


Permits = Callable[[str, Backend], bool]
NodeOf = Callable[[str], str]


def permit_all(client: str, backend: Backend) -> bool:  # noqa: ARG001
    return True


class Balancer:
    def __init__(
        self, world: World, backend_set: BackendSet, permits: Permits = permit_all, node_of: NodeOf = lambda _: ""
    ) -> None:
        """
        - `permits`: whether a client may be connected to a backend. Defaults to everybody.
        - `node_of`: the node of a client; "" if that is unknown, as by default.
        """
        self._permits = permits
        self._node_of = node_of
        self._clock = world.clock
        self._turn = world.rng.randrange(1 << 16)
        self._backend_set = backend_set
        self._known: OrderedDict[str, tuple[Backend, float]] = OrderedDict()  # by client: (backend, last use)

    @property
    def backend_set(self) -> BackendSet:
        return self._backend_set

    def update(self, backend_set: BackendSet) -> None:
        """Replace the backends."""
        self._backend_set = backend_set
        if backend_set.sticky is None:
            self._known.clear()

    def candidates(self, client: str) -> list[Backend]:
        """Return all backends that are permitted, the client's first; the others are for failed connections."""
        backends = [each for each in self._backends(client) if self._permits(client, each)]
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

    def _backends(self, client: str) -> Backends:
        found = self._backend_set
        if found.sources:
            address = ipaddress.ip_address(client)
            if not any(address in each for each in found.sources):
                return ()
        return found.by_node.get(self._node_of(client), found.backends) if found.by_node else found.backends

    def record(self, client: str, backend: Backend) -> None:
        """Record the backend of a client."""
        if self._backend_set.sticky is None:
            return
        self._known[client] = (backend, self._clock.monotonic())
        self._known.move_to_end(client)
        if len(self._known) > _CLIENTS:
            self._known.popitem(last=False)
