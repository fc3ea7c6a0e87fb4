"""InterPodAffinity: required and preferred affinity and anti-affinity between Pods.

- Topology domains are the values of a node label, such as hostname or zone.
- Required anti-affinity of existing Pods applies to the incoming Pod as well.
- A Pod with affinity to its own labels may be the first of its group.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from ostinato.plane.scheduler.cache.affinity_terms import NO_LABELS, Term
from ostinato.plane.scheduler.cache.node_info import NodeInfo
from ostinato.plane.scheduler.cache.pod_info import PodInfo, Shape
from ostinato.plane.scheduler.cache.topology_counts import TopologyCounts
from ostinato.plane.scheduler.framework.events import NODE, POD, Action, ClusterEvent, QueueingHint
from ostinato.plane.scheduler.framework.interface import Cycle, Filter, Plugin, Scorer
from ostinato.plane.scheduler.framework.status import Status, unresolvable, unschedulable
from ostinato.plane.scheduler.plugins.pod_affinity.scoring import scorer_of

_NAME: Final = "InterPodAffinity"
_AFFINITY_MISMATCH: Final = unresolvable(_NAME, "node(s) didn't match pod affinity rules")
_ANTI_AFFINITY_MISMATCH: Final = unschedulable(_NAME, "node(s) didn't match pod anti-affinity rules")
_EXISTING_ANTI_AFFINITY: Final = unschedulable(_NAME, "node(s) didn't satisfy existing pods anti-affinity rules")

Domain = tuple[str, str]
"""Topology domain: (label key, value)."""


class InterPodAffinity(Plugin):
    name = _NAME

    def filter(self, cycle: Cycle) -> Filter | None:
        shape = cycle.shape
        existing_anti_affinity = _existing_anti_affinity(cycle)
        if not shape.affinity and not shape.anti_affinity and not existing_anti_affinity:
            return None
        affinity = tuple([cycle.listers.resolved(term) for term in shape.affinity])
        anti_affinity = tuple([cycle.listers.resolved(term) for term in shape.anti_affinity])
        counts = _counts(affinity, anti_affinity, cycle)
        for count in (*counts.affinity, *counts.anti_affinity):
            count.update(cycle.snapshot)
        return _Filter(shape, affinity, anti_affinity, counts, existing_anti_affinity, cycle)

    def score(self, cycle: Cycle) -> Scorer | None:
        return scorer_of(cycle)

    def hints(self) -> Sequence[QueueingHint]:
        return (
            QueueingHint(POD, Action.ADD | Action.DELETE | Action.POD_LABEL, _pod_hint),
            QueueingHint(NODE, Action.ADD | Action.NODE_LABEL, _node_hint),
        )


class _AffinityCounts(msgspec.Struct):
    affinity: list[TopologyCounts]  # Pods that match all terms, per term's topology
    anti_affinity: list[TopologyCounts]  # Pods that match the term, per term


class _Filter(Filter):
    plugin = _NAME

    def __init__(
        self,
        shape: Shape,
        affinity: tuple[Term, ...],
        anti_affinity: tuple[Term, ...],
        counts: _AffinityCounts,
        existing_anti_affinity: dict[Domain, int],
        cycle: Cycle,
    ) -> None:
        self._shape = shape
        self._affinity, self._anti_affinity = affinity, anti_affinity
        self._counts = counts
        self._existing_anti_affinity = existing_anti_affinity
        self._cycle = cycle
        self._affinity_delta: dict[Domain, int] = {}  # changes of a dry run, relative to the counts
        self._anti_affinity_delta: dict[tuple[int, str], int] = {}
        self._is_first_of_group = (
            bool(affinity) and not any(count.total for count in counts.affinity) and matches_all(affinity, shape)
        )

    def check(self, node: NodeInfo) -> Status | None:
        labels = node.labels
        if self._affinity and not self._satisfies_affinity(node):
            return _AFFINITY_MISMATCH
        for at, term in enumerate(self._anti_affinity):
            domain = labels.get(term.topology_key)
            if domain is not None:
                count = self._counts.anti_affinity[at].in_domain.get(domain, 0) + self._anti_affinity_delta.get(
                    (at, domain), 0
                )
                if count > 0:
                    return _ANTI_AFFINITY_MISMATCH
        if self._existing_anti_affinity:
            for key, domain in labels.items():
                if self._existing_anti_affinity.get((key, domain), 0) > 0:
                    return _EXISTING_ANTI_AFFINITY
        return None

    def _satisfies_affinity(self, node: NodeInfo) -> bool:
        found = True
        for term, count in zip(self._affinity, self._counts.affinity, strict=True):
            domain = node.labels.get(term.topology_key)
            if domain is None:
                return False
            if count.in_domain.get(domain, 0) + self._affinity_delta.get((term.topology_key, domain), 0) <= 0:
                found = False
        return found or (self._is_first_of_group and not any(self._affinity_delta.values()))

    def copy(self) -> Filter:
        other = _Filter(
            self._shape,
            self._affinity,
            self._anti_affinity,
            self._counts,
            dict(self._existing_anti_affinity),
            self._cycle,
        )
        other._affinity_delta, other._anti_affinity_delta = dict(self._affinity_delta), dict(self._anti_affinity_delta)
        return other

    def add_pod(self, pod: PodInfo, node: NodeInfo) -> None:
        self._change(pod, node, 1)

    def remove_pod(self, pod: PodInfo, node: NodeInfo) -> None:
        self._change(pod, node, -1)

    def _change(self, pod: PodInfo, node: NodeInfo, difference: int) -> None:
        labels = node.labels
        shape = pod.shape
        if self._affinity and matches_all(self._affinity, shape):
            for key in {term.topology_key for term in self._affinity}:
                if key in labels:
                    domain_key = (key, labels[key])
                    self._affinity_delta[domain_key] = self._affinity_delta.get(domain_key, 0) + difference
        for at, term in enumerate(self._anti_affinity):
            if term.topology_key in labels and term.matches(shape.namespace, shape.labels, NO_LABELS):
                at_domain = (at, labels[term.topology_key])
                delta = self._anti_affinity_delta
                delta[at_domain] = delta.get(at_domain, 0) + difference
        for domain_key, count in _forbidden_domains(pod, node, self._shape, self._cycle).items():
            self._existing_anti_affinity[domain_key] = (
                self._existing_anti_affinity.get(domain_key, 0) + difference * count
            )


def matches_all(terms: tuple[Term, ...], shape: Shape) -> bool:
    """Return whether a Pod matches all terms; their namespaces must be resolved."""
    return bool(terms) and all(term.matches(shape.namespace, shape.labels, NO_LABELS) for term in terms)


def _counts(affinity: tuple[Term, ...], anti_affinity: tuple[Term, ...], cycle: Cycle) -> _AffinityCounts:
    """Return the counts of a shape; rebuilt when the namespaces of its terms change."""
    key = (_NAME, tuple([term.namespaces for term in (*affinity, *anti_affinity)]))
    found: _AffinityCounts | None = cycle.memo.get(key)
    if found is None:
        found = cycle.memo[key] = _AffinityCounts(
            [TopologyCounts(lambda shape: int(matches_all(affinity, shape)), term.topology_key) for term in affinity],
            [TopologyCounts(_Matching(term), term.topology_key) for term in anti_affinity],
        )
    return found


class _Matching:
    """Weight function: 1 if a term matches."""

    def __init__(self, term: Term) -> None:
        self._term = term

    def __call__(self, shape: Shape) -> int:
        return int(self._term.matches(shape.namespace, shape.labels, NO_LABELS))


def _existing_anti_affinity(cycle: Cycle) -> dict[Domain, int]:
    """Return the domains that existing Pods exclude for this Pod by anti-affinity, with counts."""
    found: dict[Domain, int] = {}
    for node in cycle.snapshot.with_required_anti_affinity.values():
        if node.is_known:
            for pod in node.with_required_anti_affinity.values():
                for domain_key, count in _forbidden_domains(pod, node, cycle.shape, cycle).items():
                    found[domain_key] = found.get(domain_key, 0) + count
    return found


def _forbidden_domains(pod: PodInfo, node: NodeInfo, shape: Shape, cycle: Cycle) -> dict[Domain, int]:
    """Return the domains that a Pod on a node excludes for Pods of a shape."""
    terms = pod.shape.anti_affinity
    if not terms:
        return {}
    namespace_labels = cycle.listers.namespace_labels(shape.namespace)
    found: dict[Domain, int] = {}
    for term in terms:
        domain = node.labels.get(term.topology_key)
        if domain is not None and term.matches(shape.namespace, shape.labels, namespace_labels):
            found[term.topology_key, domain] = found.get((term.topology_key, domain), 0) + 1
    return found


def _pod_hint(pod: PodInfo, event: ClusterEvent) -> bool:
    old, new = event.old, event.new
    if old is not None and new is not None and new.uid == pod.uid:
        return True
    for each in (old, new):
        if each is not None and not each.node_name and not each.nominated:
            return False
    affinity, anti_affinity = pod.shape.affinity, pod.shape.anti_affinity
    if old is not None and new is not None:
        starts_matching = not _may_match(affinity, old.shape) and _may_match(affinity, new.shape)
        return starts_matching or (_may_match(anti_affinity, old.shape) and not _may_match(anti_affinity, new.shape))
    if new is not None:
        return _may_match(affinity, new.shape)
    return _may_match(anti_affinity, old.shape) or _may_match(old.shape.anti_affinity, pod.shape)


def _may_match(terms: tuple[Term, ...], shape: Shape) -> bool:
    """Return whether a Pod may match all terms, without evaluating namespace selectors."""
    return bool(terms) and all(
        term.selector.matches(shape.labels)
        and (shape.namespace in term.namespaces or not term.namespace_selector.selects_nothing)
        for term in terms
    )


def _node_hint(pod: PodInfo, event: ClusterEvent) -> bool:
    for term in pod.shape.affinity:
        before, after = _domain(event.old, term), _domain(event.new, term)
        if after is not None and before != after:
            return True
    for term in pod.shape.anti_affinity:
        before, after = _domain(event.old, term), _domain(event.new, term)
        if event.old is None or (before is not None and before != after):
            return True
    return not pod.shape.affinity and not pod.shape.anti_affinity and event.old is None


def _domain(facts: object, term: Term) -> str | None:
    labels: dict[str, str] = getattr(facts, "labels", {})
    return labels.get(term.topology_key)
