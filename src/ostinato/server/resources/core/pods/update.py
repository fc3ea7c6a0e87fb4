"""Validation of Pod updates: most of the spec is immutable."""

from __future__ import annotations

from typing import Any

from ostinato.api.text.short_cache import short_cache
from ostinato.api.validation import names
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.resources.core.pods import status as pod_status
from ostinato.server.resources.core.pods.spec.containers import validate_image_text
from ostinato.server.resources.core.pods.spec.scheduling import validate_tolerations
from ostinato.server.resources.strategy import Json
from ostinato.server.resources.validation.checks import checked, difference, legacy_ip, unchanged
from ostinato.server.resources.validation.internal_values import as_internal

_SPEC = Path("spec")
_STATUS = Path("status")
_CHANGEABLE = ",".join(
    (
        "`spec.containers[*].image`",
        "`spec.initContainers[*].image`",
        "`spec.activeDeadlineSeconds`",
        "`spec.tolerations` (only additions to existing tolerations)",
        "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
    )
)
_ONLY_MORE = "only additions are allowed (no mutations or deletions)"
_LONGEST_DEADLINE = (1 << 31) - 1
_SYSTEM_CONDITIONS = ("PodScheduled", "Ready", "Initialized")
_APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
_POD = "core.v1.PodSpec"
_TERM = "core.v1.NodeSelectorTerm"
_MIRROR = "kubernetes.io/config.mirror"


def validate_spec_change(spec: Json, old: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    for kind in ("containers", "initContainers"):
        path, containers = _SPEC.child(kind), spec.get(kind) or []
        if len(containers) != len(old.get(kind) or ()):
            return [*errors, FieldError.forbidden(path, "pod updates may not add or remove containers")]
        for i, container in enumerate(containers):
            if not container.get("image"):
                errors.append(FieldError.required(path.index(i).child("image")))
            errors += validate_image_text(container, path.index(i))
    wrong, stop = _validate_deadline(spec.get("activeDeadlineSeconds"), old.get("activeDeadlineSeconds"))
    errors += wrong
    if stop:
        return errors
    errors += _validate_tolerations(spec.get("tolerations", []), old.get("tolerations", []))
    errors += _validate_gates(spec.get("schedulingGates", []), old.get("schedulingGates", []))
    if spec == old:
        return errors
    kept = _with_changeable(spec, old)
    if old.get("schedulingGates"):
        errors += _allow_narrower_nodes(kept, old)
    if kept != old:
        changes = difference(as_internal(_POD, old), as_internal(_POD, kept))
        detail = f"pod updates may not change fields other than {_CHANGEABLE}\n{changes}"
        errors.append(FieldError.forbidden(_SPEC, detail))
    return errors


def _validate_deadline(new: int | None, old: int | None) -> tuple[list[FieldError], bool]:
    """Validate activeDeadlineSeconds; return the errors, and whether validation ends with them."""
    path = _SPEC.child("activeDeadlineSeconds")
    if new is None:
        if old is None:
            return [], False
        return [FieldError.invalid(path, None, "must not update from a positive integer to nil value")], False
    if not 0 <= new <= _LONGEST_DEADLINE:
        return [FieldError.invalid(path, new, f"must be between 0 and {_LONGEST_DEADLINE}, inclusive")], True
    if old is not None and old < new:
        return [FieldError.invalid(path, new, "must be less than or equal to previous value")], True
    return [], False


def _validate_tolerations(new: list[Json], old: list[Json]) -> list[FieldError]:
    path = _SPEC.child("tolerations")
    known = [_without_seconds(toleration) for toleration in new]
    if any(_without_seconds(toleration) not in known for toleration in old):
        return [FieldError.forbidden(path, "existing toleration can not be modified except its tolerationSeconds")]
    return validate_tolerations(new, path)


def _without_seconds(toleration: Json) -> Json:
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}


def _validate_gates(new: list[Json], old: list[Json]) -> list[FieldError]:
    known = {gate.get("name", "") for gate in old}
    return [
        FieldError.forbidden(
            _SPEC.child("schedulingGates").index(i).child("name"),
            f"only deletion is allowed, but found new scheduling gate '{gate.get('name', '')}'",
        )
        for i, gate in enumerate(new)
        if gate.get("name", "") not in known
    ]


