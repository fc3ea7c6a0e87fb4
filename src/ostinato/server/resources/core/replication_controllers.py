"""Strategies of ReplicationControllers and PodTemplates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.resources.core.pods.spec.defaults import default_pod_template
from ostinato.server.resources.core.pods.spec.validation import validate_pod_template
from ostinato.server.resources.core.pods.spec.warnings import pod_name_warning, template_warnings
from ostinato.server.resources.strategy import Json, Strategy
from ostinato.server.resources.validation.checks import not_negative

_SPEC = Path("spec")
_COUNTS = ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration")


class ReplicationController(Strategy):
    generation = True
    selectable = ("status.replicas",)
    orphans_dependents = True

    def default(self, obj: Json) -> None:
        spec = obj.setdefault("spec", {})
        template = spec.get("template")
        if template is not None:
            default_pod_template(template)
            labels = template.get("metadata", {}).get("labels")
            if labels:
                if not spec.get("selector"):
                    spec["selector"] = dict(labels)
                if not obj["metadata"].get("labels"):
                    obj["metadata"]["labels"] = dict(labels)
        spec.setdefault("replicas", 1)

    def prepare_create(self, obj: Json) -> None:
        obj["status"] = {"replicas": 0}

    def validate(self, obj: Json) -> list[FieldError]:
        spec = obj["spec"]
        errors = not_negative(spec.get("minReadySeconds", 0), _SPEC.child("minReadySeconds"))
        selector = spec.get("selector", {})
        if not selector:
            errors.append(FieldError.required(_SPEC.child("selector")))
        errors += not_negative(spec["replicas"], _SPEC.child("replicas"))
        return errors + _validate_template(spec.get("template"), selector, _SPEC.child("template"))

    def validate_status_update(self, new: Json, old: Json) -> list[FieldError]:
        return validate_replica_counts(new.get("status", {}), Path("status"))

    def warnings(self, new: Json, old: Json | None) -> list[str]:
        if old is not None and self.desired(old) == self.desired(new):
            return []
        at = _SPEC.child("template")
        if old is not None:  # kube-apiserver warns about the old template here
            return template_warnings(old["spec"].get("template"), new["spec"].get("template"), at)
        found = pod_name_warning(new["metadata"].get("name", ""), "Pod names and hostnames")
        return found + template_warnings(new["spec"].get("template"), None, at)

    def fields(self, obj: Mapping[str, Any]) -> dict[str, str]:
        return {"status.replicas": str(obj.get("status", {}).get("replicas", 0))}


def _validate_template(template: Json | None, selector: dict[str, str], path: Path) -> list[FieldError]:
    if template is None:
        return [FieldError.required(path)]
    errors: list[FieldError] = []
    labels = template.get("metadata", {}).get("labels")
    if any((labels or {}).get(key) != value for key, value in selector.items()):
        detail = "`selector` does not match template `labels`"
        errors.append(FieldError.invalid(path.child("metadata", "labels"), labels, detail))
    errors += validate_pod_template(template, path)
    spec = template["spec"]
    if spec.get("restartPolicy") != "Always":
        where = path.child("spec", "restartPolicy")
        errors.append(FieldError.not_supported(where, spec.get("restartPolicy", ""), ("Always",)))
    if "activeDeadlineSeconds" in spec:
        detail = "activeDeadlineSeconds in ReplicationController is not Supported"
        errors.append(FieldError.forbidden(path.child("spec", "activeDeadlineSeconds"), detail))
    return errors


def validate_replica_counts(status: Json, path: Path) -> list[FieldError]:
    """Validate the replica counts of a status: not negative, and not greater than the count that they are part of."""
    errors = [error for name in _COUNTS for error in not_negative(status.get(name, 0), path.child(name))]
    replicas, ready = status.get("replicas", 0), status.get("readyReplicas", 0)
    errors += [
        FieldError.invalid(path.child(name), status.get(name, 0), "cannot be greater than status.replicas")
        for name in ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")
        if status.get(name, 0) > replicas
    ]
    available = status.get("availableReplicas", 0)
    if available > ready:
        where = path.child("availableReplicas")
        errors.append(FieldError.invalid(where, available, "cannot be greater than readyReplicas"))
    return errors


class PodTemplate(Strategy):
    generation = True
    returns_deleted = True

    def default(self, obj: Json) -> None:
        default_pod_template(obj.setdefault("template", {}))

    def validate(self, obj: Json) -> list[FieldError]:
        return validate_pod_template(obj["template"], Path("template"))

    def warnings(self, new: Json, old: Json | None) -> list[str]:
        if old is not None and self.desired(old) == self.desired(new):
            return []
        return template_warnings(new["template"], None if old is None else old["template"], Path("template"))
