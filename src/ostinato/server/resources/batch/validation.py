"""Validation of the batch group. Errors are in kube-apiserver's order."""

from __future__ import annotations

import re
from typing import Final

from ostinato.api.selectors import labels
from ostinato.api.text.cron import ScheduleError, parse_schedule
from ostinato.api.validation import field_values, names
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.resources.batch.job_policies import validate_failure_policy, validate_success_policy
from ostinato.server.resources.core.pods.spec.validation import validate_pod_template
from ostinato.server.resources.strategy import Json
from ostinato.server.resources.tables.cells import condition_status
from ostinato.server.resources.validation.checks import listed, one_of, unchanged
from ostinato.server.resources.validation.internal_values import as_internal
from ostinato.server.resources.validation.workloads import (
    SPEC,
    TEMPLATE,
    counts,
    mismatch,
    parsed_selector,
    template_labels,
)

_LONGEST_CRON_JOB_NAME = 52  # names of its Jobs are eleven characters longer
_LONGEST_MANAGER = 63
_MOST_AT_ONCE = 100_000
_MANY = 100_000  # completions above which lower limits apply
_MOST_OF_MANY = 10_000
_ZONE_PART: Final = re.compile(r"[A-Za-z.\-_0-9+]{1,14}", re.ASCII)
_GENERATED = ("controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name")


def job(obj: Json) -> list[FieldError]:
    spec, name = obj["spec"], obj["metadata"].get("name", "")
    errors = _generated_selector(obj) + _selecting_spec(spec)
    last = spec.get("completions", 0) - 1
    if spec.get("completionMode") == "Indexed" and last >= 0 and names.is_dns1123_label(f"{name}-{last}"):
        detail = f"will not able to create pod with invalid DNS label: {name}-{last}"
        errors.append(FieldError.invalid(Path("metadata", "name"), name, detail))
    return errors


def _selecting_spec(spec: Json) -> list[FieldError]:
    """Validate the spec and that its selector selects the template's Pods."""
    errors, selector = job_spec(spec, SPEC), spec.get("selector")
    if selector is None:
        errors.append(FieldError.required(SPEC.child("selector")))
    else:
        errors += labels.validate_label_selector(selector, SPEC.child("selector"))
    parsed = parsed_selector(selector)
    return errors if parsed is None else errors + mismatch(parsed, spec["template"])


def _generated_selector(obj: Json) -> list[FieldError]:
    """Validate that a generated selector has its generated form."""
    spec, meta = obj["spec"], obj["metadata"]
    if spec.get("manualSelector") or spec.get("selector") is None:
        return []
    wanted = {key: meta.get("uid" if key.endswith("uid") else "name", "") for key in _GENERATED}
    found, path = template_labels(spec["template"]), TEMPLATE.child("metadata", "labels")
    errors = []
    for key, value in wanted.items():
        if key not in (found or {}):
            errors.append(FieldError.required(path.key(key), f"must be '{value}'"))
        elif found[key] != value:
            errors.append(FieldError.invalid(path.key(key), found, f"must be '{value}'"))
    selector = parsed_selector(spec["selector"])
    if selector is not None and not selector.matches(wanted):
        errors.append(
            FieldError.invalid(
                SPEC.child("selector"),
                as_internal("meta.v1.LabelSelector", spec["selector"]),
                "`selector` not auto-generated",
            )
        )
    return errors


def job_spec(spec: Json, path: Path) -> list[FieldError]:
    """Validate a JobSpec."""
    errors = counts(
        spec,
        path,
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    )
    if "maxFailedIndexes" in spec and "backoffLimitPerIndex" not in spec:
        errors.append(FieldError.required(path.child("backoffLimitPerIndex"), "when maxFailedIndexes is specified"))
    if "managedBy" in spec:
        errors += field_values.validate_domain_prefixed_path(spec["managedBy"], path.child("managedBy"))
        if names.byte_length(spec["managedBy"]) > _LONGEST_MANAGER:
            errors.append(FieldError.too_long(path.child("managedBy"), _LONGEST_MANAGER))
    errors += _completion_mode(spec, path)
    if "podFailurePolicy" in spec:
        errors += validate_failure_policy(spec, path)
    if "successPolicy" in spec:
        errors += validate_success_policy(spec, path)
    if "podReplacementPolicy" in spec:
        policies = ["Failed"] if "podFailurePolicy" in spec else ["Failed", "TerminatingOrFailed"]
        errors += listed(spec["podReplacementPolicy"], policies, path.child("podReplacementPolicy"))
    template = spec.get("template") or {}
    errors += validate_pod_template(template, path.child("template"))
    return errors + _restart_policy(spec, template.get("spec") or {}, path.child("template", "spec", "restartPolicy"))


