"""The framework: asks the plugins of a profile about a Pod and the nodes, and chooses.

- Filters are asked in order; the first that refuses a node has the word.
- Of many nodes only a part is looked at, from where the last Pod's search ended: enough to choose well, and fewer the
  more there are.
- Pods that the local plugins cannot tell apart share what these said (`verdicts`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Any, Final

import msgspec

from ostinato.plane.scheduler.cache.listers import Objects
from ostinato.plane.scheduler.cache.node_info import NodeInfo
from ostinato.plane.scheduler.cache.pod_info import PodInfo, Shape
from ostinato.plane.scheduler.cache.snapshot import Snapshot
from ostinato.plane.scheduler.framework.interface import MOST, Cycle, Filter, Plugin
from ostinato.plane.scheduler.framework.local_results import Verdicts, Weighted
from ostinato.plane.scheduler.framework.search import Search
from ostinato.plane.scheduler.framework.status import Diagnosis, Status, unresolvable
from ostinato.plane.scheduler.nominator import Nominator
from ostinato.world.rng import Rng

_FEWEST: Final = 100  # nodes that fit, after which a search may end
_MOST_MEMORIES: Final = 192  # shapes of which something is remembered


class Profile(msgspec.Struct, frozen=True):
    """A way to schedule, for Pods that ask for it by `spec.schedulerName`.

    - `plugins`: in the order in which they are asked.
    - `percentage`: of nodes that are looked at. Defaults to 0: fewer, the more nodes there are.
    """

    name: str
    plugins: tuple[Weighted, ...]
    percentage: int = 0


class Found(msgspec.Struct, frozen=True):
    """A node for a Pod."""

    node: NodeInfo
    cycle: Cycle


class NoFit(msgspec.Struct, frozen=True):
    """No node, and why. `filters` are those that were asked, to ask them again what if."""

    diagnosis: Diagnosis
    cycle: Cycle
    filters: list[Filter]


class InvalidScore(ValueError):  # noqa: N818 - what is the matter
    """A plugin's score is out of bounds."""


class _Memory(msgspec.Struct):
    """What is known of a shape: what plugins have noted, and the verdicts on it."""

    notes: dict[object, Any]
    verdicts: Verdicts


class Framework:
    def __init__(self, profile: Profile, snapshot: Snapshot, objects: Objects, nominator: Nominator, rng: Rng) -> None:
        self.profile = profile
        self._snapshot = snapshot
        self._objects = objects
        self._nominator = nominator
        self._rng = rng
        self._memories: OrderedDict[Shape, _Memory] = OrderedDict()  # least recently used first
        self._verdicts: OrderedDict[tuple[Hashable, ...], Verdicts] = OrderedDict()  # the same, by what plugins go by
        self._start = 0  # the slot at which the next search begins
        plugins = [weighted.plugin for weighted in profile.plugins]
        split = next((at for at, plugin in enumerate(plugins) if not plugin.local), len(plugins))
        self._local = profile.plugins[:split]
        self._others = profile.plugins[split:]

    @property
    def plugins(self) -> list[Plugin]:
        return [weighted.plugin for weighted in self.profile.plugins]

    def schedule(self, pod: PodInfo) -> Found | NoFit | None:
        """The best node for a Pod; None if there are no nodes."""
        nodes = self._snapshot.nodes
        if not nodes:
            return None
        memory = self._memory(pod)
        verdicts = memory.verdicts
        cycle = Cycle(pod, self._snapshot, self._objects, memory.notes)
        filters, refused = self._prepare(cycle, verdicts)
        if refused is not None:
            return NoFit(Diagnosis(len(nodes), {}, refused=refused), cycle, filters)
        search = Search(verdicts, filters, self._nominator.before(pod) if self._nominator else {})
        nominated = self._snapshot.node(self._nominator.node_of(pod.uid))
        if nominated is not None and search.refuses(nominated) is None:
            return Found(nominated, cycle)
        only = _only(filters)
        if only is None:
            fitting = search.among(nodes, self._start % len(nodes), _wanted(len(nodes), self.profile.percentage))
            self._start = (self._start + search.looked_at) % len(nodes)
        else:
            fitting = search.in_turn([node for name in sorted(only) if (node := self._snapshot.node(name))])
        if not fitting:
            return NoFit(Diagnosis(len(nodes), search.statuses, _absent(filters)), cycle, filters)
        return Found(self._best(cycle, verdicts, fitting), cycle)

    def _memory(self, pod: PodInfo) -> _Memory:
        shape = pod.shape
        memory = self._memories.get(shape)
        if memory is None:
            memory = self._memories[shape] = _Memory({}, self._verdicts_on(pod))
            if len(self._memories) > _MOST_MEMORIES:
                self._memories.popitem(last=False)
        else:
            self._memories.move_to_end(shape)
        return memory

    def _verdicts_on(self, pod: PodInfo) -> Verdicts:
        key = tuple([weighted.plugin.local_key(pod.shape) for weighted in self._local])
        verdicts = self._verdicts.pop(key, None)
        if verdicts is None:
            verdicts = Verdicts(Cycle(pod, self._snapshot, self._objects, {}), self._local)
            if len(self._verdicts) >= _MOST_MEMORIES:
                self._verdicts.popitem(last=False)
        self._verdicts[key] = verdicts
        return verdicts

    def _prepare(self, cycle: Cycle, verdicts: Verdicts) -> tuple[list[Filter], Status | None]:
        if verdicts.refused is not None:
            return [], verdicts.refused
        filters = list(verdicts.filters)
        refused: Status | None = None
        for weighted in self._others:
            found = weighted.plugin.filter(cycle)
            if isinstance(found, Status):
                if not found.resolvable:
                    return [], found
                refused = found
            elif found is not None:
                filters.append(found)
        return filters, refused

    def _best(self, cycle: Cycle, verdicts: Verdicts, nodes: list[NodeInfo]) -> NodeInfo:
        if len(nodes) == 1:
            return nodes[0]
        totals = verdicts.scores(nodes)
        for weighted in self.profile.plugins:
            if weighted.plugin in verdicts.scored:
                continue
            scorer = weighted.plugin.score(cycle)
            if scorer is not None:
                scores = scorer.normalise(scorer.scores(nodes))
                if min(scores) < 0 or max(scores) > MOST:
                    raise InvalidScore(
                        f"plugin {weighted.plugin.name!r} returns an invalid score {min(scores)} to {max(scores)}: "
                        f"it should be in the range of 0 to {MOST} after normalizing"
                    )
                weight = weighted.weight
                totals = [total + weight * score for total, score in zip(totals, scores, strict=True)]
        best = max(totals)
        ties = [at for at, total in enumerate(totals) if total == best]
        return nodes[ties[0] if len(ties) == 1 else ties[self._rng.randrange(len(ties))]]


def _only(filters: Sequence[Filter]) -> frozenset[str] | None:
    only: frozenset[str] | None = None
    for each in filters:
        if each.nodes is not None:
            only = each.nodes if only is None else only & each.nodes
    return only


def _absent(filters: Sequence[Filter]) -> Status | None:
    """What is to be said of nodes that were not looked at; None if all were."""
    plugins = sorted({each.plugin for each in filters if each.nodes is not None})
    if not plugins:
        return None
    return unresolvable(plugins[0], f"node(s) didn't satisfy plugin(s) [{' '.join(plugins)}]")


def _wanted(count: int, percentage: int) -> int:
    """How many nodes that fit are enough, of so many."""
    if count < _FEWEST:
        return count
    percentage = percentage or max(50 - count // 125, 5)
    return max(count * percentage // 100, _FEWEST)