def _with_changeable(spec: Json, old: Json) -> Json:
    """The new spec with the old values of mutable fields: any remaining difference is forbidden."""
    kept = dict(spec)
    for kind in ("containers", "initContainers"):
        if spec.get(kind):
            kept[kind] = [
                {**container, "image": before["image"]} for container, before in zip(spec[kind], old[kind], strict=True)
            ]
    for field in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        _take(field, kept, old)
    if old.get("terminationGracePeriodSeconds", 0) < 0 and spec.get("terminationGracePeriodSeconds") == 1:
        _take("terminationGracePeriodSeconds", kept, old)
    return kept


def _take(field: str, to: Json, old: Json) -> None:
    to.pop(field, None)
    if field in old:
        to[field] = old[field]


def _allow_narrower_nodes(kept: Json, old: Json) -> list[FieldError]:
    """Allow a Pod with scheduling gates to narrow its node affinity."""
    errors: list[FieldError] = []
    selector, before = kept.get("nodeSelector", {}), old.get("nodeSelector", {})
    if selector != before:
        if any(selector.get(key) != value for key, value in before.items()):
            detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
            errors.append(FieldError.invalid(_SPEC.child("nodeSelector"), kept.get("nodeSelector"), detail))
        _take("nodeSelector", kept, old)
    affinity, previous = kept.get("affinity", {}), old.get("affinity", {})
    if affinity.get("nodeAffinity") != previous.get("nodeAffinity"):
        errors += _validate_node_affinity(affinity.get("nodeAffinity"), previous.get("nodeAffinity"))
        merged = {key: value for key, value in affinity.items() if key != "nodeAffinity"}
        if "nodeAffinity" in previous:
            merged["nodeAffinity"] = previous["nodeAffinity"]
        if merged or "affinity" in old:
            kept["affinity"] = merged
        else:
            kept.pop("affinity", None)
    return errors


def _validate_node_affinity(new: Json | None, old: Json | None) -> list[FieldError]:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    before = ((old or {}).get(required) or {}).get("nodeSelectorTerms") or []
    if not before:
        return []
    given = ((new or {}).get(required) or {}).get("nodeSelectorTerms")
    terms = given or []
    path = _SPEC.child("affinity").child("nodeAffinity").child(required).child("nodeSelectorTerms")
    if len(terms) != len(before):
        detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        return [FieldError.invalid(path, as_internal(_TERM, given), detail)]
    return [
        FieldError.invalid(path.index(i), as_internal(_TERM, term), _ONLY_MORE)
        for i, (term, previous) in enumerate(zip(terms, before, strict=True))
        if not _has_only_additions(term, previous)
    ]


def _has_only_additions(new: Json, old: Json) -> bool:
    if not old.get("matchExpressions") and not old.get("matchFields"):
        return not new.get("matchExpressions") and not new.get("matchFields")
    for key in ("matchExpressions", "matchFields"):
        before = old.get(key, [])
        if new.get(key, [])[: len(before)] != before:
            return False
    return True


def validate_annotation_change(new: dict[str, str], old: dict[str, str]) -> list[FieldError]:
    """Validate that annotations that define a Pod are unchanged."""
    path = Path("metadata", "annotations")
    errors: list[FieldError] = []
    for key in {**old, **new}:
        if new.get(key) == old.get(key) or not (key.startswith(_APP_ARMOR) or key == _MIRROR):
            continue
        what = "AppArmor annotations" if key != _MIRROR else "mirror pod annotation"
        verb = "may not remove or update" if key in old else "may not add"
        errors.append(FieldError.forbidden(path.key(key), f"{verb} {what}"))
    return errors


