"""The snapshot: all nodes with their Pods, as of now, and a log of which of them changed.

- It is changed step by step, by what informers tell and by the scheduler's own decisions: a Pod that has been given a
  node counts there at once (it is *assumed*), before the server knows.
- Nodes stand in an order that takes the zones in turn, so that a part of them is a fair sample.
- Whoever has computed something for every node asks which nodes have changed since (`changed_since`), and does the
  rest again for these alone. When nodes come and go, `epoch` changes, and everything is computed anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Final

from ostinato.plane.scheduler.cache.node_info import NodeFacts, NodeInfo
from ostinato.plane.scheduler.cache.pod_info import PodInfo, Shape

_LOG: Final = 100_000  # changes that are remembered

PodChange = tuple[Shape, int, bool]
"""A Pod that came to a node (1) or went (-1): its shape, and whether it is being deleted."""


class Snapshot:
    def __init__(self) -> None:
        self._nodes: dict[str, NodeInfo] = {}  # known ones, and such as only Pods name
        self._order: list[NodeInfo] = []  # known ones; each at its slot
        self._is_stale = False  # whether the order is to be made anew
        self.epoch = 0
        self._log: list[int] = []  # slots that changed, in order
        self._pod_log: list[PodChange | None] = []  # what changed there, for each of the log; None if the node itself
        self._log_start = 0  # number of the first change of the log
        self._where: dict[str, str] = {}  # node of each Pod, by uid
        self._assumed: set[str] = set()  # uids of Pods that the server does not know to have a node
        self.images: Counter[str] = Counter()  # how many nodes have each
        self.prefer_no_schedule_nodes = 0  # nodes with a taint that asks Pods to rather go elsewhere
        self.with_required_anti_affinity: dict[str, NodeInfo] = {}  # nodes with Pods that must be far from others
        self.with_affinity: dict[str, NodeInfo] = {}  # nodes with Pods that have any wish about others
        self.priorities: Counter[int] = Counter()  # how many Pods have each
        self.claims: Counter[tuple[str, str]] = Counter()  # how many Pods use each claim: namespace and name

    # Nodes

    @property
    def nodes(self) -> Sequence[NodeInfo]:
        """All nodes, each at its slot."""
        if self._is_stale:
            self._arrange()
        return self._order

    def node(self, name: str) -> NodeInfo | None:
        found = self._nodes.get(name)
        return found if found is not None and found.is_known else None

    def put_node(self, facts: NodeFacts) -> None:
        """A node is there, or has changed."""
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
        """A node has gone. Its Pods may be there for a while."""
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
        """A Pod is on a node: it came there, or has changed, or it is decided that it goes there."""
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
        """The server knows of the node that a Pod was given: whether nothing else is to be done about it."""
        if pod.uid not in self._assumed or self._where.get(pod.uid) != pod.node_name:
            return False
        self._assumed.discard(pod.uid)
        node = self._nodes[pod.node_name]
        if node.pods[pod.uid].shape is not pod.shape:
            return False
        self.refresh(pod)
        return True

    def refresh(self, pod: PodInfo) -> None:
        """A Pod has changed in nothing that matters to its node."""
        node = self._nodes.get(pod.node_name)
        if node is not None and pod.uid in node.pods:
            for pods in (node.pods, node.with_affinity, node.with_required_anti_affinity):
                if pod.uid in pods:
                    pods[pod.uid] = pod

    def remove_pod(self, uid: str) -> PodInfo | None:
        """A Pod is no longer on a node; None if it was on none."""
        name = self._where.pop(uid, None)
        if name is None:
            return None
        self._assumed.discard(uid)
        node = self._nodes[name]
        pod = node.pods[uid]
        node.remove(pod)
        for claim in pod.claims if pod.shape.spec.volumes else ():
            self.claims[pod.namespace, claim] -= 1
            if not self.claims[pod.namespace, claim]:
                del self.claims[pod.namespace, claim]
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
        """Grows with every change."""
        return self._log_start + len(self._log)

    def pods_since(self, version: int) -> Iterable[tuple[int, PodChange | None]] | None:
        """The same, change by change: the slot, and the Pod that came or went; None if the node itself changed."""
        if version < self._log_start:
            return None
        start = version - self._log_start
        return zip(self._log[start:], self._pod_log[start:], strict=True)

    def changed_since(self, version: int) -> set[int] | None:
        """The slots of the nodes that have changed; None if that is forgotten, and all must be taken for changed."""
        if version < self._log_start:
            return None
        return set(self._log[version - self._log_start :])

    # Inside

    def _note(self, node: NodeInfo, pod: PodInfo, sign: int) -> None:
        """A Pod has come to a node, or gone from it."""
        if node.with_affinity:
            self.with_affinity[node.name] = node
        elif self.with_affinity:
            self.with_affinity.pop(node.name, None)
        if node.with_required_anti_affinity:
            self.with_required_anti_affinity[node.name] = node
        elif self.with_required_anti_affinity:
            self.with_required_anti_affinity.pop(node.name, None)
        self.priorities[pod.priority] += sign
        if not self.priorities[pod.priority]:
            del self.priorities[pod.priority]
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
            self.images[image] += sign
            if not self.images[image]:
                del self.images[image]

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
