"""Validation of the apps group. Errors are in kube-apiserver's order."""

from __future__ import annotations

from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.api.validation.names import is_dns1123_label, validate_annotations, validate_labels
from ostinato.server.resources.core.pods.spec.validation import validate_pod_template
from ostinato.server.resources.core.storage.claims import validate_claim_spec
from ostinato.server.resources.strategy import Json
from ostinato.server.resources.validation.checks import checked, not_negative, unchanged
from ostinato.server.resources.validation.internal_values import as_internal
from ostinato.server.resources.validation.workloads import (
    SPEC,
    STATUS,
    TEMPLATE,
    always_running,
    at_most_all,
    count_or_percent,
    counts,
    mismatch,
    never_less,
    no_more_than,
    number_in,
    parsed_selector,
    selector_errors,
)

_PARTS = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")
_CHANGEABLE = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)


def same_selector(new: Json, old: Json) -> list[FieldError]:
    path = SPEC.child("selector")
    return unchanged(new["spec"].get("selector"), old["spec"].get("selector"), path, "meta.v1.LabelSelector")


def _selected_template(spec: Json, kind: str) -> list[FieldError]:
    """Validate a selector and a Pod template with restartPolicy Always."""
    selector, template = parsed_selector(spec.get("selector")), spec.get("template") or {}
    if selector is None:
        given = as_internal("meta.v1.LabelSelector", spec.get("selector"))
        return [FieldError.invalid(SPEC.child("selector"), given, "invalid label selector")]
    errors = [] if selector.empty else mismatch(selector, template)
    return errors + validate_pod_template(template, TEMPLATE) + always_running(template, kind)


