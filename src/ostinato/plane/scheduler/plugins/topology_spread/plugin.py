"""PodTopologySpread: spreads Pods evenly over topology domains.

DoNotSchedule constraints reject nodes that would exceed maxSkew; ScheduleAnyway constraints prefer domains with few
Pods. Pods without constraints use the default constraints over nodes and zones, for scoring only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from ostinato.api.selectors.labels import Operator, Selector
from ostinato.plane.placement.taints import has_blocking_taint
from ostinato.plane.scheduler.cache.affinity_terms import selector_of, with_label_keys
from ostinato.plane.scheduler.cache.node_info import HOSTNAME, ZONE, NodeFacts, NodeInfo
from ostinato.plane.scheduler.cache.pod_info import PodInfo, Shape, SpreadConstraint
from ostinato.plane.scheduler.cache.topology_counts import TopologyCounts
from ostinato.plane.scheduler.framework.events import NODE, POD, Action, ClusterEvent, QueueingHint
from ostinato.plane.scheduler.framework.interface import Cycle, Filter, Plugin, Scorer
from ostinato.plane.scheduler.framework.status import Status, unresolvable, unschedulable
from ostinato.plane.scheduler.plugins.topology_spread.default_selector import default_selector
from ostinato.plane.scheduler.plugins.topology_spread.scoring import SpreadScorer

_NAME: Final = "PodTopologySpread"
_MISMATCH: Final = unschedulable(_NAME, "node(s) didn't match pod topology spread constraints")
_NO_LABEL: Final = unresolvable(_NAME, f"{_MISMATCH.reasons[0]} (missing required label)")
_HARD: Final = "DoNotSchedule"
_SOFT: Final = "ScheduleAnyway"
_DEFAULTS: Final = (
    SpreadConstraint(topology_key=HOSTNAME, when_unsatisfiable=_SOFT, max_skew=3),
    SpreadConstraint(topology_key=ZONE, when_unsatisfiable=_SOFT, max_skew=5),
)


class Constraint(msgspec.Struct, frozen=True):
    """A compiled constraint and the counts of matching Pods."""

    max_skew: int
    topology_key: str
    min_domains: int
    selector: Selector
    counts: TopologyCounts
    counts_itself: bool


class TopologySpread(Plugin):
    name = _NAME

    def filter(self, cycle: Cycle) -> Filter | None:
        constraints = _constraints(cycle.shape, _HARD, cycle)
        if not constraints:
            return None
        for constraint in constraints:
            constraint.counts.update(cycle.snapshot)
        return _Filter(cycle.shape, constraints)

    def score(self, cycle: Cycle) -> Scorer | None:
        own = bool(cycle.pod.spec.topology_spread_constraints)
        constraints = _constraints(cycle.shape, _SOFT, cycle) if own else _defaults(cycle)
        if not constraints:
            return None
        for constraint in constraints:
            constraint.counts.update(cycle.snapshot)
        columns = [(each.counts, each.topology_key == HOSTNAME, each.max_skew) for each in constraints]
        return SpreadScorer(columns, require_all_labels=own)

    def hints(self) -> Sequence[QueueingHint]:
        return (
            QueueingHint(POD, Action.ADD | Action.DELETE | Action.POD_LABEL | Action.POD_TOLERATION, _pod_hint),
            QueueingHint(NODE, Action.ADD | Action.DELETE | Action.NODE_LABEL | Action.NODE_TAINT, _node_hint),
        )


class _Filter(Filter):
    plugin = _NAME

    def __init__(self, shape: Shape, constraints: Sequence[Constraint]) -> None:
        self._shape = shape
        self._constraints = constraints
        self._pod_weight = [each.counts.in_domain for each in constraints]
        self._least = [min(counts.values(), default=2**31) for counts in self._pod_weight]

    def check(self, node: NodeInfo) -> Status | None:
        labels = node.labels
        for constraint, counts, least in zip(self._constraints, self._pod_weight, self._least, strict=True):
            domain = labels.get(constraint.topology_key)
            if domain is None:
                return _NO_LABEL
            base = least if len(counts) >= constraint.min_domains else 0
            if counts.get(domain, 0) + constraint.counts_itself - base > constraint.max_skew:
                return _MISMATCH
        return None

    def copy(self) -> Filter:
        other = _Filter.__new__(_Filter)
        other._shape, other._constraints = self._shape, self._constraints
        other._pod_weight, other._least = list(self._pod_weight), list(self._least)
        return other

    def add_pod(self, pod: PodInfo, node: NodeInfo) -> None:
        self._change(pod, node, 1)

    def remove_pod(self, pod: PodInfo, node: NodeInfo) -> None:
        self._change(pod, node, -1)

    def _change(self, pod: PodInfo, node: NodeInfo, difference: int) -> None:
        shape = self._shape
        if pod.namespace != shape.namespace or any(each.topology_key not in node.labels for each in self._constraints):
            return
        for at, constraint in enumerate(self._constraints):
            domain = node.labels[constraint.topology_key]
            if domain in self._pod_weight[at] and constraint.selector.matches(pod.labels):
                counts = {**self._pod_weight[at]}
                counts[domain] += difference
                self._pod_weight[at] = counts
                self._least[at] = min(counts.values())


def _constraints(shape: Shape, action: str, cycle: Cycle) -> list[Constraint]:
    """Return the compiled constraints of a shape, cached."""
    key = (_NAME, action)
    found: list[Constraint] | None = cycle.memo.get(key)
    if found is None:
        wanted = [each for each in shape.spec.topology_spread_constraints if each.when_unsatisfiable == action]
        found = cycle.memo[key] = _build(shape, wanted, _selectors(shape, wanted), require_all_labels=True)
    return found


def _defaults(cycle: Cycle) -> list[Constraint]:
    selector = default_selector(cycle)
    if selector.empty:
        return []
    key = (_NAME, selector)
    found: list[Constraint] | None = cycle.memo.get(key)
    if found is None:
        selectors = [selector] * len(_DEFAULTS)
        found = cycle.memo[key] = _build(cycle.shape, _DEFAULTS, selectors, require_all_labels=False)
    return found


def _build(
    shape: Shape, wanted: Sequence[SpreadConstraint], selectors: Sequence[Selector], *, require_all_labels: bool
) -> list[Constraint]:
    keys = [each.topology_key for each in wanted] if require_all_labels else []
    return [
        Constraint(
            max_skew=each.max_skew,
            topology_key=each.topology_key,
            min_domains=each.min_domains or 1,
            selector=selector,
            counts=TopologyCounts(
                _pod_weight(shape, selector), each.topology_key, admits=_admits(shape, each, keys), terminating=False
            ),
            counts_itself=selector.matches(shape.labels),
        )
        for each, selector in zip(wanted, selectors, strict=True)
    ]


def _selectors(shape: Shape, wanted: Iterable[SpreadConstraint]) -> list[Selector]:
    return [
        with_label_keys(selector_of(each.label_selector), shape.labels, each.match_label_keys, Operator.IN)
        for each in wanted
    ]


def _pod_weight(shape: Shape, selector: Selector) -> Callable[[Shape], int]:
    namespace = shape.namespace
    if selector.empty:
        return lambda _: 0
    return lambda other: int(other.namespace == namespace and selector.matches(other.labels))


def _admits(shape: Shape, constraint: SpreadConstraint, keys: list[str]) -> Callable[[NodeInfo], bool] | None:
    """Return the predicate of nodes that are counted (nodeAffinityPolicy, nodeTaintsPolicy)."""
    allowed = shape.required_nodes if constraint.node_affinity_policy == "Honor" else None
    tolerations = shape.spec.tolerations if constraint.node_taints_policy == "Honor" else None
    if allowed is None and tolerations is None and len(keys) < 2:
        return None

    def admits(node: NodeInfo) -> bool:
        if any(key not in node.labels for key in keys):
            return False
        if allowed is not None and not allowed(node.labels, node.name):
            return False
        return tolerations is None or not has_blocking_taint(node.facts.taints, tolerations)

    return admits


def _hard_constraints(pod: PodInfo) -> list[SpreadConstraint]:
    return [each for each in pod.spec.topology_spread_constraints if each.when_unsatisfiable == _HARD]


def _pod_hint(pod: PodInfo, event: ClusterEvent) -> bool:
    for each in (event.old, event.new):
        if each is not None and each.uid != pod.uid and not _is_in_same_group(each, pod):
            return False
    constraints = _hard_constraints(pod)
    if event.action == Action.POD_TOLERATION:
        return bool(event.new.uid == pod.uid) and any(each.node_taints_policy == "Honor" for each in constraints)
    selectors = _selectors(pod.shape, constraints)
    if event.old is not None and event.new is not None:
        return any(each.matches(event.old.labels) != each.matches(event.new.labels) for each in selectors)
    changed = event.new if event.new is not None else event.old
    return any(each.matches(changed.labels) for each in selectors)


def _is_in_same_group(other: PodInfo, pod: PodInfo) -> bool:
    return bool(other.node_name or other.nominated) and other.namespace == pod.namespace


def _node_hint(pod: PodInfo, event: ClusterEvent) -> bool:
    keys = [each.topology_key for each in _hard_constraints(pod)]
    before, after = _has_all(event.old, keys), _has_all(event.new, keys)
    if event.old is None or event.new is None:
        return before or after
    if before != after:
        return True
    moved = any(event.old.labels.get(key) != event.new.labels.get(key) for key in keys)
    return after and (moved or event.old.taints != event.new.taints)


def _has_all(facts: NodeFacts | None, keys: list[str]) -> bool:
    return facts is not None and all(key in facts.labels for key in keys)
