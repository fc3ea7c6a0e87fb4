"""InterPodAffinity: Pods that want to be near others or far from them, and others that want the same of them.

- Near and far are in the same domain of a topology, or not: on the same node, in the same zone.
- A Pod must not come near those that must be far from it either.
- A Pod that must be near Pods of its own sort may be the first of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from ostinato.plane.scheduler.cache.affinity_terms import NO_LABELS, Term
from ostinato.plane.scheduler.cache.node_info import NodeInfo
from ostinato.plane.scheduler.cache.pod_info import PodInfo, Shape
from ostinato.plane.scheduler.cache.topology_counts import Tally
from ostinato.plane.scheduler.framework.events import NODE, POD, Action, ClusterEvent, Hint
from ostinato.plane.scheduler.framework.interface import Cycle, Filter, Plugin, Scorer
from ostinato.plane.scheduler.framework.status import Status, unresolvable, unschedulable
from ostinato.plane.scheduler.plugins.pod_affinity.scoring import scorer_of

_NAME: Final = "InterPodAffinity"
_NOT_NEAR: Final = unresolvable(_NAME, "node(s) didn't match pod affinity rules")
_NOT_FAR: Final = unschedulable(_NAME, "node(s) didn't match pod anti-affinity rules")
_NOT_WANTED: Final = unschedulable(_NAME, "node(s) didn't satisfy existing pods anti-affinity rules")

Place = tuple[str, str]
"""A domain: the label, and its value."""


class InterPodAffinity(Plugin):
    name = _NAME

    def filter(self, cycle: Cycle) -> Filter | None:
        shape = cycle.shape
        unwanted = _unwanted(cycle)
        if not shape.near and not shape.far and not unwanted:
            return None
        near = tuple([cycle.objects.resolved(term) for term in shape.near])
        far = tuple([cycle.objects.resolved(term) for term in shape.far])
        tallies = _tallies(near, far, cycle)
        for tally in (*tallies.near, *tallies.far):
            tally.update(cycle.snapshot)
        return _Filter(shape, near, far, tallies, unwanted, cycle)

    def score(self, cycle: Cycle) -> Scorer | None:
        return scorer_of(cycle)

    def hints(self) -> Sequence[Hint]:
        return (
            Hint(POD, Action.ADD | Action.DELETE | Action.POD_LABEL, _pod_matters),
            Hint(NODE, Action.ADD | Action.NODE_LABEL, _node_matters),
        )


class _Tallies(msgspec.Struct):
    near: list[Tally]  # of Pods that match all terms, by the topology of each term
    far: list[Tally]  # of Pods that match a term, of each term


class _Filter(Filter):
    plugin = _NAME

    def __init__(
        self,
        shape: Shape,
        near: tuple[Term, ...],
        far: tuple[Term, ...],
        tallies: _Tallies,
        unwanted: dict[Place, int],
        cycle: Cycle,
    ) -> None:
        self._shape = shape
        self._near, self._far = near, far
        self._tallies = tallies
        self._unwanted = unwanted
        self._cycle = cycle
        self._more_near: dict[Place, int] = {}  # what if: differences from the tallies
        self._more_far: dict[tuple[int, str], int] = {}
        self._is_first = bool(near) and not any(tally.total for tally in tallies.near) and matches_all(near, shape)

    def check(self, node: NodeInfo) -> Status | None:
        labels = node.labels
        if self._near and not self._is_near(node):
            return _NOT_NEAR
        for at, term in enumerate(self._far):
            domain = labels.get(term.topology_key)
            if domain is not None:
                count = self._tallies.far[at].in_domain.get(domain, 0) + self._more_far.get((at, domain), 0)
                if count > 0:
                    return _NOT_FAR
        if self._unwanted:
            for key, domain in labels.items():
                if self._unwanted.get((key, domain), 0) > 0:
                    return _NOT_WANTED
        return None

    def _is_near(self, node: NodeInfo) -> bool:
        found = True
        for term, tally in zip(self._near, self._tallies.near, strict=True):
            domain = node.labels.get(term.topology_key)
            if domain is None:
                return False
            if tally.in_domain.get(domain, 0) + self._more_near.get((term.topology_key, domain), 0) <= 0:
                found = False
        return found or (self._is_first and not any(self._more_near.values()))

    def copy(self) -> Filter:
        other = _Filter(self._shape, self._near, self._far, self._tallies, dict(self._unwanted), self._cycle)
        other._more_near, other._more_far = dict(self._more_near), dict(self._more_far)
        return other

    def added(self, pod: PodInfo, node: NodeInfo) -> None:
        self._change(pod, node, 1)

    def removed(self, pod: PodInfo, node: NodeInfo) -> None:
        self._change(pod, node, -1)

    def _change(self, pod: PodInfo, node: NodeInfo, difference: int) -> None:
        labels = node.labels
        shape = pod.shape
        if self._near and matches_all(self._near, shape):
            for key in {term.topology_key for term in self._near}:
                if key in labels:
                    place = (key, labels[key])
                    self._more_near[place] = self._more_near.get(place, 0) + difference
        for at, term in enumerate(self._far):
            if term.topology_key in labels and term.matches(shape.namespace, shape.labels, NO_LABELS):
                spot = (at, labels[term.topology_key])
                self._more_far[spot] = self._more_far.get(spot, 0) + difference
        for place, count in _places(pod, node, self._shape, self._cycle).items():
            self._unwanted[place] = self._unwanted.get(place, 0) + difference * count


def matches_all(terms: tuple[Term, ...], shape: Shape) -> bool:
    """Whether a Pod is meant by every one of the terms, whose namespaces are resolved."""
    return bool(terms) and all(term.matches(shape.namespace, shape.labels, NO_LABELS) for term in terms)


def _tallies(near: tuple[Term, ...], far: tuple[Term, ...], cycle: Cycle) -> _Tallies:
    """Made once for a shape, as long as the namespaces that its terms select are the same."""
    key = (_NAME, tuple([term.namespaces for term in (*near, *far)]))
    found: _Tallies | None = cycle.memo.get(key)
    if found is None:
        found = cycle.memo[key] = _Tallies(
            [Tally(lambda shape: int(matches_all(near, shape)), term.topology_key) for term in near],
            [Tally(_Matching(term), term.topology_key) for term in far],
        )
    return found


class _Matching:
    """Counts the Pods that a term means."""

    def __init__(self, term: Term) -> None:
        self._term = term

    def __call__(self, shape: Shape) -> int:
        return int(self._term.matches(shape.namespace, shape.labels, NO_LABELS))


def _unwanted(cycle: Cycle) -> dict[Place, int]:
    """The domains in which there are Pods that must be far from this one, and how many."""
    found: dict[Place, int] = {}
    for node in cycle.snapshot.far.values():
        if node.is_known:
            for pod in node.far.values():
                for place, count in _places(pod, node, cycle.shape, cycle).items():
                    found[place] = found.get(place, 0) + count
    return found


def _places(pod: PodInfo, node: NodeInfo, shape: Shape, cycle: Cycle) -> dict[Place, int]:
    """The domains in which a Pod on a node does not want Pods of a shape."""
    terms = pod.shape.far
    if not terms:
        return {}
    namespace_labels = cycle.objects.namespace_labels(shape.namespace)
    found: dict[Place, int] = {}
    for term in terms:
        domain = node.labels.get(term.topology_key)
        if domain is not None and term.matches(shape.namespace, shape.labels, namespace_labels):
            found[term.topology_key, domain] = found.get((term.topology_key, domain), 0) + 1
    return found


def _pod_matters(pod: PodInfo, event: ClusterEvent) -> bool:
    old, new = event.old, event.new
    if old is not None and new is not None and new.uid == pod.uid:
        return True
    for each in (old, new):
        if each is not None and not each.node_name and not each.nominated:
            return False
    near, far = pod.shape.near, pod.shape.far
    if old is not None and new is not None:
        comes_near = not _may_match(near, old.shape) and _may_match(near, new.shape)
        return comes_near or (_may_match(far, old.shape) and not _may_match(far, new.shape))
    if new is not None:
        return _may_match(near, new.shape)
    return _may_match(far, old.shape) or _may_match(old.shape.far, pod.shape)


def _may_match(terms: tuple[Term, ...], shape: Shape) -> bool:
    """Whether a Pod is meant by all of the terms, as far as can be said without a look at its namespace."""
    return bool(terms) and all(
        term.selector.matches(shape.labels)
        and (shape.namespace in term.namespaces or not term.namespace_selector.selects_nothing)
        for term in terms
    )


def _node_matters(pod: PodInfo, event: ClusterEvent) -> bool:
    for term in pod.shape.near:
        before, after = _domain(event.old, term), _domain(event.new, term)
        if after is not None and before != after:
            return True
    for term in pod.shape.far:
        before, after = _domain(event.old, term), _domain(event.new, term)
        if event.old is None or (before is not None and before != after):
            return True
    return not pod.shape.near and not pod.shape.far and event.old is None


def _domain(facts: object, term: Term) -> str | None:
    labels: dict[str, str] = getattr(facts, "labels", {})
    return labels.get(term.topology_key)
