"""Nominations: Pods that wait for room to be made on a node, and count there for Pods of lower priority."""

from __future__ import annotations

from collections.abc import Iterable

from ostinato.plane.scheduler.cache.pod_info import PodInfo


class Nominator:
    def __init__(self) -> None:
        self._on: dict[str, dict[str, PodInfo]] = {}  # by node, then by uid; none is empty
        self._node: dict[str, str] = {}  # of each Pod, by uid

    def __bool__(self) -> bool:
        return bool(self._on)

    def add(self, pod: PodInfo, node: str) -> None:
        """A Pod is to go to a node; it gives up any other."""
        self.remove(pod.uid)
        if node:
            self._node[pod.uid] = node
            self._on.setdefault(node, {})[pod.uid] = pod

    def remove(self, uid: str) -> str:
        """Where it was to go; "" if nowhere."""
        node = self._node.pop(uid, "")
        if node:
            del self._on[node][uid]
            if not self._on[node]:
                del self._on[node]
        return node

    def node_of(self, uid: str) -> str:
        return self._node.get(uid, "")

    def on(self, node: str) -> Iterable[PodInfo]:
        return list(self._on.get(node, {}).values())

    def before(self, pod: PodInfo) -> dict[str, list[PodInfo]]:
        """By node, the Pods that come before this one: others, of its priority or a higher one."""
        found = {
            node: [each for each in pods.values() if each.priority >= pod.priority and each.uid != pod.uid]
            for node, pods in self._on.items()
        }
        return {node: pods for node, pods in found.items() if pods}