def validate_status_change(pod: Json, old: Json) -> list[FieldError]:
    status, before = pod.get("status", {}), old.get("status", {})
    errors = _validate_conditions(status.get("conditions", []))
    nominated = status.get("nominatedNodeName", "")
    if nominated and nominated != before.get("nominatedNodeName", ""):
        path = _STATUS.child("nominatedNodeName")
        errors += checked(names.name_is_dns_subdomain, nominated, path)
        if old["spec"].get("nodeName"):
            errors.append(FieldError.forbidden(path, "may not be set on pods that are already bound to a node"))
    if status.get("observedGeneration", 0) < 0:
        path, value = _STATUS.child("observedGeneration"), status["observedGeneration"]
        errors.append(FieldError.invalid(path, value, "must be a non-negative integer"))
    errors += unchanged(status.get("qosClass", ""), before.get("qosClass", ""), _STATUS.child("qosClass"))
    for field, kind in (("containerStatuses", "containers"), ("initContainerStatuses", "initContainers")):
        errors += _validate_states(status.get(field, []), before.get(field, []), old["spec"], kind, field)
    errors += pod_status.validate_ephemeral_statuses(status, before)
    errors += pod_status.validate_claims(status, pod["spec"])
    hosts = status.get("hostIPs", [])
    errors += _validate_addresses("podIPs", status, before)
    if hosts and hosts[0].get("ip", "") != status.get("hostIP", ""):
        path = _STATUS.child("hostIPs").index(0).child("ip")
        errors.append(FieldError.invalid(path, hosts[0].get("ip", ""), "must be equal to `hostIP`"))
    errors += _validate_addresses("hostIPs", status, before)
    return errors + pod_status.validate_containers(status, pod["spec"])


def _validate_addresses(field: str, status: Json, old: Json) -> list[FieldError]:
    addresses = [each.get("ip", "") for each in status.get(field, ())]
    existing = [each.get("ip", "") for each in old.get(field, ())]
    if addresses == existing and len(addresses) < 2:
        return []
    path = _STATUS.child(field)
    errors = [error for i, ip in enumerate(addresses) for error in legacy_ip(ip, path.index(i), existing)]
    if len(addresses) > 1 and ({":" in ip for ip in addresses} != {True, False} or len(addresses) > 2):
        given = as_internal(f"core.v1.{field[0].upper()}{field[1:-1]}", status[field])
        errors.append(FieldError.invalid(path, given, "may specify no more than one IP for each IP family"))
    return errors


def _validate_conditions(conditions: list[Json]) -> list[FieldError]:
    errors: list[FieldError] = []
    for i, condition in enumerate(conditions):
        generation, kind = condition.get("observedGeneration", 0), condition.get("type", "")
        if generation >= 0 and _is_condition_type(kind):
            continue
        at = _STATUS.child("conditions").index(i)
        if generation < 0:
            message = "must be a non-negative integer"
            errors.append(FieldError.invalid(at.child("observedGeneration"), generation, message))
        if kind not in _SYSTEM_CONDITIONS:
            errors += checked(names.is_qualified_name, kind, at.child("Type"))
    return errors


@short_cache(256)  # few types, in every status
def _is_condition_type(kind: str) -> bool:
    return kind in _SYSTEM_CONDITIONS or not names.is_qualified_name(kind)


def _validate_states(new: list[Json], old: list[Json], spec: Json, kind: str, field: str) -> list[FieldError]:
    """Validate that a terminated container that is not restarted does not run again."""
    if not old:
        return []
    if any(
        rule.get("action") == "RestartAllContainers"
        for every in ("containers", "initContainers")
        for container in spec.get(every) or ()
        for rule in container.get("restartPolicyRules", ())
    ):
        return []
    containers = {container.get("name", ""): container for container in spec.get(kind) or ()}
    states = {status.get("name", ""): status.get("state", {}) for status in reversed(new)}
    errors: list[FieldError] = []
    for i, status in enumerate(old):
        ended, name = status.get("state", {}).get("terminated"), status.get("name", "")
        if ended is None or name not in states or "terminated" in states[name]:
            continue
        container = containers.get(name)
        if container is None or not _restarts(container, spec, ended.get("exitCode", 0), init=kind == "initContainers"):
            path = _STATUS.child(field).index(i).child("state")
            errors.append(FieldError.forbidden(path, "may not be transitioned to non-terminated state"))
    return errors


def _restarts(container: Json, spec: Json, code: int, *, init: bool) -> bool:
    for rule in container.get("restartPolicyRules", ()):
        codes: dict[str, Any] = rule.get("exitCodes") or {}
        if (code in codes.get("values", ())) == (codes.get("operator") == "In"):
            return bool(rule.get("action") == "Restart")
    policy = container.get("restartPolicy") or spec.get("restartPolicy")
    if init and "restartPolicy" not in container and policy == "Always":
        policy = "OnFailure"  # a succeeded init container is not restarted
    return policy == "Always" or (policy == "OnFailure" and code != 0)
