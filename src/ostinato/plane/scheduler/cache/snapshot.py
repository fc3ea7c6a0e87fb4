"""Snapshot of nodes and their Pods, with a change log.

- It is updated incrementally by informer events and scheduling decisions: a scheduled Pod is *assumed* on its node
  before the binding is written.
- Nodes are ordered round-robin over zones, so that a range of them is a fair sample.
- Consumers that compute something per node ask for the nodes that changed since a version (`changed_since`). When nodes
  are added or removed, `epoch` changes and everything is recomputed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Final, TypeVar

from ostinato.plane.scheduler.cache.node_info import NodeFacts, NodeInfo
from ostinato.plane.scheduler.cache.pod_info import PodInfo, Shape

K = TypeVar("K")

_LOG: Final = 100_000  # entries

PodChange = tuple[Shape, int, bool]
"""(shape, +1 added or -1 removed, whether it is terminating)."""


class Snapshot:
    def __init__(self) -> None:
        self._nodes: dict[str, NodeInfo] = {}  # including nodes that only Pods refer to
        self._order: list[NodeInfo] = []  # known nodes, by slot
        self._is_stale = False  # _order must be rebuilt
        self.epoch = 0
        self._log: list[int] = []  # changed slots, oldest first
        self._pod_log: list[PodChange | None] = []  # parallel to _log; None if the node itself changed
        self._log_start = 0  # version of the first entry
        self._where: dict[str, str] = {}  # node name by Pod uid
        self._assumed: set[str] = set()  # uids of Pods whose binding is not confirmed
        self.images: Counter[str] = Counter()  # number of nodes per image
        self.prefer_no_schedule_nodes = 0  # number of nodes with a PreferNoSchedule taint
        self.with_required_anti_affinity: dict[str, NodeInfo] = {}  # nodes with Pods that have required anti-affinity
        self.with_affinity: dict[str, NodeInfo] = {}  # nodes with Pods that have affinity or anti-affinity
        self.priorities: Counter[int] = Counter()  # number of Pods per priority
        self.shapes: Counter[Shape] = Counter()  # number of Pods per shape
        self.claims: Counter[tuple[str, str]] = Counter()  # number of Pods per (namespace, claim)

    # Nodes

    @property
    def nodes(self) -> Sequence[NodeInfo]:
        """All nodes, by slot."""
        if self._is_stale:
            self._arrange()
        return self._order

    def node(self, name: str) -> NodeInfo | None:
        found = self._nodes.get(name)
        return found if found is not None and found.is_known else None

    def put_node(self, facts: NodeFacts) -> None:
        """Add or update a node."""
        node = self._nodes.get(facts.name)
        if node is None:
            node = self._nodes[facts.name] = NodeInfo(facts.name)
        before = node.facts
        if node.is_known:
            self._count_facts(before, -1)
        else:
            self._is_stale = True
        self._count_facts(facts, 1)
        if before.zone != facts.zone:
            self._is_stale = True
        node.set_facts(facts)
        self._changed(node)

    def remove_node(self, name: str) -> None:
        """Remove a node. Its Pods may remain for a while."""
        node = self._nodes.get(name)
        if node is None or not node.is_known:
            return
        self._count_facts(node.facts, -1)
        node.forget_facts()
        self._is_stale = True
        if not node.pods:
            del self._nodes[name]

    # Pods

    def put_pod(self, pod: PodInfo, *, assumed: bool = False) -> None:
        """Add, update or assume a Pod on its node."""
        self.remove_pod(pod.uid)
        node = self._nodes.get(pod.node_name)
        if node is None:
            node = self._nodes[pod.node_name] = NodeInfo(pod.node_name)
        node.add(pod)
        self._where[pod.uid] = pod.node_name
        if assumed:
            self._assumed.add(pod.uid)
        for claim in pod.claims if pod.shape.spec.volumes else ():
            self.claims[pod.namespace, claim] += 1
        self._note(node, pod, 1)

    def confirm(self, pod: PodInfo) -> bool:
        """Confirm an assumed Pod; return whether nothing else changed."""
        if pod.uid not in self._assumed or self._where.get(pod.uid) != pod.node_name:
            return False
        self._assumed.discard(pod.uid)
        node = self._nodes[pod.node_name]
        if node.pods[pod.uid].shape is not pod.shape:
            return False
        self.refresh(pod)
        return True

    def refresh(self, pod: PodInfo) -> None:
        """Replace a Pod whose relevant fields are unchanged."""
        node = self._nodes.get(pod.node_name)
        if node is not None and pod.uid in node.pods:
            for pods in (node.pods, node.with_affinity, node.with_required_anti_affinity):
                if pod.uid in pods:
                    pods[pod.uid] = pod

    def remove_pod(self, uid: str) -> PodInfo | None:
        """Remove a Pod from its node; None if it was on none."""
        name = self._where.pop(uid, None)
        if name is None:
            return None
        self._assumed.discard(uid)
        node = self._nodes[name]
        pod = node.pods[uid]
        node.remove(pod)
        for claim in pod.claims if pod.shape.spec.volumes else ():
            _add(self.claims, (pod.namespace, claim), -1)
        self._note(node, pod, -1)
        if not node.pods and not node.is_known:
            del self._nodes[name]
        return pod

    def pod(self, uid: str) -> PodInfo | None:
        name = self._where.get(uid)
        return None if name is None else self._nodes[name].pods[uid]

    def is_assumed(self, uid: str) -> bool:
        return uid in self._assumed

    # Changes

    @property
    def version(self) -> int:
        """Number of changes so far."""
        return self._log_start + len(self._log)

    def pods_since(self, version: int) -> Iterable[tuple[int, PodChange | None]] | None:
        """Return the changes since a version as (slot, Pod change or None); None if the log does not reach back."""
        if version < self._log_start:
            return None
        start = version - self._log_start
        return zip(self._log[start:], self._pod_log[start:], strict=True)

    def changed_since(self, version: int) -> set[int] | None:
        """Return the slots that changed since a version; None if the log does not reach back."""
        if version < self._log_start:
            return None
        return set(self._log[version - self._log_start :])

    # Internals

    def _note(self, node: NodeInfo, pod: PodInfo, sign: int) -> None:
        """Record that a Pod was added to or removed from a node."""
        if node.with_affinity:
            self.with_affinity[node.name] = node
        elif self.with_affinity:
            self.with_affinity.pop(node.name, None)
        if node.with_required_anti_affinity:
            self.with_required_anti_affinity[node.name] = node
        elif self.with_required_anti_affinity:
            self.with_required_anti_affinity.pop(node.name, None)
        _add(self.priorities, pod.priority, sign)
        _add(self.shapes, pod.shape, sign)
        self._changed(node, (pod.shape, sign, pod.is_being_deleted))

    def _changed(self, node: NodeInfo, change: PodChange | None = None) -> None:
        if node.slot < 0:
            return
        self._log.append(node.slot)
        self._pod_log.append(change)
        if len(self._log) > _LOG:
            half = _LOG // 2
            del self._log[:half], self._pod_log[:half]
            self._log_start += half

    def _count_facts(self, facts: NodeFacts, sign: int) -> None:
        self.prefer_no_schedule_nodes += sign * facts.has_prefer_no_schedule_taint
        for image in facts.images:
            _add(self.images, image, sign)

    def _arrange(self) -> None:
        self._is_stale = False
        zones: dict[str, list[NodeInfo]] = {}
        for node in self._nodes.values():
            node.slot = -1
            if node.is_known:
                zones.setdefault(node.facts.zone, []).append(node)
        turns = zip_longest(*zones.values())
        self._order = [node for turn in turns for node in turn if node is not None]
        for slot, node in enumerate(self._order):
            node.slot = slot
        self.epoch += 1
        self._log_start += len(self._log)
        self._log.clear()
        self._pod_log.clear()


def _add(counter: Counter[K], key: K, number: int) -> None:
    """Add to a count, and remove it at zero."""
    counter[key] += number
    if not counter[key]:
        del counter[key]
