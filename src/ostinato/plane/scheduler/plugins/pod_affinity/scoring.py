"""How well nodes suit a Pod that would rather be near others, or far from them, or that others would."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from ostinato.plane.scheduler.cache.affinity_terms import NO_LABELS, Term
from ostinato.plane.scheduler.cache.node_info import NodeInfo
from ostinato.plane.scheduler.cache.pod_info import Shape
from ostinato.plane.scheduler.framework.interface import MOST, Cycle, Scorer

_MUST_COUNTS: Final = 1  # what a term that must hold counts, seen from the other side

Weights = dict[str, dict[str, int]]
"""What the domains count: by label, then by its value."""


def scorer_of(cycle: Cycle) -> Scorer | None:
    """None if nobody cares."""
    shape = cycle.shape
    wishes = bool(shape.rather_near or shape.rather_far)
    snapshot = cycle.snapshot
    if not wishes and not snapshot.near_or_far:
        return None
    near = [cycle.objects.resolved(term) for term in shape.rather_near]
    far = [cycle.objects.resolved(term) for term in shape.rather_far]
    namespace_labels = cycle.objects.namespace_labels(shape.namespace)
    weights: Weights = {}
    for node in snapshot.nodes if wishes else snapshot.near_or_far.values():
        if not node.is_known or not node.labels:
            continue
        for pod in (node.pods if wishes else node.near_or_far).values():
            other = pod.shape
            if wishes:
                _weigh(weights, near, other, NO_LABELS, node, 1)
                _weigh(weights, far, other, NO_LABELS, node, -1)
            if other.has_affinity:
                _weigh(weights, other.near, shape, namespace_labels, node, 1)
                _weigh(weights, other.rather_near, shape, namespace_labels, node, 1)
                _weigh(weights, other.rather_far, shape, namespace_labels, node, -1)
    return _Scorer(weights) if weights else None


def _weigh(
    weights: Weights, terms: Iterable[Term], shape: Shape, labels: Mapping[str, str], node: NodeInfo, sign: int
) -> None:
    for term in terms:
        domain = node.labels.get(term.topology_key)
        if domain is not None and term.matches(shape.namespace, shape.labels, labels):
            domains = weights.setdefault(term.topology_key, {})
            domains[domain] = domains.get(domain, 0) + sign * (term.weight or _MUST_COUNTS)


class _Scorer(Scorer):
    def __init__(self, weights: Weights) -> None:
        self._weights = list(weights.items())

    def score(self, node: NodeInfo) -> int:
        labels = node.labels
        return sum([domains.get(labels.get(key, ""), 0) for key, domains in self._weights if key in labels])

    def normalise(self, scores: list[int]) -> list[int]:
        least = min(scores)
        span = max(scores) - least
        return [int(MOST * ((score - least) / span)) if span > 0 else 0 for score in scores]
