"""NodeInfo: a node, its allocatable resources, and the Pods assigned to it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from ostinato.api.struct import BuiltinStruct
from ostinato.cache.store.entry import Entry
from ostinato.plane.placement.resources import PODS, RawAmounts, Resources, amounts_of
from ostinato.plane.placement.taints import PREFER_NO_SCHEDULE, Taint
from ostinato.plane.scheduler.cache.pod_info import PodInfo

ZONE: Final = "topology.kubernetes.io/zone"
REGION: Final = "topology.kubernetes.io/region"
HOSTNAME: Final = "kubernetes.io/hostname"


class _Metadata(BuiltinStruct):
    labels: dict[str, str] = {}


class _Spec(BuiltinStruct):
    unschedulable: bool = False
    taints: list[Taint] = []


class _Image(BuiltinStruct):
    names: list[str] = []
    size_bytes: int = 0


class _Status(BuiltinStruct):
    allocatable: RawAmounts = {}
    images: list[_Image] = []


class _Node(BuiltinStruct):
    metadata: _Metadata
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


_decode = msgspec.json.Decoder(_Node).decode


class NodeFacts:
    """Immutable fields of one state of a Node."""

    __slots__ = ("allocatable", "images", "labels", "name", "pods", "taints", "unschedulable", "zone")

    def __init__(self, name: str, node: _Node) -> None:
        amounts = amounts_of(node.status.allocatable)
        self.name = name
        self.labels = node.metadata.labels
        self.taints = tuple(node.spec.taints)
        self.unschedulable = node.spec.unschedulable
        self.allocatable = Resources.of(amounts)
        self.pods = amounts.get(PODS, 0)  # maximum number
        self.images = {name: image.size_bytes for image in node.status.images for name in image.names}
        self.zone = f"{self.labels.get(REGION, '')}:{self.labels.get(ZONE, '')}"

    @property
    def has_prefer_no_schedule_taint(self) -> bool:
        """Whether it has a PreferNoSchedule taint."""
        return any(taint.effect == PREFER_NO_SCHEDULE for taint in self.taints)


def read_node(entry: Entry) -> NodeFacts:
    return NodeFacts(entry.key.name, _decode(entry.data))


_NOBODY: Final = NodeFacts("", _Node(metadata=_Metadata()))


class NodeInfo:
    """A node and its assigned and assumed Pods. `facts` is None while only its Pods are known."""

    __slots__ = (
        "facts",
        "is_known",
        "labels",
        "name",
        "pods",
        "ports",
        "requested",
        "slot",
        "weight_cpu",
        "weight_memory",
        "with_affinity",
        "with_required_anti_affinity",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.slot = -1  # index in the snapshot
        self.facts = _NOBODY
        self.is_known = False
        self.labels: dict[str, str] = {}
        self.pods: dict[str, PodInfo] = {}  # by uid
        self.requested = Resources()
        self.weight_cpu = 0
        self.weight_memory = 0
        self.ports: dict[tuple[str, str, int], int] = {}  # host ports in use, with counts
        self.with_required_anti_affinity: dict[str, PodInfo] = {}  # Pods with required anti-affinity
        self.with_affinity: dict[str, PodInfo] = {}  # Pods with any affinity or anti-affinity

    def set_facts(self, facts: NodeFacts) -> None:
        self.facts = facts
        self.labels = facts.labels
        self.is_known = True

    def forget_facts(self) -> None:
        self.facts = _NOBODY
        self.labels = {}
        self.is_known = False

    def add(self, pod: PodInfo) -> None:
        self.pods[pod.uid] = pod
        self._count(pod, 1)
        if pod.shape.has_affinity:
            self.with_affinity[pod.uid] = pod
            if pod.shape.anti_affinity:
                self.with_required_anti_affinity[pod.uid] = pod

    def remove(self, pod: PodInfo) -> None:
        known = self.pods.pop(pod.uid, None)
        if known is None:
            return
        self._count(known, -1)
        self.with_affinity.pop(pod.uid, None)
        self.with_required_anti_affinity.pop(pod.uid, None)

    def copy(self) -> NodeInfo:
        """Return a copy for a dry run."""
        other = NodeInfo(self.name)
        other.slot, other.facts, other.is_known, other.labels = self.slot, self.facts, self.is_known, self.labels
        other.pods, other.ports = dict(self.pods), dict(self.ports)
        other.requested = self.requested.copy()
        other.weight_cpu, other.weight_memory = self.weight_cpu, self.weight_memory
        other.with_required_anti_affinity, other.with_affinity = (
            dict(self.with_required_anti_affinity),
            dict(self.with_affinity),
        )
        return other

    def conflicts(self, ports: Iterable[tuple[str, str, int]]) -> bool:
        """Return whether one of the host ports (address, protocol, port) is in use."""
        return bool(self.ports) and ports_conflict(ports, self.ports)

    def _count(self, pod: PodInfo, sign: int) -> None:
        shape = pod.shape
        self.requested.add(shape.requests, sign)
        self.weight_cpu += sign * shape.weight_cpu
        self.weight_memory += sign * shape.weight_memory
        for port in shape.ports:
            held = self.ports.get(port, 0) + sign
            if held:
                self.ports[port] = held
            else:
                del self.ports[port]

    def __repr__(self) -> str:
        return f"<Node {self.name} with {len(self.pods)} Pods>"


def ports_conflict(wanted: Iterable[tuple[str, str, int]], held: Iterable[tuple[str, str, int]]) -> bool:
    """Return whether two host ports conflict; 0.0.0.0 conflicts with every address."""
    every: Any = "0.0.0.0"  # noqa: S104
    return any(
        number == other_number and protocol == other_protocol and (address == other or every in (address, other))
        for address, protocol, number in wanted
        for other, other_protocol, other_number in held
    )
