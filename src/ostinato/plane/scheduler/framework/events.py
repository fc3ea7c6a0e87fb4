"""Cluster events and queueing hints.

An unschedulable Pod is retried when a plugin that rejected it returns, for an event, that the Pod may be schedulable
now (`QueueingHint`).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntFlag, auto
from typing import Any, Final

import msgspec

from ostinato.plane.scheduler.cache.node_info import NodeFacts
from ostinato.plane.scheduler.cache.pod_info import PodInfo

POD: Final = "Pod"
NODE: Final = "Node"
CLAIM: Final = "PersistentVolumeClaim"
VOLUME: Final = "PersistentVolume"
CLASS: Final = "StorageClass"
CSI_NODE: Final = "CSINode"
CSI_DRIVER: Final = "CSIDriver"
CAPACITY: Final = "CSIStorageCapacity"
ATTACHMENT: Final = "VolumeAttachment"


class Action(IntFlag):
    ADD = auto()
    DELETE = auto()
    UPDATE = auto()  # of kinds other than Pod and Node
    NODE_ALLOCATABLE = auto()
    NODE_LABEL = auto()
    NODE_TAINT = auto()
    POD_LABEL = auto()
    POD_SCALE_DOWN = auto()
    POD_GATES_ELIMINATED = auto()
    POD_TOLERATION = auto()


class ClusterEvent(msgspec.Struct, frozen=True):
    """`old` and `new` are `PodInfo`, `NodeFacts`, or an `Entry` for other kinds."""

    resource: str
    action: Action
    old: Any = None
    new: Any = None


QueueingHintFn = Callable[[PodInfo, ClusterEvent], bool]
"""Returns whether an event may make a rejected Pod schedulable."""


class QueueingHint(msgspec.Struct, frozen=True):
    """Events after which a plugin may accept a Pod. `hint_fn` defaults to None: every such event."""

    resource: str
    actions: Action
    hint_fn: QueueingHintFn | None = None

    def is_worth_requeuing(self, pod: PodInfo, event: ClusterEvent) -> bool:
        if event.resource != self.resource or not event.action & self.actions:
            return False
        return self.hint_fn is None or self.hint_fn(pod, event)


def pod_changes(old: PodInfo, new: PodInfo) -> list[ClusterEvent]:
    """Return the events of a Pod update; none if it does not affect scheduling."""
    if old.shape is new.shape:
        return []
    actions = []
    if old.labels != new.labels:
        actions.append(Action.POD_LABEL)
    if _is_less(old, new):
        actions.append(Action.POD_SCALE_DOWN)
    if old.spec.scheduling_gates and not new.spec.scheduling_gates:
        actions.append(Action.POD_GATES_ELIMINATED)
    if len(old.spec.tolerations) != len(new.spec.tolerations):
        actions.append(Action.POD_TOLERATION)
    return [ClusterEvent(POD, action, old, new) for action in actions]


def node_changes(old: NodeFacts, new: NodeFacts) -> list[ClusterEvent]:
    """Return the events of a node update; none if it does not affect scheduling."""
    actions = []
    freed = old.unschedulable and not new.unschedulable
    if freed or old.taints != new.taints:
        actions.append(Action.NODE_TAINT)
    if _amounts(old) != _amounts(new):
        actions.append(Action.NODE_ALLOCATABLE)
    if old.labels != new.labels:
        actions.append(Action.NODE_LABEL)
    return [ClusterEvent(NODE, action, old, new) for action in actions]


def _is_less(old: PodInfo, new: PodInfo) -> bool:
    """Return whether a request was reduced."""
    before, after = old.shape.requests, new.shape.requests
    if after.cpu < before.cpu or after.memory < before.memory or after.storage < before.storage:
        return True
    return any(after.scalars.get(name, 0) < amount for name, amount in before.scalars.items())


def _amounts(facts: NodeFacts) -> tuple[object, ...]:
    has = facts.allocatable
    return has.cpu, has.memory, has.storage, has.scalars, facts.pods
