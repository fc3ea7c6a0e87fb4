"""Node eligibility: on which nodes the Pods of a DaemonSet run.

A node is eligible if it matches nodeName, node selector and required node affinity of the template, and the Pods
tolerate its taints, including the tolerations that all daemon Pods get. A running Pod stays unless it does not tolerate
a NoExecute taint.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Final

import msgspec

from ostinato.api.object import Object
from ostinato.api.selectors.labels import from_set
from ostinato.api.struct import BuiltinStruct
from ostinato.cache.events import Deleted, Event, Updated
from ostinato.cache.readable_store import ReadableStore
from ostinato.cache.store.entry import Entry
from ostinato.client.views import View
from ostinato.controllers.runnable import Dependencies
from ostinato.controllers.sources.handlers import Handler, Keys
from ostinato.kinds.apps_v1 import DaemonSet
from ostinato.kinds.core_v1 import NodeSelectorTerm, PodSpec, Toleration
from ostinato.plane.placement.node_selectors import matcher
from ostinato.plane.placement.taints import NO_EXECUTE, Taint, has_blocking_taint

_MAX_PLACEMENTS: Final = 10_000  # cached

_TOLERATED: Final = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)
_TOLERATED_ON_HOST_NETWORK: Final = (("network-unavailable", "NoSchedule"),)


class NodeSpec(BuiltinStruct):
    taints: list[Taint] = []


class NodeState(Object, version="v1", kind="Node", plural="nodes", namespaced=False):
    """The fields of a Node that decide eligibility."""

    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)


class NodeFit(Enum):
    SHOULD_RUN = "a Pod should run there"
    MAY_CONTINUE = "a running Pod may continue"
    MUST_LEAVE = "no Pod may run there"


class Placement:
    """Eligibility of nodes for one generation of a DaemonSet."""

    def __init__(self, owner: DaemonSet) -> None:
        spec = owner.spec.template.spec
        self._node = spec.node_name or ""
        self._selector = from_set(spec.node_selector)
        self._affinity = matcher(terms) if (terms := _required_terms(spec)) is not None else None
        self._tolerations = tolerations(spec)

    def fit(self, name: str, labels: Mapping[str, str], taints: Sequence[Taint]) -> NodeFit:
        """Return whether a Pod should run, may continue, or must leave."""
        if self._node and self._node != name:
            return NodeFit.MUST_LEAVE
        if not self._selector.matches(labels):
            return NodeFit.MUST_LEAVE
        if self._affinity is not None and not self._affinity(labels, name):
            return NodeFit.MUST_LEAVE
        if not has_blocking_taint(taints, self._tolerations):
            return NodeFit.SHOULD_RUN
        evicts = has_blocking_taint([each for each in taints if each.effect == NO_EXECUTE], self._tolerations)
        return NodeFit.MUST_LEAVE if evicts else NodeFit.MAY_CONTINUE


def tolerations(spec: PodSpec) -> list[Toleration]:
    """Return the tolerations of the template and those of all daemon Pods."""
    added = (*_TOLERATED, *_TOLERATED_ON_HOST_NETWORK) if spec.host_network else _TOLERATED
    wanted = [Toleration(key=f"node.kubernetes.io/{name}", operator="Exists", effect=effect) for name, effect in added]
    same = {(each.key, each.operator, each.effect) for each in wanted}
    return [*(each for each in spec.tolerations if (each.key, each.operator, each.effect) not in same), *wanted]


def _required_terms(spec: PodSpec) -> list[NodeSelectorTerm] | None:
    affinity = None if spec.affinity is None else spec.affinity.node_affinity
    required = None if affinity is None else affinity.required_during_scheduling_ignored_during_execution
    return None if required is None else required.node_selector_terms


class ForPlacement(Handler):
    """Enqueues the DaemonSets for which a changed node requires a Pod to be created or deleted.

    A node on which running Pods may continue requires no action; the next sync counts the misscheduled Pod.
    """

    def __init__(self) -> None:
        self._daemon_sets: ReadableStore | None = None
        self._known: dict[tuple[str, int], Placement] = {}  # by (uid, generation)

    async def prepare(self, watched: View[object], dependencies: Dependencies) -> None:  # noqa: ARG002
        self._daemon_sets = dependencies.informers.of(DaemonSet).store

    def keys(self, event: Event) -> Keys:
        assert self._daemon_sets is not None, "prepare() runs before the first event"
        after = None if isinstance(event, Deleted) else NodeFacts(event.object)
        before = NodeFacts(event.old) if isinstance(event, Updated) else None
        if before is not None and before == after:
            return ()
        return [
            entry.key
            for entry in self._daemon_sets.entries()
            if self._changes_fit(self._placement(entry), before, after)
        ]

    def _changes_fit(self, placement: Placement, before: NodeFacts | None, after: NodeFacts | None) -> bool:
        if after is None:
            return True
        fit = after.fit(placement)
        if before is None:
            return fit is NodeFit.SHOULD_RUN
        return fit is not NodeFit.MAY_CONTINUE and fit is not before.fit(placement)

    def _placement(self, entry: Entry) -> Placement:
        version = (entry.uid, entry.generation)
        found = self._known.get(version)
        if found is None:
            if len(self._known) >= _MAX_PLACEMENTS:
                self._known.clear()
            found = self._known[version] = Placement(entry.read(DaemonSet))
        return found


class _TaintsOf(BuiltinStruct):
    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)


_read_taints = msgspec.json.Decoder(_TaintsOf).decode


class NodeFacts:
    """The fields of a node that decide eligibility."""

    def __init__(self, entry: Entry) -> None:
        self.name = entry.key.name
        self.labels = entry.labels
        self.taints = _read_taints(entry.data).spec.taints

    def fit(self, placement: Placement) -> NodeFit:
        return placement.fit(self.name, self.labels, self.taints)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NodeFacts) and self.labels == other.labels and self.taints == other.taints

    __hash__ = None  # type: ignore[assignment]  # not hashable
