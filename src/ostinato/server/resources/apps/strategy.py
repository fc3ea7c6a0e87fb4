"""Strategies of the apps group: Deployments, ReplicaSets, StatefulSets, DaemonSets, ControllerRevisions."""

from __future__ import annotations

from typing import ClassVar

from ostinato.api.apply import field_path, from_paths, without
from ostinato.api.apply.fieldpath.field_set import Filter
from ostinato.api.validation import names
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.resources.apps import validation
from ostinato.server.resources.core.pods.spec.defaults import default_claim_spec, default_pod_template
from ostinato.server.resources.core.pods.spec.warnings import workload_warnings
from ostinato.server.resources.strategy import Json, NameRule, Strategy
from ostinato.server.resources.validation.workloads import name_warnings

_NOT_LABELS = without(from_paths(field_path("spec"), field_path("metadata", "labels")))
_KEEPS_ALL = "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"
_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"


class Deployment(Strategy):
    generation = True
    empty_status: ClassVar[Json] = {}

    def default(self, obj: Json) -> None:
        spec = obj.setdefault("spec", {})
        spec.setdefault("replicas", 1)
        strategy = spec.setdefault("strategy", {})
        strategy.setdefault("type", "RollingUpdate")
        if strategy["type"] == "RollingUpdate":
            rolling = strategy.setdefault("rollingUpdate", {})
            rolling.setdefault("maxUnavailable", "25%")
            rolling.setdefault("maxSurge", "25%")
        spec.setdefault("revisionHistoryLimit", 10)
        spec.setdefault("progressDeadlineSeconds", 600)
        default_pod_template(spec.setdefault("template", {}))

    def applicable(self, subresource: str) -> Filter | None:
        return _NOT_LABELS if subresource == "status" else super().applicable(subresource)

    def prepare_status_update(self, new: Json, old: Json) -> None:
        super().prepare_status_update(new, old)
        if "labels" in old["metadata"]:
            new["metadata"]["labels"] = old["metadata"]["labels"]
        else:
            new["metadata"].pop("labels", None)

    def desired(self, obj: Json) -> object:
        return obj.get("spec"), obj["metadata"].get("annotations")

    def validate(self, obj: Json) -> list[FieldError]:
        return validation.deployment(obj["spec"])

    def validate_update(self, new: Json, old: Json) -> list[FieldError]:
        return self.validate(new) + validation.same_selector(new, old)

    def validate_status_update(self, new: Json, old: Json) -> list[FieldError]:
        return validation.deployment_status(new, old)

    def warnings(self, new: Json, old: Json | None) -> list[str]:
        return name_warnings(new, old) + workload_warnings(new, old)


class ReplicaSet(Strategy):
    generation = True
    empty_status: ClassVar[Json] = {"replicas": 0}

    def default(self, obj: Json) -> None:
        spec = obj.setdefault("spec", {})
        spec.setdefault("replicas", 1)
        default_pod_template(spec.setdefault("template", {}))

    def validate(self, obj: Json) -> list[FieldError]:
        return validation.replica_set(obj["spec"])

    def validate_update(self, new: Json, old: Json) -> list[FieldError]:
        return self.validate(new) + validation.same_selector(new, old)

    def validate_status_update(self, new: Json, old: Json) -> list[FieldError]:
        return validation.replica_set_status(new)

    def warnings(self, new: Json, old: Json | None) -> list[str]:
        return name_warnings(new, old) + workload_warnings(new, old)


class StatefulSet(Strategy):
    name_rule: ClassVar[NameRule] = staticmethod(names.name_is_dns_label)
    generation = True
    empty_status: ClassVar[Json] = {"replicas": 0, "availableReplicas": 0}

    def default(self, obj: Json) -> None:
        spec = obj.setdefault("spec", {})
        spec.setdefault("podManagementPolicy", "OrderedReady")
        update = spec.setdefault("updateStrategy", {})
        if "type" not in update:
            update["type"] = "RollingUpdate"
            update.setdefault("rollingUpdate", {})
        if update["type"] == "RollingUpdate" and "rollingUpdate" in update:
            update["rollingUpdate"].setdefault("partition", 0)
        retention = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
        retention.setdefault("whenDeleted", "Retain")
        retention.setdefault("whenScaled", "Retain")
        spec.setdefault("replicas", 1)
        spec.setdefault("revisionHistoryLimit", 10)
        default_pod_template(spec.setdefault("template", {}))
        for claim in spec.get("volumeClaimTemplates") or ():
            claim["kind"], claim["apiVersion"] = "PersistentVolumeClaim", "v1"
            default_claim_spec(claim.setdefault("spec", {}))
            claim.setdefault("status", {}).setdefault("phase", "Pending")

    def prepare_create(self, obj: Json) -> None:
        super().prepare_create(obj)
        _drop_max_unavailable(obj, None)

    def prepare_update(self, new: Json, old: Json) -> None:
        _drop_max_unavailable(new, old)

    def validate(self, obj: Json) -> list[FieldError]:
        return validation.stateful_set(obj["spec"], new=True)

    def validate_update(self, new: Json, old: Json) -> list[FieldError]:
        return validation.stateful_set(new["spec"], new=False) + validation.stateful_set_changes(new, old)

    def validate_status_update(self, new: Json, old: Json) -> list[FieldError]:
        return validation.stateful_set_status(new, old)

    def warnings(self, new: Json, old: Json | None) -> list[str]:
        found = workload_warnings(new, old)
        return [*found, _KEEPS_ALL] if new["spec"].get("revisionHistoryLimit", 0) < 0 else found


