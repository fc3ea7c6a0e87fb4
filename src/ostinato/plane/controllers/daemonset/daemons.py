"""Daemons: the Pods of a DaemonSet, each of which is meant for a node from the beginning."""

from __future__ import annotations

from typing import Final

import msgspec

from ostinato.api.struct import Struct
from ostinato.kinds.apps_v1 import DaemonSet
from ostinato.kinds.core_v1 import Affinity, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod
from ostinato.plane.controllers.daemonset.placement import tolerations
from ostinato.plane.pods import PodState, PodStateSpec
from ostinato.plane.scheduler.node_terms import NAME
from ostinato.plane.scheduler.node_terms import NodeSelector as Terms
from ostinato.plane.templates import pod_from_template

HASH_LABEL: Final = "controller-revision-hash"
GENERATION_LABEL: Final = "pod-template-generation"
GENERATION_ANNOTATION: Final = "deprecated.daemonset.template.generation"


class DaemonNodeAffinity(Struct):
    required_during_scheduling_ignored_during_execution: Terms | None = None


class DaemonAffinity(Struct):
    node_affinity: DaemonNodeAffinity | None = None


class DaemonSpec(PodStateSpec):
    affinity: DaemonAffinity | None = None


class Daemon(PodState, version="v1", kind="Pod", plural="pods"):
    """A Pod, and for which node it is."""

    spec: DaemonSpec = msgspec.field(default_factory=DaemonSpec)

    @property
    def node(self) -> str:
        """The node that it is on, or that it is meant for; "" if nobody knows."""
        if self.spec.node_name:
            return self.spec.node_name
        affinity = None if self.spec.affinity is None else self.spec.affinity.node_affinity
        required = None if affinity is None else affinity.required_during_scheduling_ignored_during_execution
        for term in [] if required is None else required.node_selector_terms:
            for field in term.match_fields:
                if field.key == NAME and field.operator == "In":
                    return field.values[0] if len(field.values) == 1 else ""
        return ""

    @property
    def age(self) -> tuple[bool, str, str]:
        """By which they are sorted: those on a node first, then the oldest."""
        return not self.spec.node_name, str(self.metadata.creation_timestamp or ""), self.metadata.name


def template_generation(owner: DaemonSet) -> str:
    """The number of the template, by an older way to count; "" if there is none."""
    text = owner.metadata.annotations.get(GENERATION_ANNOTATION, "")
    return text if text.isascii() and text.isdecimal() else ""


def is_updated(pod: Daemon, revision: str, generation: str) -> bool:
    """Whether it was made from the template as it is now."""
    labels = pod.metadata.labels
    return labels.get(HASH_LABEL) == revision or (bool(generation) and labels.get(GENERATION_LABEL) == generation)


class Mould:
    """What all new Pods of a DaemonSet have in common."""

    def __init__(self, owner: DaemonSet, revision: str) -> None:
        self._pod = pod_from_template(owner.spec.template, owner)
        self._pod.metadata.labels[HASH_LABEL] = revision
        if generation := template_generation(owner):
            self._pod.metadata.labels[GENERATION_LABEL] = generation
        self._pod.spec.tolerations = tolerations(self._pod.spec)

    def cast(self, node: str) -> Pod:
        """A Pod for a node. It shares all but its affinity with the others, and is to be created, not changed."""
        spec = msgspec.structs.replace(self._pod.spec, affinity=_only(self._pod.spec.affinity, node))
        return Pod(metadata=self._pod.metadata, spec=spec)


def _only(affinity: Affinity | None, node: str) -> Affinity:
    """The same, but for this node alone. What was required before has been seen to: the node is fit."""
    field = NodeSelectorRequirement(key=NAME, operator="In", values=[node])
    required = NodeSelector(node_selector_terms=[NodeSelectorTerm(match_fields=[field])])
    before = affinity or Affinity()
    node_affinity = msgspec.structs.replace(
        before.node_affinity or NodeAffinity(), required_during_scheduling_ignored_during_execution=required
    )
    return msgspec.structs.replace(before, node_affinity=node_affinity)
