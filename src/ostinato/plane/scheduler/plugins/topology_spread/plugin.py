"""PodTopologySpread: Pods of one sort are spread evenly over zones, nodes, or whatever a label of nodes divides.

A constraint that must hold refuses nodes in whose domain there would be too many; one that should hold makes the nodes
better in whose domain there are few. A Pod that says nothing is spread over nodes and zones, as far as that is easy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from ostinato.api.selectors.labels import Operator, Selector
from ostinato.plane.placement.taints import keeps_away
from ostinato.plane.scheduler.cache.affinity_terms import selector_of, with_label_keys
from ostinato.plane.scheduler.cache.node_info import HOSTNAME, ZONE, NodeFacts, NodeInfo
from ostinato.plane.scheduler.cache.pod_info import PodInfo, Shape, SpreadConstraint
from ostinato.plane.scheduler.cache.topology_counts import Tally
from ostinato.plane.scheduler.framework.events import NODE, POD, Action, ClusterEvent, Hint
from ostinato.plane.scheduler.framework.interface import Cycle, Filter, Plugin, Scorer
from ostinato.plane.scheduler.framework.status import Status, unresolvable, unschedulable
from ostinato.plane.scheduler.plugins.topology_spread.default_selector import default_selector
from ostinato.plane.scheduler.plugins.topology_spread.scoring import SpreadScorer

_NAME: Final = "PodTopologySpread"
_UNEVEN: Final = unschedulable(_NAME, "node(s) didn't match pod topology spread constraints")
_NO_LABEL: Final = unresolvable(_NAME, f"{_UNEVEN.reasons[0]} (missing required label)")
_HARD: Final = "DoNotSchedule"
_SOFT: Final = "ScheduleAnyway"
_DEFAULTS: Final = (
    SpreadConstraint(topology_key=HOSTNAME, when_unsatisfiable=_SOFT, max_skew=3),
    SpreadConstraint(topology_key=ZONE, when_unsatisfiable=_SOFT, max_skew=5),
)


class Constraint(msgspec.Struct, frozen=True):
    """A constraint of a shape, and the count of the Pods that it is about."""

    max_skew: int
    topology_key: str
    min_domains: int
    selector: Selector
    tally: Tally
    counts_itself: bool


class TopologySpread(Plugin):
    name = _NAME

    def filter(self, cycle: Cycle) -> Filter | None:
        constraints = _of(cycle.shape, _HARD, cycle)
        if not constraints:
            return None
        for constraint in constraints:
            constraint.tally.update(cycle.snapshot)
        return _Filter(cycle.shape, constraints)

    def score(self, cycle: Cycle) -> Scorer | None:
        own = bool(cycle.pod.spec.topology_spread_constraints)
        constraints = _of(cycle.shape, _SOFT, cycle) if own else _defaults(cycle)
        if not constraints:
            return None
        for constraint in constraints:
            constraint.tally.update(cycle.snapshot)
        columns = [(each.tally, each.topology_key == HOSTNAME, each.max_skew) for each in constraints]
        return SpreadScorer(columns, needs_all_labels=own)

    def hints(self) -> Sequence[Hint]:
        return (
            Hint(POD, Action.ADD | Action.DELETE | Action.POD_LABEL | Action.POD_TOLERATION, _pod_matters),
            Hint(NODE, Action.ADD | Action.DELETE | Action.NODE_LABEL | Action.NODE_TAINT, _node_matters),
        )


class _Filter(Filter):
    plugin = _NAME

    def __init__(self, shape: Shape, constraints: Sequence[Constraint]) -> None:
        self._shape = shape
        self._constraints = constraints
        self._counts = [each.tally.in_domain for each in constraints]
        self._least = [min(counts.values(), default=2**31) for counts in self._counts]

    def check(self, node: NodeInfo) -> Status | None:
        labels = node.labels
        for constraint, counts, least in zip(self._constraints, self._counts, self._least, strict=True):
            domain = labels.get(constraint.topology_key)
            if domain is None:
                return _NO_LABEL
            base = least if len(counts) >= constraint.min_domains else 0
            if counts.get(domain, 0) + constraint.counts_itself - base > constraint.max_skew:
                return _UNEVEN
        return None

    def copy(self) -> Filter:
        other = _Filter.__new__(_Filter)
        other._shape, other._constraints = self._shape, self._constraints
        other._counts, other._least = list(self._counts), list(self._least)
        return other

    def added(self, pod: PodInfo, node: NodeInfo) -> None:
        self._change(pod, node, 1)

    def removed(self, pod: PodInfo, node: NodeInfo) -> None:
        self._change(pod, node, -1)

    def _change(self, pod: PodInfo, node: NodeInfo, difference: int) -> None:
        shape = self._shape
        if pod.namespace != shape.namespace or any(each.topology_key not in node.labels for each in self._constraints):
            return
        for at, constraint in enumerate(self._constraints):
            domain = node.labels[constraint.topology_key]
            if domain in self._counts[at] and constraint.selector.matches(pod.labels):
                counts = {**self._counts[at]}
                counts[domain] += difference
                self._counts[at] = counts
                self._least[at] = min(counts.values())


def _of(shape: Shape, action: str, cycle: Cycle) -> list[Constraint]:
    """The constraints of a Pod, made once for its shape."""
    key = (_NAME, action)
    found: list[Constraint] | None = cycle.memo.get(key)
    if found is None:
        wanted = [each for each in shape.spec.topology_spread_constraints if each.when_unsatisfiable == action]
        found = cycle.memo[key] = _made(shape, wanted, _selectors(shape, wanted), all_labels=True)
    return found


def _defaults(cycle: Cycle) -> list[Constraint]:
    selector = default_selector(cycle)
    if selector.empty:
        return []
    key = (_NAME, selector)
    found: list[Constraint] | None = cycle.memo.get(key)
    if found is None:
        selectors = [selector] * len(_DEFAULTS)
        found = cycle.memo[key] = _made(cycle.shape, _DEFAULTS, selectors, all_labels=False)
    return found


def _made(
    shape: Shape, wanted: Sequence[SpreadConstraint], selectors: Sequence[Selector], *, all_labels: bool
) -> list[Constraint]:
    keys = [each.topology_key for each in wanted] if all_labels else []
    return [
        Constraint(
            max_skew=each.max_skew,
            topology_key=each.topology_key,
            min_domains=each.min_domains or 1,
            selector=selector,
            tally=Tally(_counts(shape, selector), each.topology_key, admits=_admits(shape, each, keys), going=False),
            counts_itself=selector.matches(shape.labels),
        )
        for each, selector in zip(wanted, selectors, strict=True)
    ]


def _selectors(shape: Shape, wanted: Iterable[SpreadConstraint]) -> list[Selector]:
    return [
        with_label_keys(selector_of(each.label_selector), shape.labels, each.match_label_keys, Operator.IN)
        for each in wanted
    ]


def _counts(shape: Shape, selector: Selector) -> Callable[[Shape], int]:
    namespace = shape.namespace
    if selector.empty:
        return lambda _: 0
    return lambda other: int(other.namespace == namespace and selector.matches(other.labels))


def _admits(shape: Shape, constraint: SpreadConstraint, keys: list[str]) -> Callable[[NodeInfo], bool] | None:
    """Which nodes are counted for a Pod."""
    allowed = shape.required_nodes if constraint.node_affinity_policy == "Honor" else None
    tolerations = shape.spec.tolerations if constraint.node_taints_policy == "Honor" else None
    if allowed is None and tolerations is None and len(keys) < 2:
        return None

    def admits(node: NodeInfo) -> bool:
        if any(key not in node.labels for key in keys):
            return False
        if allowed is not None and not allowed(node.labels, node.name):
            return False
        return tolerations is None or not keeps_away(node.facts.taints, tolerations)

    return admits


def _hard(pod: PodInfo) -> list[SpreadConstraint]:
    return [each for each in pod.spec.topology_spread_constraints if each.when_unsatisfiable == _HARD]


def _pod_matters(pod: PodInfo, event: ClusterEvent) -> bool:
    for each in (event.old, event.new):
        if each is not None and each.uid != pod.uid and not _is_neighbour(each, pod):
            return False
    constraints = _hard(pod)
    if event.action == Action.POD_TOLERATION:
        return bool(event.new.uid == pod.uid) and any(each.node_taints_policy == "Honor" for each in constraints)
    selectors = _selectors(pod.shape, constraints)
    if event.old is not None and event.new is not None:
        return any(each.matches(event.old.labels) != each.matches(event.new.labels) for each in selectors)
    changed = event.new if event.new is not None else event.old
    return any(each.matches(changed.labels) for each in selectors)


def _is_neighbour(other: PodInfo, pod: PodInfo) -> bool:
    return bool(other.node_name or other.nominated) and other.namespace == pod.namespace


def _node_matters(pod: PodInfo, event: ClusterEvent) -> bool:
    keys = [each.topology_key for each in _hard(pod)]
    before, after = _has_all(event.old, keys), _has_all(event.new, keys)
    if event.old is None or event.new is None:
        return before or after
    if before != after:
        return True
    moved = any(event.old.labels.get(key) != event.new.labels.get(key) for key in keys)
    return after and (moved or event.old.taints != event.new.taints)


def _has_all(facts: NodeFacts | None, keys: list[str]) -> bool:
    return facts is not None and all(key in facts.labels for key in keys)