def _completion_mode(spec: Json, path: Path) -> list[FieldError]:
    mode = spec.get("completionMode")
    errors = [] if mode is None else listed(mode, ["NonIndexed", "Indexed"], path.child("completionMode"))
    if mode == "Indexed":
        if "completions" not in spec:
            errors.append(FieldError.required(path.child("completions"), "when completion mode is Indexed"))
        if spec.get("parallelism", 0) > _MOST_AT_ONCE:
            detail = f"must be less than or equal to {_MOST_AT_ONCE} when completion mode is Indexed"
            errors.append(FieldError.invalid(path.child("parallelism"), spec["parallelism"], detail))
        return errors + _failed_indexes(spec, path)
    for field in ("backoffLimitPerIndex", "maxFailedIndexes"):
        if mode in (None, "NonIndexed") and field in spec:
            errors.append(FieldError.invalid(path.child(field), spec[field], "requires indexed completion mode"))
    return errors


def _failed_indexes(spec: Json, path: Path) -> list[FieldError]:
    """Validate maxFailedIndexes against completions and parallelism."""
    most, completions, errors = spec.get("maxFailedIndexes"), spec.get("completions"), []
    at = path.child("maxFailedIndexes")
    if most is not None and completions is not None and most > completions:
        errors.append(FieldError.invalid(at, most, "must be less than or equal to completions"))
    if most is not None and most > _MANY:
        errors.append(FieldError.invalid(at, most, f"must be less than or equal to {_MANY}"))
    if completions is None or completions <= _MANY or "backoffLimitPerIndex" not in spec:
        return errors
    if most is None:
        errors.append(FieldError.required(at, f"must be specified when completions is above {_MANY}"))
    rule = f"when completions are above {_MANY} and used with backoff limit per index"
    for field in ("parallelism", "maxFailedIndexes"):
        if spec.get(field, 0) > _MOST_OF_MANY:
            detail = f"must be less than or equal to {_MOST_OF_MANY} {rule}"
            errors.append(FieldError.invalid(path.child(field), spec[field], detail))
    return errors


def _restart_policy(spec: Json, pod: Json, path: Path) -> list[FieldError]:
    policy = pod.get("restartPolicy", "")
    if policy in ("", "Always"):
        return [FieldError.required(path, 'valid values: "OnFailure", "Never"')]
    if policy not in ("OnFailure", "Never"):
        return [FieldError.not_supported(path, policy, ["OnFailure", "Never"])]
    if "podFailurePolicy" in spec and policy != "Never":
        return [FieldError.invalid(path, policy, 'only "Never" is supported when podFailurePolicy is specified')]
    return []


_FIXED = {  # immutable fields, each with the model of its value
    "completionMode": "",
    "podFailurePolicy": "batch.v1.PodFailurePolicy",
    "backoffLimitPerIndex": "",
    "managedBy": "",
    "successPolicy": "batch.v1.SuccessPolicy",
}


def job_changes(new: Json, old: Json) -> list[FieldError]:
    spec, before = new["spec"], old["spec"]
    errors = _selecting_spec(spec)  # again, as in kube-apiserver
    errors += _completions_change(spec, before)
    errors += unchanged(spec.get("selector"), before.get("selector"), SPEC.child("selector"), "meta.v1.LabelSelector")
    errors += _template_change(spec, before, old.get("status") or {})
    for field, model in _FIXED.items():
        errors += unchanged(spec.get(field), before.get(field), SPEC.child(field), model)
    return errors


def _completions_change(spec: Json, before: Json) -> list[FieldError]:
    path, wanted = SPEC.child("completions"), spec.get("completions")
    if spec.get("completionMode") != "Indexed":
        return unchanged(wanted, before.get("completions"), path)
    if wanted is None or wanted == before.get("completions") or wanted == spec.get("parallelism"):
        return []
    return [FieldError.invalid(path, wanted, "can only be modified in tandem with spec.parallelism")]


