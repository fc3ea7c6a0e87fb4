"""Admission of in-place resizes: a resize that does not fit its node is deferred until there is room.

As in the kubelet, pending resizes are evaluated in an order: first those that request no more than before, then by
priority, Guaranteed before Burstable, and the longest pending first. They are evaluated again when a Pod of the node
ends or is resized.
"""

from __future__ import annotations

from collections.abc import Mapping

from ostinato.api.gvk import NamespacedName
from ostinato.controllers import Channel
from ostinato.plane.node.admission import insufficient_resource, requests_more
from ostinato.plane.node.local_node import LocalNode
from ostinato.plane.node.pod_worker import PodWorker


class ResizeAdmission:
    """Serves all nodes of a process. `workers`: of all Pods, by key; `changes` gets Pods whose resize was decided."""

    def __init__(
        self, nodes: Mapping[str, LocalNode], workers: Mapping[NamespacedName, PodWorker], changes: Channel
    ) -> None:
        self._nodes = nodes
        self._workers = workers
        self._changes = changes
        self._pending: dict[str, set[NamespacedName]] = {}  # by node

    def request(self, key: NamespacedName, node: str) -> None:
        """Decide the resize of a Pod, and those of its node that were pending before."""
        self._pending.setdefault(node, set()).add(key)
        self.retry(node)

    def retry(self, node: str) -> None:
        """Decide all pending resizes of a node again."""
        pending = self._pending.get(node)
        if not pending:
            return
        info = self._nodes[node].info
        assert info is not None, "resources of simulated containers are not allocated"
        waiting = [(key, worker) for key in pending if (worker := self._workers.get(key)) is not None]
        waiting = [(key, worker) for key, worker in waiting if worker.has_resize and not worker.is_terminated]
        pending.clear()
        for key, worker in sorted(waiting, key=lambda each: _order(each[1])):
            others = (
                other.allocated
                for other in self._workers.values()
                if other is not worker and other.pod.spec.node_name == node and not other.is_terminated
            )
            rejection = insufficient_resource(worker.pod, info, others)
            if rejection is None:
                worker.allocate()
                self._changes.put(key)
                continue
            pending.add(key)
            if worker.defer(rejection):
                self._changes.put(key)


def _order(worker: PodWorker) -> tuple[bool, int, bool, bool, str]:
    pod, since = worker.pod, worker.pending_since
    return (
        requests_more(pod, worker.allocated),
        -(pod.spec.priority or 0),
        pod.status.qos_class != "Guaranteed",
        since is None,
        "" if since is None else str(since),
    )
