"""Scopes of quotas: which Pods and claims a quota counts."""

from __future__ import annotations

from collections.abc import Iterable

from ostinato.api.gvk import GroupResource
from ostinato.server.resources.core.pods.spec.resources import quality_of_service
from ostinato.server.resources.strategy import Json

_PODS = GroupResource("", "pods")
_CLAIMS = GroupResource("", "persistentvolumeclaims")


def in_scope(resource: GroupResource, obj: Json, spec: Json) -> bool:
    """Whether an object matches every scope of a quota."""
    terms = scope_terms(spec)
    return not terms or len(matching_terms(resource, obj, terms)) == len(terms)


def scope_terms(spec: Json) -> list[Json]:
    """The scopes of a quota as scope selector terms."""
    terms = [{"scopeName": scope, "operator": "Exists"} for scope in spec.get("scopes") or ()]
    return terms + ((spec.get("scopeSelector") or {}).get("matchExpressions") or [])


def matching_terms(resource: GroupResource, obj: Json, terms: Iterable[Json]) -> list[Json]:
    """The terms that an object matches; only Pods and claims match any."""
    if resource == _PODS:
        return [term for term in terms if _matches_pod(obj["spec"], term)]
    return [term for term in terms if _matches_claim(obj, term)] if resource == _CLAIMS else []


def is_terminating(pod: Json) -> bool:
    """Whether a Pod is in the scope Terminating: it has activeDeadlineSeconds."""
    return pod["spec"].get("activeDeadlineSeconds") is not None


def _matches_pod(spec: Json, term: Json) -> bool:
    match term.get("scopeName"):
        case "Terminating":
            return is_terminating({"spec": spec})
        case "NotTerminating":
            return not is_terminating({"spec": spec})
        case "BestEffort":
            return quality_of_service(spec) == "BestEffort"
        case "NotBestEffort":
            return quality_of_service(spec) != "BestEffort"
        case "PriorityClass":
            return _matches_names({spec["priorityClassName"]} if spec.get("priorityClassName") else set(), term)
        case "CrossNamespacePodAffinity":
            return any("namespaceSelector" in each or each.get("namespaces") for each in _affinity_terms(spec))
        case _:
            return False


def _affinity_terms(spec: Json) -> Iterable[Json]:
    affinity = spec.get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(kind) or {}
        yield from terms.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        for weighted in terms.get("preferredDuringSchedulingIgnoredDuringExecution") or ():
            yield weighted.get("podAffinityTerm") or {}


def _matches_claim(claim: Json, term: Json) -> bool:
    if term.get("scopeName") != "VolumeAttributesClass":
        return False
    status = claim.get("status") or {}
    names = {
        claim["spec"].get("volumeAttributesClassName"),
        status.get("currentVolumeAttributesClassName"),
        (status.get("modifyVolumeStatus") or {}).get("targetVolumeAttributesClassName"),
    }
    return _matches_names({name for name in names if name}, term)


def _matches_names(names: set[str], term: Json) -> bool:
    """Whether a term matches one of the names; without names only NotIn and DoesNotExist match."""
    values = term.get("values") or ()
    match term.get("operator"):
        case "Exists":
            return bool(names)
        case "DoesNotExist":
            return not names
        case "In":
            return any(name in values for name in names)
        case _:
            return not names or any(name not in values for name in names)