def deployment(spec: Json) -> list[FieldError]:
    errors = counts(spec, SPEC, "replicas") + selector_errors(spec, "deployment")
    errors += _selected_template(spec, "ReplicaSet")
    errors += _deployment_strategy(spec.get("strategy") or {}, SPEC.child("strategy"))
    errors += counts(spec, SPEC, "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and deadline <= spec.get("minReadySeconds", 0):
        path = SPEC.child("progressDeadlineSeconds")
        errors.append(FieldError.invalid(path, deadline, "must be greater than minReadySeconds"))
    return errors


def _deployment_strategy(strategy: Json, path: Path) -> list[FieldError]:
    kind, rolling, at = strategy.get("type", ""), strategy.get("rollingUpdate"), path.child("rollingUpdate")
    if kind == "Recreate":
        if rolling is None:
            return []
        return [FieldError.forbidden(at, "may not be specified when strategy `type` is 'Recreate'")]
    if kind != "RollingUpdate":
        given = as_internal("apps.v1.DeploymentStrategy", strategy)
        return [FieldError.not_supported(path, given, ["Recreate", "RollingUpdate"])]
    unavailable, surge = (rolling or {}).get("maxUnavailable", 0), (rolling or {}).get("maxSurge", 0)
    path = at.child("maxUnavailable")
    errors = count_or_percent(unavailable, path) + count_or_percent(surge, at.child("maxSurge"))
    if not number_in(unavailable) and not number_in(surge):
        errors.append(FieldError.invalid(path, unavailable, "may not be 0 when `maxSurge` is 0"))
    return errors + at_most_all(unavailable, path)


def deployment_status(new: Json, old: Json) -> list[FieldError]:
    status = new.get("status") or {}
    errors = counts(
        status,
        STATUS,
        "observedGeneration",
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
        "terminatingReplicas",
        "collisionCount",
    )
    errors += no_more_than(status, "replicas", ("updatedReplicas", "readyReplicas", "availableReplicas"))
    errors += no_more_than(status, "readyReplicas", ("availableReplicas",), "cannot be greater than readyReplicas")
    return errors + never_less(new, old, "collisionCount")


def replica_set(spec: Json) -> list[FieldError]:
    errors = counts(spec, SPEC, "replicas", "minReadySeconds") + selector_errors(spec, "deployment")
    return errors + _selected_template(spec, "ReplicaSet")


def replica_set_status(new: Json) -> list[FieldError]:
    status = new.get("status") or {}
    errors = counts(status, STATUS, "replicas", *_PARTS, "observedGeneration", "terminatingReplicas")
    errors += no_more_than(status, "replicas", _PARTS)
    return errors + no_more_than(
        status, "readyReplicas", ("availableReplicas",), "cannot be greater than readyReplicas"
    )


def stateful_set(spec: Json, *, new: bool) -> list[FieldError]:
    errors = _pod_management(spec.get("podManagementPolicy", ""))
    errors += _stateful_strategy(spec.get("updateStrategy") or {}, SPEC.child("updateStrategy"))
    retention, path = (
        spec.get("persistentVolumeClaimRetentionPolicy") or {},
        SPEC.child("persistentVolumeClaimRetentionPolicy"),
    )
    for field in ("whenDeleted", "whenScaled"):
        if retention.get(field) not in ("Retain", "Delete"):
            errors.append(FieldError.not_supported(path.child(field), retention.get(field, ""), ["Retain", "Delete"]))
    if new:  # existing ones are immutable
        for i, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
            at = SPEC.child("volumeClaimTemplates").index(i).child("spec")
            errors += validate_claim_spec(claim.get("spec") or {}, at)
    errors += counts(spec, SPEC, "replicas", "minReadySeconds")
    errors += not_negative((spec.get("ordinals") or {}).get("start", 0), SPEC.child("ordinals.start"))
    if new and spec.get("serviceName"):
        errors += checked(is_dns1123_label, spec["serviceName"], SPEC.child("serviceName"))
    errors += selector_errors(spec, "statefulset")
    selector, template = parsed_selector(spec.get("selector")), spec.get("template") or {}
    if selector is None:
        errors.append(
            FieldError.invalid(SPEC.child("selector"), as_internal("meta.v1.LabelSelector", spec.get("selector")), "")
        )
    else:
        errors += [] if selector.empty else mismatch(selector, template)
        errors += validate_pod_template(_effective_template(spec, template), TEMPLATE)
        made = template.get("metadata") or {}  # labels and annotations are reported twice, as in kube-apiserver
        errors += validate_labels(made.get("labels") or {}, TEMPLATE.child("labels"))
        errors += validate_annotations(made.get("annotations") or {}, TEMPLATE.child("annotations"))
    return errors + always_running(template, "StatefulSet")


def _effective_template(spec: Json, template: Json) -> Json:
    """The template as its Pods will be: with host names and claim volumes."""
    claims = {
        name: {"name": name, "persistentVolumeClaim": {"claimName": name}}
        for name in ((claim.get("metadata") or {}).get("name", "") for claim in spec.get("volumeClaimTemplates") or ())
    }
    pod = {k: v for k, v in (template.get("spec") or {}).items() if k not in ("hostname", "subdomain")}
    if claims:
        pod["volumes"] = [
            *claims.values(),
            *(volume for volume in pod.get("volumes") or () if volume.get("name") not in claims),
        ]
    return {**template, "spec": pod}


def _pod_management(policy: str) -> list[FieldError]:
    path = SPEC.child("podManagementPolicy")
    if policy in ("OrderedReady", "Parallel"):
        return []
    return [FieldError.invalid(path, policy, "must be 'OrderedReady' or 'Parallel'")]


def _stateful_strategy(strategy: Json, path: Path) -> list[FieldError]:
    kind, rolling, at = strategy.get("type", ""), strategy.get("rollingUpdate"), path.child("rollingUpdate")
    if kind == "OnDelete":
        if rolling is None:
            return []
        given = as_internal("apps.v1.RollingUpdateStatefulSetStrategy", rolling)
        return [FieldError.invalid(at, given, "only allowed for updateStrategy 'RollingUpdate'")]
    if kind != "RollingUpdate":
        given = as_internal("apps.v1.StatefulSetUpdateStrategy", strategy)
        return [FieldError.invalid(path, given, "must be 'RollingUpdate' or 'OnDelete'")]
    errors = counts(rolling or {}, at, "partition")
    unavailable = (rolling or {}).get("maxUnavailable")
    if unavailable is not None:
        path = at.child("maxUnavailable")
        errors += count_or_percent(unavailable, path)
        if not number_in(unavailable):
            errors.append(FieldError.invalid(path, unavailable, "cannot be 0"))
        errors += at_most_all(unavailable, path)
    return errors


def stateful_set_changes(new: Json, old: Json) -> list[FieldError]:
    before, after = ({k: v for k, v in obj["spec"].items() if k not in _CHANGEABLE} for obj in (old, new))
    if before == after:
        return []
    names = ", ".join(f"'{name}'" for name in _CHANGEABLE[:-1])
    return [
        FieldError.forbidden(
            SPEC, f"updates to statefulset spec for fields other than {names} and '{_CHANGEABLE[-1]}' are forbidden"
        )
    ]


def stateful_set_status(new: Json, old: Json) -> list[FieldError]:
    status = new.get("status") or {}
    parts = ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
    errors = counts(status, STATUS, "replicas", *parts, "observedGeneration", "collisionCount")
    errors += no_more_than(status, "replicas", parts)
    errors += no_more_than(status, "readyReplicas", ("availableReplicas",))
    return errors + never_less(new, old, "collisionCount")


def daemon_set(spec: Json) -> list[FieldError]:
    template, value = spec.get("template") or {}, spec.get("selector")
    errors = []
    if value is not None:
        errors = [e for e in selector_errors(spec, "daemonset") if not e.detail.startswith("empty selector")]
    selector = parsed_selector(value)
    if selector is not None:
        errors += mismatch(selector, template)
    if value is not None and not value.get("matchLabels") and not value.get("matchExpressions"):
        given = as_internal("meta.v1.LabelSelector", value)
        errors.append(FieldError.invalid(SPEC.child("selector"), given, "empty selector is invalid for daemonset"))
    errors += validate_pod_template(template, TEMPLATE) + always_running(template, "DaemonSet")
    errors += counts(spec, SPEC, "minReadySeconds")
    errors += _daemon_strategy(spec.get("updateStrategy") or {}, SPEC.child("updateStrategy"))
    return errors + counts(spec, SPEC, "revisionHistoryLimit")


def _daemon_strategy(strategy: Json, path: Path) -> list[FieldError]:
    kind, rolling, at = strategy.get("type", ""), strategy.get("rollingUpdate"), path.child("rollingUpdate")
    if kind == "OnDelete":
        return []
    if kind != "RollingUpdate":
        given = as_internal("apps.v1.DaemonSetUpdateStrategy", strategy)
        return [FieldError.not_supported(path, given, ["RollingUpdate", "OnDelete"])]
    unavailable, surge = (rolling or {}).get("maxUnavailable", 0), (rolling or {}).get("maxSurge", 0)
    errors = count_or_percent(unavailable, at.child("maxUnavailable"))
    errors += count_or_percent(surge, at.child("maxSurge"))
    errors += at_most_all(unavailable, at.child("maxUnavailable"))
    errors += at_most_all(surge, at.child("maxSurge"))
    if number_in(unavailable) and number_in(surge):
        detail = "may not be set when maxUnavailable is non-zero"
        errors.append(FieldError.invalid(at.child("maxSurge"), surge, detail))
    elif not number_in(unavailable) and not number_in(surge):
        errors.append(FieldError.required(at.child("maxUnavailable"), "cannot be 0 when maxSurge is 0"))
    return errors


def daemon_set_status(new: Json, old: Json) -> list[FieldError]:
    errors = counts(
        new.get("status") or {},
        STATUS,
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "observedGeneration",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
        "collisionCount",
    )
    return errors + never_less(new, old, "collisionCount")


def controller_revision(obj: Json) -> list[FieldError]:
    return not_negative(obj.get("revision", 0), Path("revision"))
