"""Pod manager: which Pods are desired on the nodes of this process, from the API server and from static manifests."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ostinato.api.gvk import NamespacedName
from ostinato.kinds.core_v1 import Pod
from ostinato.plane.node.local_node import LocalNode
from ostinato.plane.node.static_pods import StaticPodSet

NodeNameOf = Callable[[NamespacedName], str]
"""`node_name_of(key)` returns the node that a cached Pod is bound to; empty if none."""


class PodManager:
    def __init__(self, nodes: Mapping[str, LocalNode], node_name_of: NodeNameOf) -> None:
        self._nodes = nodes
        self._node_name_of = node_name_of
        self._static: StaticPodSet = {}
        self._static_keys: set[NamespacedName] = set()  # also those of removed static Pods that still terminate

    def is_bound_here(self, key: NamespacedName) -> bool:
        """Return whether a cached Pod is bound to a node of this process."""
        return self._node_name_of(key) in self._nodes

    def node_of(self, pod: Pod) -> LocalNode | None:
        """Return the node that a Pod is bound to; None if it is not in this process."""
        return self._nodes.get(pod.spec.node_name or "")

    def set_static_pods(self, node: str, pods: StaticPodSet) -> list[NamespacedName]:
        """Replace the static Pods of a node; return the keys of added, changed and removed ones."""
        removed = {key for key, pod in self._static.items() if pod.spec.node_name == node} - pods.keys()
        for key in removed:
            del self._static[key]
        self._static |= pods
        self._static_keys |= pods.keys()
        return [*removed, *pods]

    def is_static(self, key: NamespacedName) -> bool:
        """Return whether a key belongs to a static Pod, including a removed one until `forget_static`."""
        return key in self._static_keys

    def static_pod(self, key: NamespacedName) -> Pod | None:
        """Return a static Pod; None if its manifest was removed."""
        return self._static.get(key)

    def forget_static(self, key: NamespacedName) -> None:
        """Treat the key as an ordinary Pod from now on."""
        self._static_keys.discard(key)
