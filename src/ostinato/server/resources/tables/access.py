"""Rows of what says who may do what: role bindings, certificates, admission, other API servers."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ostinato.api.time import Duration
from ostinato.server.resources.strategy import Json
from ostinato.server.resources.tables.cells import NONE, UNSET, Cells, age, human, joined, name_of


def _binding(obj: Json, now: datetime) -> list[Any]:
    role, subjects = obj.get("roleRef") or {}, obj.get("subjects") or ()
    names: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in subjects:
        kind, name = subject.get("kind", ""), subject.get("name", "")
        if kind in names:
            names[kind].append(f"{subject.get('namespace', '')}/{name}" if kind == "ServiceAccount" else name)
    return [
        name_of(obj),
        f"{role.get('kind', '')}/{role.get('name', '')}",
        age(obj, now),
        *(", ".join(found) for found in names.values()),
    ]


def _signing_request(obj: Json, now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    seconds = spec.get("expirationSeconds")
    return [
        name_of(obj),
        age(obj, now),
        spec.get("signerName") or NONE,
        spec.get("username", ""),
        NONE if seconds is None else human(Duration.of(seconds).to_timedelta()),
        _signing_state(obj.get("status") or {}),
    ]


def _signing_state(status: Json) -> str:
    kinds = {condition.get("type") for condition in status.get("conditions") or ()}
    words = ["Denied" if "Denied" in kinds else "Approved" if "Approved" in kinds else "Pending"]
    if "Failed" in kinds:
        words.append("Failed")
    if status.get("certificate"):
        words.append("Issued")
    return ",".join(words)


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


def _api_service(obj: Json, now: datetime) -> list[Any]:
    service, shown, available = (obj.get("spec") or {}).get("service"), "Local", "Unknown"
    if service is not None:
        shown = f"{service.get('namespace', '')}/{service.get('name', '')}"
    for condition in (obj.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "Available":
            available = condition.get("status", "")
            if available != "True" and condition.get("reason"):
                available = f"{available} ({condition['reason']})"
            break
    return [name_of(obj), shown, available, age(obj, now)]


_ADMISSION = "admissionregistration.k8s.io"

CELLS: dict[tuple[str, str], Cells] = {
    ("rbac.authorization.k8s.io", "rolebindings"): _binding,
    ("rbac.authorization.k8s.io", "clusterrolebindings"): _binding,
    ("certificates.k8s.io", "certificatesigningrequests"): _signing_request,
    (_ADMISSION, "mutatingwebhookconfigurations"): _webhooks,
    (_ADMISSION, "validatingwebhookconfigurations"): _webhooks,
    (_ADMISSION, "validatingadmissionpolicies"): _validating_policy,
    (_ADMISSION, "mutatingadmissionpolicies"): _mutating_policy,
    (_ADMISSION, "validatingadmissionpolicybindings"): _policy_binding,
    (_ADMISSION, "mutatingadmissionpolicybindings"): _policy_binding,
    ("apiregistration.k8s.io", "apiservices"): _api_service,
}
