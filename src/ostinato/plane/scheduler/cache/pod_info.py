"""PodInfo: the fields of a Pod that scheduling needs, decoded once.

Pods of one template differ in name and uid only. Everything else is their `Shape`, which is compiled once; results for
a shape are shared by all of its Pods.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

import msgspec

from ostinato.api.gvk import NamespacedName
from ostinato.api.struct import BuiltinStruct
from ostinato.cache.store.entry import Entry
from ostinato.kinds.core_v1 import NodeSelector, NodeSelectorTerm, PreferredSchedulingTerm
from ostinato.plane.placement import node_selectors as node_terms
from ostinato.plane.placement.node_selectors import Matches
from ostinato.plane.placement.resources import RequestsSpec, Resources, nonzero_requests_of, requests_of
from ostinato.plane.placement.taints import Toleration
from ostinato.plane.scheduler.cache.affinity_terms import PodAffinity, Term, preferred_terms, required_terms

_MOST_SHAPES: Final = 2048  # cached; Pods hold their own


class NodeAffinity(BuiltinStruct):
    required: NodeSelector | None = msgspec.field(name="requiredDuringSchedulingIgnoredDuringExecution", default=None)
    preferred: list[PreferredSchedulingTerm] = msgspec.field(
        name="preferredDuringSchedulingIgnoredDuringExecution", default=[]
    )


class Affinity(BuiltinStruct):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class SpreadConstraint(BuiltinStruct):
    max_skew: int = 1
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: dict[str, Any] | None = None
    min_domains: int | None = None
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"
    match_label_keys: list[str] = []


class ClaimSource(BuiltinStruct):
    claim_name: str = ""


class ImageSource(BuiltinStruct):
    reference: str = ""


class Volume(BuiltinStruct):
    """Fields of volumes that matter for scheduling."""

    name: str = ""
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: dict[str, Any] | None = None
    image: ImageSource | None = None
    gce_persistent_disk: dict[str, Any] | None = None
    aws_elastic_block_store: dict[str, Any] | None = None
    iscsi: dict[str, Any] | None = None
    rbd: dict[str, Any] | None = None

    @property
    def is_disk(self) -> bool:
        """Whether VolumeRestrictions applies to it."""
        disks = (self.gce_persistent_disk, self.aws_elastic_block_store, self.iscsi, self.rbd)
        return any(disk is not None for disk in disks)


class Gate(BuiltinStruct):
    name: str = ""


class PodSpec(RequestsSpec):
    node_name: str = ""
    scheduler_name: str = "default-scheduler"
    priority: int = 0
    preemption_policy: str = ""
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: list[Toleration] = []
    topology_spread_constraints: list[SpreadConstraint] = []
    volumes: list[Volume] = []
    scheduling_gates: list[Gate] = []


class Owner(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class _Metadata(BuiltinStruct):
    owner_references: list[Owner] = []


class _Status(BuiltinStruct):
    phase: str = ""
    nominated_node_name: str = ""


class _Pod(BuiltinStruct):
    metadata: _Metadata
    spec: PodSpec
    status: _Status = msgspec.field(default_factory=_Status)


_decode = msgspec.json.Decoder(_Pod).decode
_encode = msgspec.json.Encoder().encode
_BARE: Final = Volume()


class Shape:
    """What Pods of one template have in common."""

    def __init__(self, namespace: str, labels: Mapping[str, str], owner: Owner | None, spec: PodSpec) -> None:
        self.namespace = namespace
        self.labels = labels
        self.owner = owner  # controller reference
        self.spec = spec
        self.requests: Resources = requests_of(spec)
        self.weight_cpu, self.weight_memory = nonzero_requests_of(spec)
        self.ports: tuple[tuple[str, str, int], ...] = tuple(
            (port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port)  # noqa: S104 - what it means
            for container in (*spec.containers, *_sidecars(spec))
            for port in container.ports or ()
            if port.host_port > 0
        )
        affinity = spec.affinity.pod_affinity if spec.affinity else None
        anti_affinity = spec.affinity.pod_anti_affinity if spec.affinity else None
        self.affinity: tuple[Term, ...] = required_terms(affinity.required, namespace, labels) if affinity else ()
        self.anti_affinity: tuple[Term, ...] = (
            required_terms(anti_affinity.required, namespace, labels) if anti_affinity else ()
        )
        self.preferred_affinity: tuple[Term, ...] = (
            preferred_terms(affinity.preferred, namespace, labels) if affinity else ()
        )
        self.preferred_anti_affinity: tuple[Term, ...] = (
            preferred_terms(anti_affinity.preferred, namespace, labels) if anti_affinity else ()
        )
        self.has_affinity = bool(
            self.affinity or self.anti_affinity or self.preferred_affinity or self.preferred_anti_affinity
        )
        self.disks: tuple[Volume, ...] = tuple([volume for volume in spec.volumes if volume.is_disk])

    @cached_property
    def required_nodes(self) -> Matches | None:
        """Compiled nodeSelector and required node affinity; None if all nodes match."""
        selector, wanted = self.spec.node_selector, self.required_node_terms
        if not selector and wanted is None:
            return None
        matches = None if wanted is None else node_terms.matcher(wanted)
        pairs = tuple(selector.items())

        def allowed(labels: Mapping[str, str], name: str) -> bool:
            return all(labels.get(key) == value for key, value in pairs) and (matches is None or matches(labels, name))

        return allowed

    @property
    def required_node_terms(self) -> list[NodeSelectorTerm] | None:
        affinity = self.spec.affinity.node_affinity if self.spec.affinity else None
        return affinity.required.node_selector_terms if affinity and affinity.required else None


def _sidecars(spec: PodSpec) -> list[Any]:
    return [container for container in spec.init_containers if container.restart_policy == "Always"]


class PodInfo:
    """One Pod: its shape and its own fields. It does not hold the object, which the cache stores more compactly."""

    __slots__ = (
        "generation",
        "is_being_deleted",
        "key",
        "node_name",
        "nominated",
        "phase",
        "resource_version",
        "shape",
        "uid",
    )

    def __init__(self, entry: Entry, shape: Shape, node_name: str, phase: str, nominated: str) -> None:
        self.key: NamespacedName = entry.key
        self.uid = entry.uid
        self.generation = entry.generation
        self.resource_version = entry.resource_version
        self.is_being_deleted = entry.deletion_timestamp is not None
        self.shape = shape
        self.node_name = node_name
        self.phase = phase
        self.nominated = nominated  # status.nominatedNodeName

    @property
    def namespace(self) -> str:
        return self.key.namespace

    @property
    def name(self) -> str:
        return self.key.name

    @property
    def labels(self) -> Mapping[str, str]:
        return self.shape.labels

    @property
    def spec(self) -> PodSpec:
        return self.shape.spec

    @property
    def priority(self) -> int:
        return self.shape.spec.priority

    @property
    def scheduler_name(self) -> str:
        return self.shape.spec.scheduler_name

    @property
    def is_finished(self) -> bool:
        return self.phase in ("Succeeded", "Failed")

    @property
    def claims(self) -> list[str]:
        """Names of the claims of its volumes, ephemeral ones included."""
        names = []
        for volume in self.shape.spec.volumes:
            if volume.persistent_volume_claim is not None:
                names.append(volume.persistent_volume_claim.claim_name)
            elif volume.ephemeral is not None:
                names.append(f"{self.name}-{volume.name}")
        return names

    def on(self, node: str) -> PodInfo:
        """Return the Pod assigned to a node."""
        there = PodInfo.__new__(PodInfo)
        for field in PodInfo.__slots__:
            setattr(there, field, getattr(self, field))
        there.node_name = node
        return there

    def __repr__(self) -> str:
        return f"<Pod {self.key}>"


class PodReader:
    """Decodes Pods and caches shapes."""

    def __init__(self) -> None:
        self._shapes: OrderedDict[bytes, Shape] = OrderedDict()  # least recently used first

    def read(self, entry: Entry) -> PodInfo:
        pod = _decode(entry.data)
        spec, node_name = pod.spec, pod.spec.node_name
        spec.node_name = ""
        if spec.volumes:
            spec.volumes = _that_matter(spec.volumes)
        owner = next((each for each in pod.metadata.owner_references if each.controller), None)
        signature = b"%b\n%b\n%b\n%b" % (
            entry.key.namespace.encode(),
            entry.labels_json,
            owner.uid.encode() if owner is not None else b"",
            _encode(spec),
        )
        shape = self._shapes.get(signature)
        if shape is None:
            shape = self._shapes[signature] = Shape(entry.key.namespace, entry.labels, owner, spec)
            if len(self._shapes) > _MOST_SHAPES:
                self._shapes.popitem(last=False)
        else:
            self._shapes.move_to_end(signature)
        return PodInfo(entry, shape, node_name, pod.status.phase, pod.status.nominated_node_name)


def _that_matter(volumes: list[Volume]) -> list[Volume]:
    """Drop volumes that do not matter for scheduling; their names often differ between Pods of one template."""
    kept = []
    for volume in volumes:
        name = volume.name
        volume.name = ""
        if volume != _BARE:
            if volume.ephemeral is not None:
                volume.name = name
            kept.append(volume)
    return kept
