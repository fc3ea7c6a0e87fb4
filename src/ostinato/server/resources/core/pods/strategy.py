"""Strategy of Pods and of pods/ephemeralcontainers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ostinato.api.apply import field_path, from_paths, without
from ostinato.api.apply.fieldpath.field_set import Filter
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.resources.core.pods.known_specs import KnownSpecs, spec_key
from ostinato.server.resources.core.pods.resize import Resize
from ostinato.server.resources.core.pods.rules import (
    keep_metadata,
    restore_field,
    validate_pod,
    validate_pod_annotation_change,
    validate_pod_change,
)
from ostinato.server.resources.core.pods.spec.app_armor import app_armor_from_annotations, validate_app_armor_matches
from ostinato.server.resources.core.pods.spec.defaults import (
    containers_of,
    default_pod_spec,
    default_resources,
    drop_old_annotations,
)
from ostinato.server.resources.core.pods.spec.defaults import round_up as round_up_amounts
from ostinato.server.resources.core.pods.spec.resources import default_pod_resources, quality_of_service
from ostinato.server.resources.core.pods.spec.warnings import pod_name_warning, pod_warnings
from ostinato.server.resources.core.pods.update import validate_spec_change, validate_status_change
from ostinato.server.resources.strategy import Json, Strategy
from ostinato.server.resources.validation.checks import difference
from ostinato.server.resources.validation.internal_values import as_internal

_SPEC = Path("spec")
_EPHEMERAL = "core.v1.EphemeralContainer"
_STATUSES = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
_OF_STATUS = without(
    from_paths(
        field_path("spec"), field_path("metadata", "deletionTimestamp"), field_path("metadata", "ownerReferences")
    )
)
_GATED = {
    "type": "PodScheduled",
    "status": "False",
    "lastProbeTime": None,
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}


class Pod(Strategy):
    generation = True
    returns_deleted = True
    selectable = (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.podIPs",
        "status.nominatedNodeName",
    )
    field_aliases: ClassVar[Mapping[str, str]] = {"spec.host": "spec.nodeName"}

    def __init__(self) -> None:
        self._valid = KnownSpecs()
        self._unobjectionable = KnownSpecs()  # without warnings
        self._validated: tuple[Json | None, bytes] = (None, b"")  # the latest Pod, and its key

    def applicable(self, subresource: str) -> Filter | None:
        return _OF_STATUS if subresource == "status" else super().applicable(subresource)

    def default(self, obj: Json) -> None:
        drop_old_annotations(obj["metadata"])
        spec = obj.setdefault("spec", {})
        default_pod_resources(spec)
        spec.setdefault("enableServiceLinks", True)
        if spec.get("hostNetwork"):
            for container in containers_of(spec, "containers", "initContainers"):
                for port in container.get("ports", ()):
                    port.setdefault("hostPort", port.get("containerPort", 0))
        default_pod_spec(spec)
        if spec["terminationGracePeriodSeconds"] < 0:
            spec["terminationGracePeriodSeconds"] = 1
        _default_status(obj.setdefault("status", {}))

    def default_status(self, obj: Json) -> None:
        drop_old_annotations(obj["metadata"])
        _default_status(obj.setdefault("status", {}))

    def prepare_create(self, obj: Json) -> list[str]:
        spec = obj["spec"]
        obj["status"] = {"phase": "Pending", "qosClass": quality_of_service(spec)}
        if spec.get("schedulingGates"):
            since = obj["metadata"]["creationTimestamp"]
            obj["status"]["conditions"] = [{**_GATED, "lastTransitionTime": since}]
        _apply_label_keys(spec, obj["metadata"].get("labels", {}))
        return app_armor_from_annotations(obj["metadata"], spec)

    def prepare_status_update(self, new: Json, old: Json) -> None:
        super().prepare_status_update(new, old)
        for field in ("ownerReferences", "deletionTimestamp"):
            restore_field(field, new["metadata"], old["metadata"])
        status, before = new.setdefault("status", {}), old.get("status", {})
        for field in ("qosClass", "observedGeneration"):
            if not status.get(field):
                restore_field(field, status, before)
        generations: dict[str, list[int]] = {}
        for condition in before.get("conditions", ()):
            generations.setdefault(condition.get("type", ""), []).append(condition.get("observedGeneration", 0))
        for condition in status.get("conditions", ()):
            known = generations.get(condition.get("type", ""))
            generation = known.pop(0) if known else 0
            if generation and not condition.get("observedGeneration"):
                condition["observedGeneration"] = generation

    def validate(self, obj: Json) -> list[FieldError]:
        key = spec_key(obj)
        self._validated = obj, key
        if self._valid.has(key):
            return []
        errors = self._validate(obj)
        if not errors:
            self._valid.add(key)
        return errors

    def _validate(self, obj: Json) -> list[FieldError]:
        spec = obj["spec"]
        errors = validate_pod(obj)
        if spec.get("ephemeralContainers"):
            errors.append(FieldError.forbidden(_SPEC.child("ephemeralContainers"), "cannot be set on create"))
        if spec.get("nodeName") and spec.get("schedulingGates"):
            detail = "cannot be set until all schedulingGates have been cleared"
            errors.append(FieldError.forbidden(_SPEC.child("nodeName"), detail))
        return errors + validate_app_armor_matches(obj["metadata"], spec, _SPEC)

    def validate_update(self, new: Json, old: Json) -> list[FieldError]:
        return validate_pod_change(new, old) + validate_spec_change(new["spec"], old["spec"])

    def validate_status_update(self, new: Json, old: Json) -> list[FieldError]:
        return validate_pod_annotation_change(new, old) + validate_status_change(new, old)

    def warnings(self, new: Json, old: Json | None) -> list[str]:
        if old is not None:
            return []
        found = pod_name_warning(new["metadata"].get("name", ""), "the Pod's hostname")
        validated, key = self._validated
        if validated is not new:
            key = spec_key(new)
        self._validated = None, b""
        if not self._unobjectionable.has(key):
            of_spec = pod_warnings(new["spec"], new["metadata"])
            if not of_spec:
                self._unobjectionable.add(key)
            found += of_spec
        return found

    def grace(self, obj: Json, requested: int | None) -> int | None:
        spec, phase = obj["spec"], obj.get("status", {}).get("phase")
        if not spec.get("nodeName") or phase in ("Failed", "Succeeded"):
            return 0
        seconds = requested if requested is not None else spec.get("terminationGracePeriodSeconds", 0)
        return 1 if seconds < 0 else int(seconds)

    def fields(self, obj: Mapping[str, Any]) -> dict[str, str]:
        spec, status = obj.get("spec", {}), obj.get("status", {})
        return {
            "spec.nodeName": spec.get("nodeName", ""),
            "spec.restartPolicy": spec.get("restartPolicy", ""),
            "spec.schedulerName": spec.get("schedulerName", ""),
            "spec.serviceAccountName": spec.get("serviceAccountName", ""),
            "spec.hostNetwork": "true" if spec.get("hostNetwork") else "false",
            "status.phase": status.get("phase", ""),
            "status.podIP": status.get("podIP", ""),
            "status.nominatedNodeName": status.get("nominatedNodeName", ""),
        }


def _default_status(status: Json) -> None:
    """Default the status: podIP and podIPs hold the same address, quantities as in the spec."""
    address, addresses = status.get("podIP"), status.get("podIPs")
    if address and (not addresses or addresses[0].get("ip") != address):
        status["podIPs"] = [{"ip": address}]
    elif addresses:
        status["podIP"] = addresses[0].get("ip", "")
    for field in _STATUSES:
        for container in status.get(field, ()):
            if "allocatedResources" in container:
                round_up_amounts(container["allocatedResources"])
            if "resources" in container:
                default_resources(container["resources"])


def _apply_label_keys(spec: Json, labels: dict[str, str]) -> None:
    """Add the Pod's own label values for matchLabelKeys to its selectors."""
    affinity = spec.get("affinity", {})
    terms = []
    for kind in ("podAffinity", "podAntiAffinity"):
        pods = affinity.get(kind, {})
        weighted = pods.get("preferredDuringSchedulingIgnoredDuringExecution", ())
        terms += [term.get("podAffinityTerm", {}) for term in weighted]
        terms += pods.get("requiredDuringSchedulingIgnoredDuringExecution", ())
    for term in [*terms, *spec.get("topologySpreadConstraints", ())]:
        selector = term.get("labelSelector")
        keys = [(key, "In") for key in term.get("matchLabelKeys", ())]
        keys += [(key, "NotIn") for key in term.get("mismatchLabelKeys", ())]
        if selector is not None and keys:
            expressions = [
                {"key": key, "operator": operator, "values": [labels[key]]} for key, operator in keys if key in labels
            ]
            if expressions:
                selector["matchExpressions"] = [*selector.get("matchExpressions", ()), *expressions]


