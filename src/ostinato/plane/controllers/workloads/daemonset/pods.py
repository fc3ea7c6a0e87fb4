"""Pods of a DaemonSet, each pinned to a node at creation."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

import msgspec

from ostinato.api.gvk import NamespacedName
from ostinato.api.struct import BuiltinStruct
from ostinato.api.time import Time
from ostinato.cache.store.entry import Entry
from ostinato.kinds.apps_v1 import DaemonSet
from ostinato.kinds.core_v1 import Affinity, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod
from ostinato.plane.controllers.workloads.daemonset.placement import tolerations
from ostinato.plane.controllers.workloads.pod_template import pod_from_template
from ostinato.plane.placement.node_selectors import NAME

HASH_LABEL: Final = "controller-revision-hash"
GENERATION_LABEL: Final = "pod-template-generation"
GENERATION_ANNOTATION: Final = "deprecated.daemonset.template.generation"


class DaemonPod(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a daemon Pod that the controller needs."""

    key: NamespacedName
    uid: str
    labels: Mapping[str, str]
    created: str
    node: str  # assigned or targeted node; "" if unknown
    is_bound: bool
    is_terminating: bool
    phase: str
    ready_since: datetime | None  # None if not ready
    is_ready: bool

    @classmethod
    def of(cls, entry: Entry) -> DaemonPod:
        pod = _read(entry.data)
        ready = next((each for each in pod.status.conditions if each.type == "Ready" and each.status == "True"), None)
        return cls(
            key=entry.key,
            uid=entry.uid,
            labels=entry.labels,
            created=pod.metadata.creation_timestamp or "",
            node=pod.spec.node_name or _target_node(pod.spec.affinity),
            is_bound=bool(pod.spec.node_name),
            is_terminating=entry.is_being_deleted,
            phase=pod.status.phase,
            ready_since=Time.parse(ready.last_transition_time) if ready and ready.last_transition_time else None,
            is_ready=ready is not None,
        )

    @property
    def is_finished(self) -> bool:
        return self.phase in ("Failed", "Succeeded")

    @property
    def age(self) -> tuple[bool, str, str]:
        """Sort key: scheduled Pods first, then the oldest."""
        return not self.is_bound, self.created, self.key.name

    def is_available(self, seconds: int, now: datetime) -> bool:
        """Return whether the Pod has been ready for this many seconds."""
        if not self.is_ready:
            return False
        since = self.ready_since
        return seconds == 0 or (since is not None and (now - since).total_seconds() >= seconds)


def template_generation(owner: DaemonSet) -> str:
    """Return the deprecated template generation; "" if there is none."""
    text = owner.metadata.annotations.get(GENERATION_ANNOTATION, "")
    return text if text.isascii() and text.isdecimal() else ""


def is_updated(pod: DaemonPod, revision: str, generation: str) -> bool:
    """Return whether the Pod has the current template."""
    labels = pod.labels
    return labels.get(HASH_LABEL) == revision or (bool(generation) and labels.get(GENERATION_LABEL) == generation)


class PodFactory:
    """Builds new Pods of one DaemonSet revision."""

    def __init__(self, owner: DaemonSet, revision: str) -> None:
        self._pod = pod_from_template(owner.spec.template, owner)
        self._pod.metadata.labels[HASH_LABEL] = revision
        if generation := template_generation(owner):
            self._pod.metadata.labels[GENERATION_LABEL] = generation
        self._pod.spec.tolerations = tolerations(self._pod.spec)

    def new_pod(self, node: str) -> Pod:
        """Return a Pod for a node. It shares all fields except the affinity with other Pods; do not modify it."""
        spec = msgspec.structs.replace(self._pod.spec, affinity=_pinned_to(self._pod.spec.affinity, node))
        return Pod(metadata=self._pod.metadata, spec=spec)


def _pinned_to(affinity: Affinity | None, node: str) -> Affinity:
    """Return the affinity with the node as the only required term; the other terms are already satisfied."""
    field = NodeSelectorRequirement(key=NAME, operator="In", values=[node])
    required = NodeSelector(node_selector_terms=[NodeSelectorTerm(match_fields=[field])])
    before = affinity or Affinity()
    node_affinity = msgspec.structs.replace(
        before.node_affinity or NodeAffinity(), required_during_scheduling_ignored_during_execution=required
    )
    return msgspec.structs.replace(before, node_affinity=node_affinity)


class _Metadata(BuiltinStruct):
    creation_timestamp: str | None = None


class _NodeAffinity(BuiltinStruct):
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None


class _Affinity(BuiltinStruct):
    node_affinity: _NodeAffinity | None = None


class _Spec(BuiltinStruct):
    node_name: str = ""
    affinity: _Affinity | None = None


class _Condition(BuiltinStruct):
    type: str = ""
    status: str = ""
    last_transition_time: str | None = None


class _Status(BuiltinStruct):
    phase: str = ""
    conditions: list[_Condition] = []


class _Pod(BuiltinStruct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


_read = msgspec.json.Decoder(_Pod).decode


def _target_node(affinity: _Affinity | None) -> str:
    node = None if affinity is None else affinity.node_affinity
    required = None if node is None else node.required_during_scheduling_ignored_during_execution
    for term in [] if required is None else required.node_selector_terms:
        for field in term.match_fields:
            if field.key == NAME and field.operator == "In":
                return field.values[0] if len(field.values) == 1 else ""
    return ""
