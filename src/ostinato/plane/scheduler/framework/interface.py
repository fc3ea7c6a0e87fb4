"""Plugin interface of the scheduling framework.

    class NotOnFridays(Plugin):
        name = "NotOnFridays"

        def filter(self, cycle):
            return None if cycle.pod.namespace != "batch" else NoBatchNodes()

- `gate` (PreEnqueue): whether a Pod may enter the queue.
- `filter` (PreFilter): called once per Pod. Returns None if all nodes pass, a `Status` to reject the Pod, or a `Filter`
  that is called for each node.
- `score` (PreScore): called once per Pod with several feasible nodes. Returns None, or a `Scorer` that is called for
  each node.
- `hints` (EnqueueExtensions): events after which a rejected Pod is retried.
- `reserve`, `unreserve`: account for a Pod that was assumed on a node.
- `pre_bind`: prepares what the Pod needs before it is bound.

Simple plugins are functions: `filter_by` and `score_by`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, ClassVar, Final

from ostinato.controllers.runnable import Dependencies
from ostinato.plane.scheduler.cache.listers import Listers
from ostinato.plane.scheduler.cache.node_info import NodeInfo
from ostinato.plane.scheduler.cache.pod_info import PodInfo, Shape
from ostinato.plane.scheduler.cache.snapshot import Snapshot
from ostinato.plane.scheduler.framework.events import NODE, POD, Action, QueueingHint
from ostinato.plane.scheduler.framework.status import Status, unresolvable

MAX_NODE_SCORE: Final = 100  # kube-scheduler's MaxNodeScore


class Cycle:
    """One scheduling attempt of a Pod."""

    __slots__ = ("listers", "memo", "pod", "snapshot", "state")

    def __init__(self, pod: PodInfo, snapshot: Snapshot, listers: Listers, memo: dict[object, Any]) -> None:
        """
        - `snapshot`: nodes and their Pods.
        - `listers`: other kinds.
        - `memo`: cache of the plugins, shared by Pods of one shape.
        """
        self.pod = pod
        self.snapshot = snapshot
        self.listers = listers
        self.memo = memo
        self.state: dict[str, Any] = {}  # CycleState: data of this attempt, by plugin name

    @property
    def shape(self) -> Shape:
        return self.pod.shape


class Filter:
    """Filter of a plugin for one Pod."""

    plugin: str = ""  # name of the plugin
    nodes: frozenset[str] | None = None  # names of the only candidates; None for all nodes

    def check(self, node: NodeInfo) -> Status | None:
        """Return None if the Pod fits on the node."""
        raise NotImplementedError

    def copy(self) -> Filter:
        """Return a copy for dry runs, which `add_pod` and `remove_pod` may change."""
        return self

    def add_pod(self, pod: PodInfo, node: NodeInfo) -> None:
        """Assume that the Pod is on the node."""

    def remove_pod(self, pod: PodInfo, node: NodeInfo) -> None:
        """Assume that the Pod is not on the node."""


class Scorer:
    """Scores of a plugin for one Pod."""

    def score(self, node: NodeInfo) -> int:
        """Return 0 to 100, higher is better, or any number that `normalize` maps to that range."""
        raise NotImplementedError

    def scores(self, nodes: Sequence[NodeInfo]) -> list[int]:
        score = self.score
        return [score(node) for node in nodes]

    def normalize(self, scores: list[int]) -> list[int]:
        return scores


class Plugin:
    name: str = ""
    local: ClassVar[bool] = False
    """Whether the filter depends on the Pod's shape, the node and its Pods only: results are cached per shape until the
    node changes.
    """
    local_score: ClassVar[bool] = False
    """Whether the plugin has a score that depends on the same only; such scores are not normalized."""

    def gate(self, pod: PodInfo) -> str:  # noqa: ARG002
        """Return why the Pod must not be scheduled yet; "" if it may."""
        return ""

    def local_key(self, shape: Shape) -> Hashable:
        """Return what the results of a local plugin depend on; shapes with equal keys share results."""
        return shape

    def filter(self, cycle: Cycle) -> Filter | Status | None:  # noqa: ARG002
        return None

    def score(self, cycle: Cycle) -> Scorer | None:  # noqa: ARG002
        return None

    def hints(self) -> Sequence[QueueingHint]:
        return ()

    def reserve(self, cycle: Cycle, node: NodeInfo) -> None:
        """The Pod was assumed on the node."""

    def unreserve(self, cycle: Cycle, node: NodeInfo) -> None:
        """Undo `reserve`; must be idempotent."""

    async def pre_bind(self, cycle: Cycle, node: NodeInfo, dependencies: Dependencies) -> None:
        """Prepare what the Pod needs on the node; on an error the Pod is retried."""


def normalize_scores(scores: list[int], *, reverse: bool = False) -> list[int]:
    """Scale scores to 0..100, relative to the largest. `reverse`: the largest becomes 0."""
    most = max(scores)
    if most <= 0:
        return [MAX_NODE_SCORE] * len(scores) if reverse else scores
    if reverse:
        return [MAX_NODE_SCORE - MAX_NODE_SCORE * score // most for score in scores]
    return [MAX_NODE_SCORE * score // most for score in scores]


FilterFunction = Callable[[PodInfo, NodeInfo], str | None]
ScoreFunction = Callable[[PodInfo, NodeInfo], int]


def filter_by(name: str, function: FilterFunction) -> Plugin:
    """Return a plugin from a function that returns why a Pod cannot run on a node; None or "" if it can."""
    return _FilterBy(name, function)


def score_by(name: str, function: ScoreFunction) -> Plugin:
    """Return a plugin from a function that scores a node for a Pod, from 0 to 100."""
    return _ScoreBy(name, function)


class _FilterBy(Plugin):
    def __init__(self, name: str, function: FilterFunction) -> None:
        self.name = name
        self._function = function

    def filter(self, cycle: Cycle) -> Filter:
        return _FunctionFilter(self.name, self._function, cycle.pod)

    def hints(self) -> Sequence[QueueingHint]:
        every = ~Action(0)
        return (QueueingHint(NODE, every), QueueingHint(POD, every))


class _FunctionFilter(Filter):
    def __init__(self, plugin: str, function: FilterFunction, pod: PodInfo) -> None:
        self.plugin = plugin
        self._function = function
        self._pod = pod

    def check(self, node: NodeInfo) -> Status | None:
        reason = self._function(self._pod, node)
        return unresolvable(self.plugin, reason) if reason else None


class _ScoreBy(Plugin):
    def __init__(self, name: str, function: ScoreFunction) -> None:
        self.name = name
        self._function = function

    def score(self, cycle: Cycle) -> Scorer:
        return _FunctionScorer(self._function, cycle.pod)


class _FunctionScorer(Scorer):
    def __init__(self, function: ScoreFunction, pod: PodInfo) -> None:
        self._function = function
        self._pod = pod

    def score(self, node: NodeInfo) -> int:
        return self._function(self._pod, node)