class EphemeralContainers(Strategy):
    """Strategy of pods/ephemeralcontainers: containers are added to a running Pod."""

    generation = True

    def prepare_update(self, new: Json, old: Json) -> None:
        containers = new["spec"].get("ephemeralContainers")
        new["spec"] = dict(old["spec"])
        new["spec"].pop("ephemeralContainers", None)
        if containers:
            new["spec"]["ephemeralContainers"] = containers
        keep_metadata(new, old)

    def validate_update(self, new: Json, old: Json) -> list[FieldError]:
        if "kubernetes.io/config.mirror" in old["metadata"].get("annotations", {}):
            return [FieldError.forbidden(Path("[]"), "static pods do not support ephemeral containers")]
        errors = validate_pod_change(new, old)
        path = _SPEC.child("ephemeralContainers")
        present = {container.get("name", ""): container for container in new["spec"].get("ephemeralContainers", ())}
        for container in old["spec"].get("ephemeralContainers", ()):
            name = container.get("name", "")
            if name not in present:
                detail = f'existing ephemeral containers "{name}" may not be removed\n'
                errors.append(FieldError.forbidden(path, detail))
            elif present[name] != container:
                changes = difference(*(as_internal(_EPHEMERAL, each) for each in (container, present[name])))
                detail = f'existing ephemeral containers "{name}" may not be changed\n{changes}'
                errors.append(FieldError.forbidden(path, detail))
        return errors


Pod.subresources = {"ephemeralcontainers": EphemeralContainers(), "resize": Resize()}
