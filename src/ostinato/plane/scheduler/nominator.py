"""Nominated Pods: Pods that wait for victims to terminate on a node, where they count for Pods of lower priority."""

from __future__ import annotations

from collections.abc import Iterable

from ostinato.plane.scheduler.cache.pod_info import PodInfo


class Nominator:
    def __init__(self) -> None:
        self._by_node: dict[str, dict[str, PodInfo]] = {}  # node -> uid -> Pod; without empty nodes
        self._node_by_uid: dict[str, str] = {}  # by Pod uid

    def __bool__(self) -> bool:
        return bool(self._by_node)

    def add(self, pod: PodInfo, node: str) -> None:
        """Nominate a node for a Pod; replaces an earlier nomination."""
        self.remove(pod.uid)
        if node:
            self._node_by_uid[pod.uid] = node
            self._by_node.setdefault(node, {})[pod.uid] = pod

    def remove(self, uid: str) -> str:
        """Remove a nomination and return its node; "" if there was none."""
        node = self._node_by_uid.pop(uid, "")
        if node:
            del self._by_node[node][uid]
            if not self._by_node[node]:
                del self._by_node[node]
        return node

    def node_of(self, uid: str) -> str:
        return self._node_by_uid.get(uid, "")

    def pods_on(self, node: str) -> Iterable[PodInfo]:
        return list(self._by_node.get(node, {}).values())

    def nominated_pods_for(self, pod: PodInfo) -> dict[str, list[PodInfo]]:
        """Return by node the other nominated Pods of equal or higher priority."""
        found = {
            node: [each for each in pods.values() if each.priority >= pod.priority and each.uid != pod.uid]
            for node, pods in self._by_node.items()
        }
        return {node: pods for node, pods in found.items() if pods}
