"""NodeResourcesFit: requests must fit on the node; scores by LeastAllocated."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

from ostinato.plane.placement.resources import Resources
from ostinato.plane.scheduler.cache.node_info import NodeFacts, NodeInfo
from ostinato.plane.scheduler.cache.pod_info import PodInfo, Shape
from ostinato.plane.scheduler.framework.events import NODE, POD, Action, ClusterEvent, QueueingHint
from ostinato.plane.scheduler.framework.interface import MAX_NODE_SCORE, Cycle, Filter, Plugin, Scorer
from ostinato.plane.scheduler.framework.status import Status, unresolvable, unschedulable

_NAME: Final = "NodeResourcesFit"
_TOO_MANY: Final = unschedulable(_NAME, "Too many pods")
_NOTHING: Final = Resources()


class ResourcesFit(Plugin):
    name = _NAME
    local = True
    local_score = True

    def local_key(self, shape: Shape) -> Hashable:
        return shape.requests.key, shape.weight_cpu, shape.weight_memory

    def filter(self, cycle: Cycle) -> Filter:
        return _Filter(cycle.shape.requests)

    def score(self, cycle: Cycle) -> Scorer:
        return _LeastAllocated(cycle.shape)

    def hints(self) -> Sequence[QueueingHint]:
        return (
            QueueingHint(POD, Action.DELETE),
            QueueingHint(POD, Action.POD_SCALE_DOWN, _pod_hint),
            QueueingHint(NODE, Action.ADD | Action.NODE_ALLOCATABLE, _node_hint),
        )


class _Filter(Filter):
    plugin = _NAME

    def __init__(self, requests: Resources) -> None:
        self._requests = requests
        self._is_nothing = requests.is_nothing

    def check(self, node: NodeInfo) -> Status | None:
        facts = node.facts
        if len(node.pods) + 1 > facts.pods:
            return self._insufficient(facts, node.requested, too_many=True)
        if self._is_nothing:
            return None
        requests, has, used = self._requests, facts.allocatable, node.requested
        if (
            requests.cpu > max(has.cpu - used.cpu, 0)
            or requests.memory > max(has.memory - used.memory, 0)
            or requests.storage > max(has.storage - used.storage, 0)
            or requests.scalars
        ):
            return self._insufficient(facts, used)
        return None

    def _insufficient(self, facts: NodeFacts, used: Resources, *, too_many: bool = False) -> Status | None:
        lacking = insufficient_resources(self._requests, facts.allocatable, used)
        if not lacking:
            return _TOO_MANY if too_many else None
        reasons = [f"Insufficient {name}" for name in lacking]
        if too_many:
            reasons.insert(0, "Too many pods")
        hopeless = bool(insufficient_resources(self._requests, facts.allocatable, _NOTHING))
        return (unresolvable if hopeless else unschedulable)(_NAME, *reasons)


class _LeastAllocated(Scorer):
    def __init__(self, shape: Shape) -> None:
        self._cpu = shape.weight_cpu
        self._memory = shape.weight_memory

    def score(self, node: NodeInfo) -> int:
        has = node.facts.allocatable
        score = parts = 0
        if has.cpu:
            parts += 1
            left = has.cpu - node.weight_cpu - self._cpu
            if left > 0:
                score += left * MAX_NODE_SCORE // has.cpu
        if has.memory:
            parts += 1
            left = has.memory - node.weight_memory - self._memory
            if left > 0:
                score += left * MAX_NODE_SCORE // has.memory
        return score // parts if parts else 0


def insufficient_resources(requests: Resources, has: Resources, used: Resources) -> list[str]:
    """Return the names of insufficient resources."""
    lacking = []
    if requests.cpu and requests.cpu > has.cpu - used.cpu:
        lacking.append("cpu")
    if requests.memory and requests.memory > has.memory - used.memory:
        lacking.append("memory")
    if requests.storage and requests.storage > has.storage - used.storage:
        lacking.append("ephemeral-storage")
    for name, amount in requests.scalars.items():
        if amount and amount > has.scalars.get(name, 0) - used.scalars.get(name, 0):
            lacking.append(name)
    return lacking


def _pod_hint(pod: PodInfo, event: ClusterEvent) -> bool:
    """Return whether a scaled-down Pod releases a resource that this one requests."""
    if event.new.uid == pod.uid:
        return True
    if not event.new.node_name:
        return False
    wants, before, after = pod.shape.requests, event.old.shape.requests, event.new.shape.requests
    return (
        bool(wants.cpu and before.cpu > after.cpu)
        or bool(wants.memory and before.memory > after.memory)
        or bool(wants.storage and before.storage > after.storage)
        or any(
            amount and before.scalars.get(name, 0) > after.scalars.get(name, 0)
            for name, amount in wants.scalars.items()
        )
    )


def _node_hint(pod: PodInfo, event: ClusterEvent) -> bool:
    """Return whether the node could fit the Pod when empty, and gained a resource that it requests."""
    wants, facts = pod.shape.requests, event.new
    if facts.pods < 1 or insufficient_resources(wants, facts.allocatable, _NOTHING):
        return False
    if event.old is None:
        return True
    had, has = event.old.allocatable, facts.allocatable
    return bool(
        facts.pods > event.old.pods
        or (wants.cpu and has.cpu > had.cpu)
        or (wants.memory and has.memory > had.memory)
        or (wants.storage and has.storage > had.storage)
        or any(amount and has.scalars.get(name, 0) > had.scalars.get(name, 0) for name, amount in wants.scalars.items())
    )
