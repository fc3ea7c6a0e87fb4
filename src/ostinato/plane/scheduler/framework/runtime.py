"""Framework runtime: runs the plugins of a profile and selects a node.

- Filters run in order; the first rejection counts.
- In large clusters only a part of the nodes is checked (percentageOfNodesToScore), starting where the last search
  ended.
- Pods that the local plugins cannot distinguish share cached results (`local_results`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from contextlib import suppress
from heapq import nlargest
from typing import Any, Final

import msgspec

from ostinato.plane.scheduler.cache.listers import Listers
from ostinato.plane.scheduler.cache.node_info import NodeInfo
from ostinato.plane.scheduler.cache.pod_info import PodInfo, Shape
from ostinato.plane.scheduler.cache.snapshot import Snapshot
from ostinato.plane.scheduler.framework.interface import MAX_NODE_SCORE, Cycle, Filter, Plugin
from ostinato.plane.scheduler.framework.local_results import LocalResults, WeightedPlugin
from ostinato.plane.scheduler.framework.search import Search
from ostinato.plane.scheduler.framework.status import Diagnosis, Status, unresolvable
from ostinato.plane.scheduler.nominator import Nominator
from ostinato.world.rng import Rng

_MIN_FEASIBLE_NODES: Final = 100  # kube-scheduler's minFeasibleNodesToFind
_EXPLAINED: Final = 8  # nodes whose scores explain a decision
_FEW_TOTALS: Final = 8  # distinct ones
_MAX_SHAPES: Final = 192  # cached


class Profile(msgspec.Struct, frozen=True):
    """Scheduling profile, selected by `spec.schedulerName`.

    - `plugins`: in order of execution.
    - `percentage`: percentageOfNodesToScore. Defaults to 0: adaptive.
    """

    name: str
    plugins: tuple[WeightedPlugin, ...]
    percentage: int = 0


class ScheduleResult(msgspec.Struct, frozen=True):
    """The selected node. `scores`: of the best nodes, if the framework explains its decisions."""

    node: NodeInfo
    cycle: Cycle
    scores: dict[str, int] | None = None


class FitError(msgspec.Struct, frozen=True):
    """No node is feasible. `filters`: the filters that ran, for preemption."""

    diagnosis: Diagnosis
    cycle: Cycle
    filters: list[Filter]


class InvalidScore(ValueError):  # noqa: N818
    """A plugin returned a score out of range."""


class _ShapeState(msgspec.Struct):
    """Cached data of a shape."""

    memo: dict[object, Any]
    results: LocalResults


class Framework:
    def __init__(
        self,
        profile: Profile,
        snapshot: Snapshot,
        listers: Listers,
        nominator: Nominator,
        rng: Rng,
        *,
        explains: bool = False,
    ) -> None:
        """`explains`: results have the scores of the best nodes. Defaults to False."""
        self._explains = explains
        self.profile = profile
        self._snapshot = snapshot
        self._listers = listers
        self._nominator = nominator
        self._rng = rng
        self._states: OrderedDict[Shape, _ShapeState] = OrderedDict()  # least recently used first
        self._results: OrderedDict[tuple[Hashable, ...], LocalResults] = OrderedDict()  # by keys of the local plugins
        self._next_start = 0  # slot at which the next search starts
        plugins = [weighted.plugin for weighted in profile.plugins]
        split = next((at for at, plugin in enumerate(plugins) if not plugin.local), len(plugins))
        self._local = profile.plugins[:split]
        self._non_local = profile.plugins[split:]

    @property
    def plugins(self) -> list[Plugin]:
        return [weighted.plugin for weighted in self.profile.plugins]

    def schedule(self, pod: PodInfo) -> ScheduleResult | FitError | None:
        """Schedule a Pod; None if there are no nodes."""
        nodes = self._snapshot.nodes
        if not nodes:
            return None
        state = self._state_of(pod)
        results = state.results
        cycle = Cycle(pod, self._snapshot, self._listers, state.memo)
        filters, rejected = self._pre_filter(cycle, results)
        if rejected is not None:
            return FitError(Diagnosis(len(nodes), {}, pre_filter_status=rejected), cycle, filters)
        search = Search(results, filters, self._nominator.nominated_pods_for(pod) if self._nominator else {})
        nominated = self._snapshot.node(self._nominator.node_of(pod.uid))
        if nominated is not None and search.filter_status(nominated) is None:
            return ScheduleResult(nominated, cycle)
        restricted = _restricted_nodes(filters)
        if restricted is None:
            feasible = search.find(
                nodes, self._next_start % len(nodes), _feasible_nodes_to_find(len(nodes), self.profile.percentage)
            )
            self._next_start = (self._next_start + search.checked) % len(nodes)
        else:
            feasible = search.find_among([node for name in sorted(restricted) if (node := self._snapshot.node(name))])
        if not feasible:
            return FitError(Diagnosis(len(nodes), search.statuses, _absent_nodes_status(filters)), cycle, filters)
        return self._select_host(cycle, results, feasible)

    def _state_of(self, pod: PodInfo) -> _ShapeState:
        shape = pod.shape
        state = self._states.get(shape)
        if state is None:
            state = self._states[shape] = _ShapeState({}, self._results_for(pod))
            if len(self._states) > _MAX_SHAPES:
                self._states.popitem(last=False)
        else:
            self._states.move_to_end(shape)
        return state

    def _results_for(self, pod: PodInfo) -> LocalResults:
        key = tuple([weighted.plugin.local_key(pod.shape) for weighted in self._local])
        results = self._results.pop(key, None)
        if results is None:
            results = LocalResults(Cycle(pod, self._snapshot, self._listers, {}), self._local)
            if len(self._results) >= _MAX_SHAPES:
                self._results.popitem(last=False)
        self._results[key] = results
        return results

    def _pre_filter(self, cycle: Cycle, results: LocalResults) -> tuple[list[Filter], Status | None]:
        if results.pre_filter_status is not None:
            return [], results.pre_filter_status
        filters = list(results.filters)
        rejected: Status | None = None
        for weighted in self._non_local:
            found = weighted.plugin.filter(cycle)
            if isinstance(found, Status):
                if not found.resolvable:
                    return [], found
                rejected = found
            elif found is not None:
                filters.append(found)
        return filters, rejected

    def _select_host(self, cycle: Cycle, results: LocalResults, nodes: list[NodeInfo]) -> ScheduleResult:
        if len(nodes) == 1:
            return ScheduleResult(nodes[0], cycle)
        totals = results.scores(nodes)
        for weighted in self.profile.plugins:
            if weighted.plugin in results.scored:
                continue
            scorer = weighted.plugin.score(cycle)
            if scorer is not None:
                scores = scorer.normalize(scorer.scores(nodes))
                if min(scores) < 0 or max(scores) > MAX_NODE_SCORE:
                    raise InvalidScore(
                        f"plugin {weighted.plugin.name!r} returns an invalid score {min(scores)} to {max(scores)}: "
                        f"it should be in the range of 0 to {MAX_NODE_SCORE} after normalizing"
                    )
                weight = weighted.weight
                totals = [total + weight * score for total, score in zip(totals, scores, strict=True)]
        best = max(totals)
        ties = [at for at, total in enumerate(totals) if total == best]
        selected = nodes[ties[0] if len(ties) == 1 else ties[self._rng.randrange(len(ties))]]
        if not self._explains:
            return ScheduleResult(selected, cycle)
        first = ties[:_EXPLAINED] if len(ties) >= _EXPLAINED else _largest(totals, ties, _EXPLAINED)
        return ScheduleResult(
            selected, cycle, {nodes[at].name: int(totals[at]) for at in first} | {selected.name: int(best)}
        )


def _largest(totals: Sequence[int], ties: Sequence[int], count: int) -> list[int]:
    """Return the positions of the largest, those of equal ones in order. `ties`: of the largest; fewer than `count`.

    Most nodes have one of few totals: to find these is several times as fast as a heap.
    """
    distinct = set(totals)
    if len(distinct) > _FEW_TOTALS:
        return nlargest(count, range(len(totals)), totals.__getitem__)
    found = [*ties]
    for total in sorted(distinct, reverse=True)[1:]:
        at = -1
        with suppress(ValueError):  # there are no more
            while len(found) < count:
                at = totals.index(total, at + 1)
                found.append(at)
    return found


def _restricted_nodes(filters: Sequence[Filter]) -> frozenset[str] | None:
    restricted: frozenset[str] | None = None
    for each in filters:
        if each.nodes is not None:
            restricted = each.nodes if restricted is None else restricted & each.nodes
    return restricted


def _absent_nodes_status(filters: Sequence[Filter]) -> Status | None:
    """Return the status of nodes that were not checked; None if all were."""
    plugins = sorted({each.plugin for each in filters if each.nodes is not None})
    if not plugins:
        return None
    return unresolvable(plugins[0], f"node(s) didn't satisfy plugin(s) [{' '.join(plugins)}]")


def _feasible_nodes_to_find(count: int, percentage: int) -> int:
    """Return the number of feasible nodes at which the search stops."""
    if count < _MIN_FEASIBLE_NODES:
        return count
    percentage = percentage or max(50 - count // 125, 5)
    return max(count * percentage // 100, _MIN_FEASIBLE_NODES)
