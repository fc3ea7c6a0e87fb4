"""Strategies of the batch group: Jobs and CronJobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ostinato.api.validation.field_errors import FieldError
from ostinato.server.resources.batch import validation
from ostinato.server.resources.batch.job_status import job_status_errors
from ostinato.server.resources.core.pods.spec.defaults import default_pod_template
from ostinato.server.resources.core.pods.spec.warnings import workload_warnings
from ostinato.server.resources.strategy import Json, Strategy
from ostinato.server.resources.validation.workloads import name_warnings, template_labels

_NAME_LABELS = ("job-name", "batch.kubernetes.io/job-name")
_UID_LABELS = ("controller-uid", "batch.kubernetes.io/controller-uid")
_NO_LIMIT = (1 << 31) - 1
_PRESERVED = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set "
    "propagationPolicy=Orphan to suppress this warning"
)


class Job(Strategy):
    generation = True
    orphans_dependents = True  # default of the API from before the garbage collector existed
    delete_warnings = (_PRESERVED,)
    empty_status: ClassVar[Json] = {}
    selectable = ("status.successful",)

    def default(self, obj: Json) -> None:
        spec = obj.setdefault("spec", {})
        default_job_spec(spec)
        _default_labels(obj)
        spec.setdefault("completionMode", "NonIndexed")
        spec.setdefault("suspend", False)
        policy = "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed"
        spec.setdefault("podReplacementPolicy", policy)
        spec.setdefault("manualSelector", False)
        if "completions" not in spec and "parallelism" not in spec:
            spec["completions"] = spec["parallelism"] = 1
        spec.setdefault("parallelism", 1)
        spec.setdefault("backoffLimit", _NO_LIMIT if "backoffLimitPerIndex" in spec else 6)

    def prepare_create(self, obj: Json) -> None:
        super().prepare_create(obj)
        spec = obj["spec"]
        if not spec["manualSelector"]:
            _generate_selector(obj)
        _default_labels(obj)

    def prepare_status_update(self, new: Json, old: Json) -> None:
        super().prepare_status_update(new, old)
        _default_labels(new)

    def validate(self, obj: Json) -> list[FieldError]:
        return validation.job(obj)

    def validate_update(self, new: Json, old: Json) -> list[FieldError]:
        return validation.job(new) + validation.job_changes(new, old)

    def validate_status_update(self, new: Json, old: Json) -> list[FieldError]:
        return job_status_errors(new, old)

    def warnings(self, new: Json, old: Json | None) -> list[str]:
        return name_warnings(new, old) + workload_warnings(new, old)

    def fields(self, obj: Mapping[str, Any]) -> dict[str, str]:
        return {"status.successful": str((obj.get("status") or {}).get("succeeded", 0))}


def default_job_spec(spec: Json) -> None:
    """Apply the defaults that a Job and a Job template share."""
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or ():
        for pattern in rule.get("onPodConditions") or ():
            pattern["status"] = pattern.get("status") or "True"
    default_pod_template(spec.setdefault("template", {}))


def _default_labels(obj: Json) -> None:
    """Default the labels of a Job to those of its Pod template."""
    found = template_labels(obj["spec"]["template"])
    if found and not obj["metadata"].get("labels"):
        obj["metadata"]["labels"] = found  # shared on purpose: a label added to one is in both


def _generate_selector(obj: Json) -> None:
    """Generate the selector by uid and the Pod labels of a Job, so that no two Jobs select the same Pods."""
    meta, spec = obj["metadata"], obj["spec"]
    made = spec["template"].setdefault("metadata", {})
    before = made.get("labels") or {}
    labels = dict(before)
    for key in _NAME_LABELS:
        labels.setdefault(key, meta.get("name", ""))
    for key in _UID_LABELS:
        labels.setdefault(key, meta["uid"])
    made["labels"] = labels
    if before and meta.get("labels") is before:  # defaulted from the template
        meta["labels"] = dict(labels)
    selector = spec["selector"] = dict(spec.get("selector") or {})
    selector["matchLabels"] = {_UID_LABELS[1]: meta["uid"], **(selector.get("matchLabels") or {})}


class CronJob(Strategy):
    generation = True
    empty_status: ClassVar[Json] = {}

    def default(self, obj: Json) -> None:
        spec = obj.setdefault("spec", {})
        spec["concurrencyPolicy"] = spec.get("concurrencyPolicy") or "Allow"
        spec.setdefault("suspend", False)
        spec.setdefault("successfulJobsHistoryLimit", 3)
        spec.setdefault("failedJobsHistoryLimit", 1)
        default_job_spec(spec.setdefault("jobTemplate", {}).setdefault("spec", {}))

    def validate(self, obj: Json) -> list[FieldError]:
        return validation.cron_job(obj["spec"], None) + validation.cron_job_name(obj["metadata"].get("name", ""))

    def validate_update(self, new: Json, old: Json) -> list[FieldError]:
        return validation.cron_job(new["spec"], old["spec"])

    def warnings(self, new: Json, old: Json | None) -> list[str]:
        return name_warnings(new, old) + workload_warnings(new, old, "spec", "jobTemplate", "spec")


STRATEGIES: dict[tuple[str, str], Strategy] = {
    ("batch", "jobs"): Job(),
    ("batch", "cronjobs"): CronJob(),
}
