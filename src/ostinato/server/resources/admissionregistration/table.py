"""Table rows of the admissionregistration.k8s.io group."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ostinato.server.resources.strategy import Json
from ostinato.server.resources.tables.cells import UNSET, Cells, age, joined, name_of


def _webhooks(obj: Json, now: datetime) -> list[Any]:
    return [name_of(obj), len(obj.get("webhooks") or ()), age(obj, now)]


def _validating_policy(obj: Json, now: datetime) -> list[Any]:
    return _policy(obj, now, "validations")


def _mutating_policy(obj: Json, now: datetime) -> list[Any]:
    return _policy(obj, now, "mutations")


def _policy(obj: Json, now: datetime, rules: str) -> list[Any]:
    spec = obj.get("spec") or {}
    kind = spec.get("paramKind")
    parameters = UNSET if kind is None else f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}"
    return [name_of(obj), len(spec.get(rules) or ()), parameters, age(obj, now)]


def _policy_binding(obj: Json, now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    return [name_of(obj), spec.get("policyName", ""), _parameters(spec.get("paramRef")), age(obj, now)]


def _parameters(reference: Json | None) -> str:
    if reference is None:
        return UNSET
    if reference.get("name"):
        return f"{reference.get('namespace') or '*'}/{reference['name']}"
    selector = reference.get("selector")
    if selector is None:
        return UNSET
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{e.get('key', '')},Operator:{e.get('operator', '')},"
        f"Values:[{joined(e.get('values'), ' ')}],}},"
        for e in selector.get("matchExpressions") or ()
    )
    labels = "".join(f"{key}: {value}," for key, value in sorted((selector.get("matchLabels") or {}).items()))
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )


CELLS: dict[tuple[str, str], Cells] = {
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"): _webhooks,
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"): _webhooks,
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"): _validating_policy,
    ("admissionregistration.k8s.io", "mutatingadmissionpolicies"): _mutating_policy,
    ("admissionregistration.k8s.io", "validatingadmissionpolicybindings"): _policy_binding,
    ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings"): _policy_binding,
}