def _drop_max_unavailable(obj: Json, old: Json | None) -> None:
    """Drop `maxUnavailable` of a StatefulSet (feature gate off), unless the old object has it."""
    rolling = obj["spec"]["updateStrategy"].get("rollingUpdate") or {}
    before = ((old or {}).get("spec") or {}).get("updateStrategy", {}).get("rollingUpdate") or {}
    if "maxUnavailable" in rolling and "maxUnavailable" not in before:
        del rolling["maxUnavailable"]


class DaemonSet(Strategy):
    generation = True
    empty_status: ClassVar[Json] = {
        "currentNumberScheduled": 0,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 0,
        "numberReady": 0,
    }

    def default(self, obj: Json) -> None:
        spec = obj.setdefault("spec", {})
        update = spec.setdefault("updateStrategy", {})
        update.setdefault("type", "RollingUpdate")
        if update["type"] == "RollingUpdate":
            rolling = update.setdefault("rollingUpdate", {})
            rolling.setdefault("maxUnavailable", 1)
            rolling.setdefault("maxSurge", 0)
        elif update.get("rollingUpdate") is not None:  # unused by this strategy type; shown with all fields
            update["rollingUpdate"] = {"maxUnavailable": 0, "maxSurge": 0} | update["rollingUpdate"]
        spec.setdefault("revisionHistoryLimit", 10)
        default_pod_template(spec.setdefault("template", {}))
        if _TEMPLATE_GENERATION not in obj["metadata"].get("annotations", {}):
            _set_template_generation(obj, 0)  # deprecated field; every client is assumed to set it

    def prepare_create(self, obj: Json) -> None:
        super().prepare_create(obj)
        _set_template_generation(obj, max(_template_generation(obj), 1))

    def prepare_update(self, new: Json, old: Json) -> None:
        changed = new["spec"]["template"] != old["spec"].get("template")
        _set_template_generation(new, _template_generation(old) + changed)

    def validate(self, obj: Json) -> list[FieldError]:
        return validation.daemon_set(obj["spec"])

    def prepare_status_update(self, new: Json, old: Json) -> None:
        super().prepare_status_update(new, old)
        _set_template_generation(new, _template_generation(old))

    def validate_update(self, new: Json, old: Json) -> list[FieldError]:
        return validation.same_selector(new, old) + self.validate(new)

    def validate_status_update(self, new: Json, old: Json) -> list[FieldError]:
        return validation.daemon_set_status(new, old)

    def warnings(self, new: Json, old: Json | None) -> list[str]:
        return workload_warnings(new, old)


def _template_generation(obj: Json) -> int:
    """The template generation of a DaemonSet, from an annotation set for older clients."""
    text = (obj["metadata"].get("annotations") or {}).get(_TEMPLATE_GENERATION, "0")
    return int(text) if text.isascii() and text.isdigit() else 0


def _set_template_generation(obj: Json, generation: int) -> None:
    annotations = obj["metadata"].get("annotations") or {}
    obj["metadata"]["annotations"] = {**annotations, _TEMPLATE_GENERATION: str(generation)}


class ControllerRevision(Strategy):
    def validate(self, obj: Json) -> list[FieldError]:
        errors, data = validation.controller_revision(obj), obj.get("data")
        if data is None:
            errors.append(FieldError.required(Path("data"), "data is mandatory"))
        elif not isinstance(data, dict):
            errors.append(FieldError.required(Path("data"), "data must be a valid JSON object"))
        return errors

    def validate_update(self, new: Json, old: Json) -> list[FieldError]:
        errors = validation.controller_revision(new)
        if new.get("data") != old.get("data"):
            errors.append(FieldError.invalid(Path("data"), new.get("data"), "field is immutable"))
        return errors


STRATEGIES: dict[tuple[str, str], Strategy] = {
    ("apps", "deployments"): Deployment(),
    ("apps", "replicasets"): ReplicaSet(),
    ("apps", "statefulsets"): StatefulSet(),
    ("apps", "daemonsets"): DaemonSet(),
    ("apps", "controllerrevisions"): ControllerRevision(),
}
