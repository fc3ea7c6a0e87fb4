"""Topology: the nodes of this machine, their zones, and the node of a client."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from ostinato.api.gvk import NamespacedName
from ostinato.cache import Entry, Event, IndexBy, Updated, by_field
from ostinato.cache.informers import Informers
from ostinato.kinds.core_v1 import Node
from ostinato.plane.objects.indexes import NODE_NAME, ensure_index
from ostinato.plane.objects.pod_state import PodState

_ZONE: Final = "topology.kubernetes.io/zone"
_BY_ADDRESS: Final[IndexBy] = by_field("status.podIPs[*].ip")


class Topology:
    def __init__(self, informers: Informers, nodes: Collection[str]) -> None:
        """`nodes`: names of the nodes on this machine."""
        self._names = nodes
        self._nodes = informers.of(Node)
        self._pods = informers.of(PodState)
        ensure_index(self._pods, NODE_NAME)
        ensure_index(self._pods, _BY_ADDRESS)

    def zones(self) -> dict[str, str]:
        """The zones of the nodes on this machine; "" for a node without one."""
        return {name: _zone_of(self._nodes.store.get(NamespacedName("", name))) for name in self._names}

    def is_changed(self, event: Event) -> bool:
        """Whether an event of a Node changes the zones."""
        entry = event.object
        if entry.key.name not in self._names:
            return False
        return _zone_of(entry) != (_zone_of(event.old) if isinstance(event, Updated) else "")

    def node_of(self, address: str) -> str:
        """The node of a Pod on this machine, by its address; "" if there is none."""
        for key in self._pods.store.index_keys(_BY_ADDRESS.name, address):
            for name in self._pods.store.values_of(NODE_NAME.name, key):
                if name in self._names:
                    return name
        return ""


def _zone_of(entry: Entry | None) -> str:
    return "" if entry is None else entry.labels.get(_ZONE, "")
