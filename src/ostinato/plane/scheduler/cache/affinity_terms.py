"""Pod affinity terms, compiled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from ostinato.api.selectors.labels import Operator, Requirement, Selector, SelectorError, from_label_selector, nothing
from ostinato.api.struct import BuiltinStruct

NO_LABELS: Final[Mapping[str, str]] = {}


class PodTerm(BuiltinStruct):
    topology_key: str = ""
    label_selector: dict[str, Any] | None = None
    namespaces: list[str] = []
    namespace_selector: dict[str, Any] | None = None
    match_label_keys: list[str] = []
    mismatch_label_keys: list[str] = []


class WeightedPodTerm(BuiltinStruct):
    weight: int = 0
    pod_affinity_term: PodTerm | None = None


class PodAffinity(BuiltinStruct):
    required: list[PodTerm] = msgspec.field(name="requiredDuringSchedulingIgnoredDuringExecution", default=[])
    preferred: list[WeightedPodTerm] = msgspec.field(name="preferredDuringSchedulingIgnoredDuringExecution", default=[])


class Term(msgspec.Struct, frozen=True):
    """Compiled term: selects Pods by labels, in namespaces by name or label selector."""

    topology_key: str
    namespaces: frozenset[str]
    namespace_selector: Selector
    selector: Selector
    weight: int = 0

    def matches(self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]) -> bool:
        """Return whether the term matches a Pod with these namespace and labels."""
        if namespace not in self.namespaces and not self.namespace_selector.matches(namespace_labels):
            return False
        return self.selector.matches(labels)


def required_terms(terms: Iterable[PodTerm], namespace: str, labels: Mapping[str, str]) -> tuple[Term, ...]:
    """Compile the required terms of a Pod with these namespace and labels."""
    return tuple([_term(term, namespace, labels, 0) for term in terms])


def preferred_terms(terms: Iterable[WeightedPodTerm], namespace: str, labels: Mapping[str, str]) -> tuple[Term, ...]:
    return tuple(
        [
            _term(each.pod_affinity_term, namespace, labels, each.weight)
            for each in terms
            if each.pod_affinity_term is not None
        ]
    )


def selector_of(selector: Mapping[str, Any] | None) -> Selector:
    """Compile a label selector; null and invalid ones select nothing."""
    try:
        return from_label_selector(selector)
    except SelectorError:
        return nothing()


def with_label_keys(selector: Selector, labels: Mapping[str, str], keys: Iterable[str], operator: Operator) -> Selector:
    """Add matchLabelKeys (`IN`) or mismatchLabelKeys (`NOT_IN`) requirements for the Pod's label values."""
    more = [Requirement(key, operator, (labels[key],)) for key in keys if key in labels]
    return selector.with_requirements(*more) if more else selector


def _term(term: PodTerm, namespace: str, labels: Mapping[str, str], weight: int) -> Term:
    selector = with_label_keys(selector_of(term.label_selector), labels, term.match_label_keys, Operator.IN)
    selector = with_label_keys(selector, labels, term.mismatch_label_keys, Operator.NOT_IN)
    own = not term.namespaces and term.namespace_selector is None
    return Term(
        topology_key=term.topology_key,
        namespaces=frozenset((namespace,) if own else term.namespaces),
        namespace_selector=selector_of(term.namespace_selector),
        selector=selector,
        weight=weight,
    )
