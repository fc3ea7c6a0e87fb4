"""Scoring of InterPodAffinity: preferred terms of the Pod and of existing Pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from ostinato.plane.scheduler.cache.affinity_terms import NO_LABELS, Term
from ostinato.plane.scheduler.cache.node_info import NodeInfo
from ostinato.plane.scheduler.cache.pod_info import Shape
from ostinato.plane.scheduler.framework.interface import MAX_NODE_SCORE, Cycle, Scorer

_HARD_WEIGHT: Final = 1  # hardPodAffinityWeight: required affinity of existing Pods

Weights = dict[str, dict[str, int]]
"""Weights: label key -> value -> weight."""


def scorer_of(cycle: Cycle) -> Scorer | None:
    """Return the scorer; None if no terms apply."""
    shape = cycle.shape
    has_preferences = bool(shape.preferred_affinity or shape.preferred_anti_affinity)
    snapshot = cycle.snapshot
    if not has_preferences and not snapshot.with_affinity:
        return None
    affinity = [cycle.listers.resolved(term) for term in shape.preferred_affinity]
    anti_affinity = [cycle.listers.resolved(term) for term in shape.preferred_anti_affinity]
    namespace_labels = cycle.listers.namespace_labels(shape.namespace)
    weights: Weights = {}
    for node in snapshot.nodes if has_preferences else snapshot.with_affinity.values():
        if not node.is_known or not node.labels:
            continue
        for pod in (node.pods if has_preferences else node.with_affinity).values():
            other = pod.shape
            if has_preferences:
                _add_weights(weights, affinity, other, NO_LABELS, node, 1)
                _add_weights(weights, anti_affinity, other, NO_LABELS, node, -1)
            if other.has_affinity:
                _add_weights(weights, other.affinity, shape, namespace_labels, node, 1)
                _add_weights(weights, other.preferred_affinity, shape, namespace_labels, node, 1)
                _add_weights(weights, other.preferred_anti_affinity, shape, namespace_labels, node, -1)
    return _Scorer(weights) if weights else None


def _add_weights(
    weights: Weights, terms: Iterable[Term], shape: Shape, labels: Mapping[str, str], node: NodeInfo, sign: int
) -> None:
    for term in terms:
        domain = node.labels.get(term.topology_key)
        if domain is not None and term.matches(shape.namespace, shape.labels, labels):
            domains = weights.setdefault(term.topology_key, {})
            domains[domain] = domains.get(domain, 0) + sign * (term.weight or _HARD_WEIGHT)


class _Scorer(Scorer):
    def __init__(self, weights: Weights) -> None:
        self._weights = list(weights.items())

    def score(self, node: NodeInfo) -> int:
        labels = node.labels
        return sum([domains.get(labels.get(key, ""), 0) for key, domains in self._weights if key in labels])

    def normalize(self, scores: list[int]) -> list[int]:
        least = min(scores)
        span = max(scores) - least
        return [int(MAX_NODE_SCORE * ((score - least) / span)) if span > 0 else 0 for score in scores]
