"""The framework: asks the plugins of a profile about a Pod and the nodes, and chooses.

- Filters are asked in order; the first that refuses a node has the word.
- Of many nodes only a part is looked at, from where the last Pod's search ended: enough to choose well, and fewer the
  more there are.
- What *local* plugins say of a shape and a node is remembered until the node changes. Pods of one template so cost the
  look at a few nodes each, however many there are.
- Pods that were promised room on a node count there for others of no higher priority: a node must do with them, and
  also without them, for they may never come.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from ostinato.plane.scheduler.nodes import NodeInfo
from ostinato.plane.scheduler.nominator import Nominator
from ostinato.plane.scheduler.objects import Objects
from ostinato.plane.scheduler.plugin import MOST, Cycle, Filter, Plugin, Scorer
from ostinato.plane.scheduler.pods import PodInfo, Shape
from ostinato.plane.scheduler.snapshot import Snapshot
from ostinato.plane.scheduler.status import Diagnosis, Status, unresolvable
from ostinato.world.rng import Rng

_FEWEST: Final = 100  # nodes that fit, after which a search may end
_REFUSED: Final = -1
_UNKNOWN: Final = -2
_MOST_MEMORIES: Final = 192  # shapes of which verdicts are remembered


class Weighted(msgspec.Struct, frozen=True):
    """A plugin, and what its score counts."""

    plugin: Plugin
    weight: int = 1


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


class Framework:
    def __init__(self, profile: Profile, snapshot: Snapshot, objects: Objects, nominator: Nominator, rng: Rng) -> None:
        self.profile = profile
        self._snapshot = snapshot
        self._objects = objects
        self._nominator = nominator
        self._rng = rng
        self._memories: OrderedDict[Shape, _Memory] = OrderedDict()  # least recently used first
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
        cycle = Cycle(pod, self._snapshot, self._objects, memory.notes)
        filters, refused = self._prepare(cycle, memory)
        if refused is not None:
            return NoFit(Diagnosis(len(nodes), {}, refused=refused), cycle, filters)
        search = _Search(cycle, memory, filters, self._nominator.before(pod) if self._nominator else {})
        nominated = self._snapshot.node(self._nominator.node_of(pod.uid) or pod.nominated)
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
        return Found(self._best(cycle, memory, fitting), cycle)

    def _memory(self, pod: PodInfo) -> _Memory:
        memory = self._memories.get(pod.shape)
        if memory is None:
            memory = self._memories[pod.shape] = _Memory(pod, self._local, self._snapshot, self._objects)
            if len(self._memories) > _MOST_MEMORIES:
                self._memories.popitem(last=False)
        else:
            self._memories.move_to_end(pod.shape)
        return memory

    def _prepare(self, cycle: Cycle, memory: _Memory) -> tuple[list[Filter], Status | None]:
        if memory.refused is not None:
            return [], memory.refused
        filters = list(memory.filters)
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

    def _best(self, cycle: Cycle, memory: _Memory, nodes: list[NodeInfo]) -> NodeInfo:
        if len(nodes) == 1:
            return nodes[0]
        totals = memory.scores(nodes)
        for weighted in self.profile.plugins:
            if weighted.plugin in memory.scored:
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


class _Memory:
    """What is known of one shape: the verdict of the local plugins on each node, by slot."""

    def __init__(self, pod: PodInfo, plugins: Sequence[Weighted], snapshot: Snapshot, objects: Objects) -> None:
        self.notes: dict[object, Any] = {}
        self.filters: list[Filter] = []
        self.refused: Status | None = None
        self.scored: list[Plugin] = []  # whose score is part of the verdict
        self._scorers: list[tuple[Scorer, int]] = []
        self._snapshot = snapshot
        self._epoch = -1
        self._version = 0
        self.status: list[Status | None] = []
        self.score: list[int] = []  # or _REFUSED, or _UNKNOWN
        cycle = Cycle(pod, snapshot, objects, self.notes)
        for weighted in plugins:
            found = weighted.plugin.filter(cycle)
            if isinstance(found, Status):
                self.refused = self.refused or found
            elif found is not None:
                self.filters.append(found)
            if weighted.plugin.local_score:
                self.scored.append(weighted.plugin)
                scorer = weighted.plugin.score(cycle)
                if scorer is not None:
                    self._scorers.append((scorer, weighted.weight))
        self._checks = [each.check for each in self.filters]

    def update(self) -> None:
        """Forget what may have changed."""
        snapshot = self._snapshot
        count = len(snapshot.nodes)
        changed = snapshot.changed_since(self._version) if self._epoch == snapshot.epoch else None
        self._version = snapshot.version
        if changed is None:
            self._epoch = snapshot.epoch
            self.status = [None] * count
            self.score = [_UNKNOWN] * count
        else:
            score = self.score
            for slot in changed:
                score[slot] = _UNKNOWN

    def look(self, node: NodeInfo) -> int:
        """Ask about a node, and remember."""
        slot = node.slot
        for check in self._checks:
            status = check(node)
            if status is not None:
                self.status[slot] = status
                self.score[slot] = _REFUSED
                return _REFUSED
        score = 0
        for scorer, weight in self._scorers:
            score += weight * scorer.score(node)
        self.status[slot] = None
        self.score[slot] = score
        return score

    def scores(self, nodes: list[NodeInfo]) -> list[int]:
        score = self.score
        if not score:
            return [0] * len(nodes)
        return [score[node.slot] if score[node.slot] >= 0 else max(self.look(node), 0) for node in nodes]


class _Search:
    """The search for nodes on which one Pod fits."""

    def __init__(self, cycle: Cycle, memory: _Memory, filters: list[Filter], before: dict[str, list[PodInfo]]) -> None:
        memory.update()
        self._cycle = cycle
        self._memory = memory
        self._filters = filters
        self._rest = [each.check for each in filters[len(memory.filters) :]]
        self._before = before
        self.looked_at = 0
        self.statuses: dict[str, Status] = {}

    def among(self, nodes: Sequence[NodeInfo], start: int, wanted: int) -> list[NodeInfo]:
        """So many that do, from a slot on; fewer if there are no more."""
        if self._rest or self._before:
            return self.in_turn([*nodes[start:], *nodes[:start]], wanted)
        fitting: list[NodeInfo] = []
        memory = self._memory
        score, at, left = memory.score, start, len(nodes)
        while left and len(fitting) < wanted:
            size = min(wanted - len(fitting), left, len(nodes) - at)
            part = score[at : at + size]
            if _UNKNOWN in part:
                for slot, known in enumerate(part, at):
                    if known == _UNKNOWN:
                        memory.look(nodes[slot])
                part = score[at : at + size]
            if _REFUSED in part:
                fitting += [nodes[slot] for slot, known in enumerate(part, at) if known >= 0]
            else:
                fitting += nodes[at : at + size]
            left -= size
            at = (at + size) % len(nodes)
        self.looked_at = len(nodes) - left
        if not fitting:
            self.statuses = {node.name: status for node in nodes if (status := memory.status[node.slot])}
        return fitting

    def in_turn(self, nodes: Sequence[NodeInfo], wanted: int = 0) -> list[NodeInfo]:
        """The same of these nodes, each asked by itself; all that do unless told."""
        fitting: list[NodeInfo] = []
        for node in nodes:
            self.looked_at += 1
            status = self.refuses(node)
            if status is not None:
                self.statuses[node.name] = status
                continue
            fitting.append(node)
            if len(fitting) == wanted:
                break
        return fitting

    def refuses(self, node: NodeInfo) -> Status | None:
        """Why the Pod does not fit on a node; None if it does."""
        if node.name in self._before:
            return refuses_with(self._filters, node, self._before[node.name])
        memory, slot = self._memory, node.slot
        if memory.score[slot] == _UNKNOWN:
            memory.look(node)
        status = memory.status[slot]
        if status is not None:
            return status
        for check in self._rest:
            status = check(node)
            if status is not None:
                return status
        return None


def refuses(filters: Sequence[Filter], node: NodeInfo) -> Status | None:
    """Why a node will not do; None if it does."""
    for each in filters:
        status = each.check(node)
        if status is not None:
            return status
    return None


def refuses_with(filters: Sequence[Filter], node: NodeInfo, others: Sequence[PodInfo]) -> Status | None:
    """Why a node will not do with these Pods on it, or without them; None if it does both ways."""
    if others:
        fuller, copies = node.copy(), [each.copy() for each in filters]
        for pod in others:
            fuller.add(pod)
            for each in copies:
                each.added(pod, fuller)
        status = refuses(copies, fuller)
        if status is not None:
            return status
    return refuses(filters, node)


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
