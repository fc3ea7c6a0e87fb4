"""The endpoints of a Service port that a client is balanced over, as kube-proxy chooses them.

- Ready endpoints; if there are none, terminating ones that still serve.
- `Local` traffic policies: those on the client's node alone, for clients inside the cluster; those on any node of this
  machine, for clients outside. Without one, nobody answers.
- Hints (`trafficDistribution`): those for the client's node, or else for its zone, if all ready endpoints have such
  hints and one of them is for it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from ostinato.kinds.core_v1 import ServicePort
from ostinato.kinds.discovery_v1 import Endpoint, EndpointSlice


class Backend(msgspec.Struct, frozen=True):
    """Address and port of an endpoint."""

    address: str
    port: int


Backends = tuple[Backend, ...]


class Choice(msgspec.Struct, frozen=True):
    """Backends of a frontend.

    - `everywhere`: for clients whose node is not known, or does not matter.
    - `by_node`: for clients on a node of this machine. Defaults to none: the node does not matter.
    """

    everywhere: Backends = ()
    by_node: Mapping[str, Backends] = {}


class _Candidate(msgspec.Struct, frozen=True):
    backend: Backend
    endpoint: Endpoint


class PortEndpoints:
    """The endpoints of one port, of an address family. `nodes`: the nodes of this machine, and their zones."""

    def __init__(
        self, slices: Iterable[EndpointSlice], family: str, port: ServicePort, nodes: Mapping[str, str]
    ) -> None:
        self._nodes = nodes
        self._all: list[_Candidate] = []
        for each in slices:
            numbers = [
                found.port
                for found in each.ports
                if (found.name or "") == (port.name or "") and (found.protocol or "TCP") == (port.protocol or "TCP")
            ]
            if each.address_type == family and numbers and numbers[0]:
                for endpoint in each.endpoints:  # further addresses belong to the same endpoint
                    self._all.append(_Candidate(Backend(endpoint.addresses[0], numbers[0]), endpoint))

    def internal(self, *, local: bool) -> Choice:
        """For clients inside the cluster. `local`: `internalTrafficPolicy: Local`."""
        if local:
            by_node = {name: self._usable(self._on([name])) for name in self._nodes}
            return Choice(self._usable(self._on(self._nodes)), by_node)
        everywhere = self._usable(self._all)
        hinted = {name: self._hinted(name, zone) for name, zone in self._nodes.items()}
        if all(found is None for found in hinted.values()):
            return Choice(everywhere)
        by_node = {name: everywhere if found is None else found for name, found in hinted.items()}
        alone = next(iter(by_node.values())) if len(by_node) == 1 else everywhere
        return Choice(alone, by_node)

    def external(self, *, local: bool) -> Choice:
        """For clients outside of the cluster. `local`: `externalTrafficPolicy: Local`."""
        return Choice(self._usable(self._on(self._nodes))) if local else self.internal(local=False)

    def _on(self, nodes: Collection[str]) -> list[_Candidate]:
        return [each for each in self._all if each.endpoint.node_name in nodes]

    def _usable(self, candidates: Iterable[_Candidate]) -> Backends:
        candidates = list(candidates)
        ready = [each for each in candidates if is_ready(each.endpoint)]
        return _sorted(ready or [each for each in candidates if _is_serving_terminating(each.endpoint)])

    def _hinted(self, node: str, zone: str) -> Backends | None:
        """The endpoints with hints for a node or its zone; None if hints do not decide."""
        ready = [each for each in self._all if is_ready(each.endpoint)]
        for hints_of, own in ((_node_hints, node), (_zone_hints, zone)):
            hints = [hints_of(each.endpoint) for each in ready]
            if own and all(hints) and any(own in each for each in hints):
                return _sorted([each for each, found in zip(ready, hints, strict=True) if own in found])
        return None


def local_addresses(slices: Iterable[EndpointSlice], nodes: Collection[str]) -> set[str]:
    """The addresses of ready endpoints on nodes."""
    return {
        endpoint.addresses[0]
        for each in slices
        for endpoint in each.endpoints
        if endpoint.node_name in nodes and is_ready(endpoint)
    }


def is_ready(endpoint: Endpoint) -> bool:
    return endpoint.conditions is None or endpoint.conditions.ready is not False


def _is_serving_terminating(endpoint: Endpoint) -> bool:
    conditions = endpoint.conditions
    return conditions is not None and bool(conditions.serving) and bool(conditions.terminating)


def _node_hints(endpoint: Endpoint) -> Sequence[str]:
    return [] if endpoint.hints is None else [each.name for each in endpoint.hints.for_nodes]


def _zone_hints(endpoint: Endpoint) -> Sequence[str]:
    return [] if endpoint.hints is None else [each.name for each in endpoint.hints.for_zones]


def _sorted(candidates: Iterable[_Candidate]) -> Backends:
    found = {each.backend for each in candidates}
    return tuple(sorted(found, key=lambda each: (each.address, each.port)))
