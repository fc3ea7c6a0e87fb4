"""NodeResourcesBalancedAllocation: prefers nodes whose CPU and memory utilization stay balanced."""

from __future__ import annotations

from collections.abc import Hashable

from ostinato.plane.placement.resources import Resources
from ostinato.plane.scheduler.cache.node_info import NodeInfo
from ostinato.plane.scheduler.cache.pod_info import Shape
from ostinato.plane.scheduler.framework.interface import MAX_NODE_SCORE, Cycle, Plugin, Scorer


class BalancedAllocation(Plugin):
    name = "NodeResourcesBalancedAllocation"
    local = True
    local_score = True

    def local_key(self, shape: Shape) -> Hashable:
        return shape.requests.key

    def score(self, cycle: Cycle) -> Scorer | None:
        requests = cycle.shape.requests
        return _Scorer(requests) if requests.cpu or requests.memory else None


class _Scorer(Scorer):
    def __init__(self, requests: Resources) -> None:
        self._cpu = requests.cpu
        self._memory = requests.memory

    def score(self, node: NodeInfo) -> int:
        has, used = node.facts.allocatable, node.requested
        after = balance_score(used.cpu + self._cpu, used.memory + self._memory, has)
        before = balance_score(used.cpu, used.memory, has)
        return MAX_NODE_SCORE // 2 + (MAX_NODE_SCORE // 2 + after - before) // 2


def balance_score(cpu: int, memory: int, has: Resources) -> int:
    """Return 100 if both utilizations are equal, less the more they differ."""
    if not has.cpu or not has.memory:
        return MAX_NODE_SCORE
    difference = min(cpu / has.cpu, 1.0) - min(memory / has.memory, 1.0)
    return int((1 - abs(difference / 2)) * MAX_NODE_SCORE)