def _template_change(spec: Json, before: Json, status: Json) -> list[FieldError]:
    """Validate a change of the Pod template: only a suspended Job may change scheduling directives and resources."""
    new, old = spec["template"], before["template"]
    if new == old:
        return []
    suspended = bool(before.get("suspend"))
    idle = "startTime" not in status or condition_status({"status": status}, "Suspended") == "True"
    if not suspended or not idle or status.get("active"):
        return [FieldError.invalid(TEMPLATE, as_internal("core.v1.PodTemplateSpec", new), "field is immutable")]
    if _immutable_part(new["spec"]) == _immutable_part(old["spec"]):
        return []
    return [
        FieldError.invalid(
            SPEC.child("template.spec"), as_internal("core.v1.PodSpec", new["spec"]), "field is immutable"
        )
    ]


_DIRECTIVES = ("nodeSelector", "tolerations", "schedulingGates")


def _immutable_part(pod: Json) -> Json:
    """A Pod spec without its scheduling directives and the resources of its containers."""
    kept = {key: value for key, value in pod.items() if key not in _DIRECTIVES}
    affinity = {k: v for k, v in (kept.pop("affinity", None) or {}).items() if k != "nodeAffinity"}
    if affinity:
        kept["affinity"] = affinity
    for field in ("containers", "initContainers"):
        if kept.get(field):
            kept[field] = [{k: v for k, v in c.items() if k != "resources"} for c in kept[field]]
    return kept


def cron_job(spec: Json, old: Json | None) -> list[FieldError]:
    errors = _schedule(spec, old)
    errors += counts(spec, SPEC, "startingDeadlineSeconds")
    if old is None or old.get("timeZone") != spec.get("timeZone"):
        errors += _time_zone(spec)
    errors += one_of(spec.get("concurrencyPolicy", ""), ["Allow", "Forbid", "Replace"], SPEC.child("concurrencyPolicy"))
    template, path = (spec.get("jobTemplate") or {}).get("spec") or {}, SPEC.child("jobTemplate", "spec")
    errors += job_spec(template, path)
    if template.get("selector") is not None:
        detail = "`selector` will be auto-generated"
        given = as_internal("meta.v1.LabelSelector", template["selector"])
        errors.append(FieldError.invalid(path.child("selector"), given, detail))
    if template.get("manualSelector"):
        errors.append(
            FieldError.not_supported(path.child("manualSelector"), template["manualSelector"], ["nil", "false"])
        )
    return errors + counts(spec, SPEC, "successfulJobsHistoryLimit", "failedJobsHistoryLimit")


def _schedule(spec: Json, old: Json | None) -> list[FieldError]:
    path, schedule = SPEC.child("schedule"), spec.get("schedule", "")
    if not schedule:
        return [FieldError.required(path)]
    errors = _unreadable(schedule, None, path, schedule)
    had_zone = "TZ" in (old or {}).get("schedule", "")
    if "TZ" in schedule and had_zone and "timeZone" in spec:
        detail = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
        errors.append(FieldError.invalid(path, schedule, detail))
    elif "TZ" in schedule and not had_zone:
        detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        errors.append(FieldError.invalid(path, schedule, detail))
    return errors


def _time_zone(spec: Json) -> list[FieldError]:
    path, zone = SPEC.child("timeZone"), spec.get("timeZone")
    if zone is None:
        return []
    if not zone:
        return [FieldError.invalid(path, zone, "timeZone must be nil or non-empty string")]
    for part in zone.split("/"):
        if part in (".", "..") or part.startswith("-") or not _ZONE_PART.fullmatch(part):
            return [FieldError.invalid(path, zone, f"unknown time zone {zone}")]
    errors = []
    if zone.lower() == "local":
        detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        errors.append(FieldError.invalid(path, zone, detail))
    return errors + _unreadable("@hourly", zone, path, zone)


def _unreadable(schedule: str, zone: str | None, path: Path, value: str) -> list[FieldError]:
    try:
        parse_schedule(schedule, zone)
    except ScheduleError as error:
        return [FieldError.invalid(path, value, str(error))]
    return []


def cron_job_name(name: str) -> list[FieldError]:
    if len(name) <= _LONGEST_CRON_JOB_NAME:
        return []
    detail = f"must be no more than {_LONGEST_CRON_JOB_NAME} characters"
    return [FieldError.invalid(Path("metadata", "name"), name, detail)]
