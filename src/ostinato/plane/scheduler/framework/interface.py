"""Plugins: what decides where Pods go.

    class NotOnFridays(Plugin):
        name = "NotOnFridays"

        def filter(self, cycle):
            return None if cycle.pod.namespace != "batch" else NoBatchNodes()

- `gate`: whether a Pod may be scheduled at all yet.
- `filter`: called once for a Pod. It answers None if the plugin has nothing against any node, a `Status` to refuse the
  Pod as a whole, or a `Filter`, which is asked about each node.
- `score`: called once for a Pod that fits several nodes. It answers None if they are all the same to the plugin, or a
  `Scorer`, which is asked about each of them.
- `hints`: the events that may change its mind.
- `reserve` and `unreserve` keep accounts of what a Pod that has a node will use; `pre_bind` makes ready what it needs
  before it is bound.

Small ones are functions: `filter_by` and `score_by`.
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

MAX_NODE_SCORE: Final = 100  # the best score


class Cycle:
    """One try to find a node for a Pod."""

    __slots__ = ("listers", "memo", "pod", "snapshot", "state")

    def __init__(self, pod: PodInfo, snapshot: Snapshot, listers: Listers, memo: dict[object, Any]) -> None:
        """
        - `snapshot`: the nodes and their Pods.
        - `objects`: others, from the cache.
        - `memo`: what plugins remember of Pods of this shape.
        """
        self.pod = pod
        self.snapshot = snapshot
        self.listers = listers
        self.memo = memo
        self.state: dict[str, Any] = {}  # what plugins remember of this Pod, by the plugin's name

    @property
    def shape(self) -> Shape:
        return self.pod.shape


class Filter:
    """What a plugin has to say about nodes, for one Pod."""

    plugin: str = ""  # its name
    nodes: frozenset[str] | None = None  # the only ones that may do, by name; None is all

    def check(self, node: NodeInfo) -> Status | None:
        """None if the Pod fits."""
        raise NotImplementedError

    def copy(self) -> Filter:
        """For what-if: a filter that `added` and `removed` may change."""
        return self

    def add_pod(self, pod: PodInfo, node: NodeInfo) -> None:
        """What if this Pod were on the node, too?"""

    def remove_pod(self, pod: PodInfo, node: NodeInfo) -> None:
        """What if this Pod were not on the node?"""


class Scorer:
    """How much a plugin likes nodes, for one Pod."""

    def score(self, node: NodeInfo) -> int:
        """The more the better: from 0 to 100, or anything that `normalise` makes such."""
        raise NotImplementedError

    def scores(self, nodes: Sequence[NodeInfo]) -> list[int]:
        score = self.score
        return [score(node) for node in nodes]

    def normalize(self, scores: list[int]) -> list[int]:
        return scores


class Plugin:
    name: str = ""
    local: ClassVar[bool] = False
    """Whether its filter goes by the shape of the Pod, the node and the Pods on it alone, so that what it says holds
    until the node changes, for all Pods of the shape."""
    local_score: ClassVar[bool] = False
    """Whether the same goes for its score, which then is not normalised, and whether it has one."""

    def gate(self, pod: PodInfo) -> str:  # noqa: ARG002
        """Why a Pod must not be scheduled yet; "" if it may."""
        return ""

    def local_key(self, shape: Shape) -> Hashable:
        """What of a shape a local plugin goes by: what it says holds for all shapes of which this is the same."""
        return shape

    def filter(self, cycle: Cycle) -> Filter | Status | None:  # noqa: ARG002
        return None

    def score(self, cycle: Cycle) -> Scorer | None:  # noqa: ARG002
        return None

    def hints(self) -> Sequence[QueueingHint]:
        return ()

    def reserve(self, cycle: Cycle, node: NodeInfo) -> None:
        """The Pod has got the node."""

    def unreserve(self, cycle: Cycle, node: NodeInfo) -> None:
        """It has not, after all. Harmless when nothing was reserved."""

    async def pre_bind(self, cycle: Cycle, node: NodeInfo, dependencies: Dependencies) -> None:
        """Make ready what the Pod needs there; an error lets it be tried again."""


def normalize_scores(scores: list[int], *, reverse: bool = False) -> list[int]:
    """From 0 to 100, in proportion to the largest; `reverse`: the largest is the worst."""
    most = max(scores)
    if most <= 0:
        return [MAX_NODE_SCORE] * len(scores) if reverse else scores
    if reverse:
        return [MAX_NODE_SCORE - MAX_NODE_SCORE * score // most for score in scores]
    return [MAX_NODE_SCORE * score // most for score in scores]


FilterFunction = Callable[[PodInfo, NodeInfo], str | None]
ScoreFunction = Callable[[PodInfo, NodeInfo], int]


def filter_by(name: str, function: FilterFunction) -> Plugin:
    """A plugin of a function: why a Pod must not go to a node; None or "" if it may."""
    return _FilterBy(name, function)


def score_by(name: str, function: ScoreFunction) -> Plugin:
    """A plugin of a function: from 0 to 100, how good a node is for a Pod."""
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
