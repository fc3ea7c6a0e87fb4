"""Strategy of APIServices."""

from __future__ import annotations

from typing import ClassVar

from ostinato.api.text.go_format import quote
from ostinato.api.validation import field_values, names
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.resources.strategy import Json, NameRule, Strategy
from ostinato.server.resources.validation.checks import checked, listed
from ostinato.world import Clock, World

_SPEC = Path("spec")
_STATUSES = ("True", "False", "Unknown")


class APIService(Strategy):
    name_rule: ClassVar[NameRule] = staticmethod(names.name_is_path_segment)
    allow_unconditional_update = False
    empty_status: ClassVar[Json] = {}
    status_keeps_metadata = True

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock

    def for_server(self, world: World) -> Strategy:
        return APIService(world.clock)

    def default(self, obj: Json) -> None:
        service = (obj.get("spec") or {}).get("service")
        if service is not None:
            service.setdefault("port", 443)

    def prepare_create(self, obj: Json) -> None:
        super().prepare_create(obj)
        if (obj.get("spec") or {}).get("service") is None:
            assert self._clock is not None
            condition = {
                "type": "Available",
                "status": "True",
                "lastTransitionTime": self._clock.now().isoformat(timespec="seconds")[:19] + "Z",
                "reason": "Local",
                "message": "Local APIServices are always available",
            }
            obj["status"] = {"conditions": [condition]}

    def validate(self, obj: Json) -> list[FieldError]:
        spec, name = obj.get("spec") or {}, obj["metadata"].get("name", "")
        group, version = spec.get("group", ""), spec.get("version", "")
        errors = []
        if name and name != f"{version}.{group}":
            detail = f'must be `spec.version+"."+spec.group`: {quote(f"{version}.{group}")}'
            errors.append(FieldError.invalid(Path("metadata", "name"), name, detail))
        if group:
            errors += checked(names.is_dns1123_subdomain, group, _SPEC.child("group"))
        elif version != "v1":
            detail = "only v1 may have an empty group and it better be legacy kube"
            errors.append(FieldError.required(_SPEC.child("group"), detail))
        errors += checked(names.is_dns1035_label, version, _SPEC.child("version"))
        for field, most in (("groupPriorityMinimum", 20000), ("versionPriority", 1000)):
            value = spec.get(field, 0)
            if not 0 < value <= most:
                detail = f"must be positive and less than {most}"
                errors.append(FieldError.invalid(_SPEC.child(field), value, detail))
        return errors + _service_errors(spec)

    def validate_status_update(self, new: Json, old: Json) -> list[FieldError]:
        path = Path("status", "conditions")
        return [
            error
            for i, condition in enumerate((new.get("status") or {}).get("conditions") or ())
            for error in listed(condition.get("status", ""), _STATUSES, path.index(i).child("status"))
        ]


def _service_errors(spec: Json) -> list[FieldError]:
    service, insecure = spec.get("service"), spec.get("insecureSkipTLSVerify", False)
    path, errors = _SPEC.child("insecureSkipTLSVerify"), []
    if service is None:
        if insecure:
            detail = "local APIServices may not have insecureSkipTLSVerify"
            errors.append(FieldError.invalid(path, insecure, detail))
        return errors
    errors = [
        FieldError.required(_SPEC.child("service", field)) for field in ("namespace", "name") if not service.get(field)
    ]
    port = service.get("port", 0)
    errors += [
        FieldError.invalid(_SPEC.child("service", "port"), port, f"port is not valid: {text}")
        for text in field_values.is_port_number(port)
    ]
    if insecure and spec.get("caBundle"):
        errors.append(FieldError.invalid(path, insecure, "may not be true if caBundle is present"))
    return errors


# Discovery priority of a group, and of a version within its group.
_PRIORITIES: dict[str, tuple[int, dict[str, int]]] = {
    "": (18000, {"v1": 1}),
    "apps": (17800, {"v1": 15}),
    "events.k8s.io": (17750, {"v1": 15}),
    "authentication.k8s.io": (17700, {"v1": 15}),
    "authorization.k8s.io": (17600, {"v1": 15}),
    "autoscaling": (17500, {"v1": 15, "v2": 30}),
    "batch": (17400, {"v1": 15}),
    "certificates.k8s.io": (17300, {"v1": 15}),
    "networking.k8s.io": (17200, {"v1": 15}),
    "policy": (17100, {"v1": 15}),
    "rbac.authorization.k8s.io": (17000, {"v1": 15}),
    "storage.k8s.io": (16800, {"v1": 15}),
    "apiextensions.k8s.io": (16700, {"v1": 15}),
    "admissionregistration.k8s.io": (16700, {"v1": 15}),
    "scheduling.k8s.io": (16600, {"v1": 15}),
    "coordination.k8s.io": (16500, {"v1": 15}),
    "node.k8s.io": (16300, {"v1": 15}),
    "discovery.k8s.io": (16200, {"v1": 15}),
    "resource.k8s.io": (16200, {"v1": 21}),
    "flowcontrol.apiserver.k8s.io": (16100, {"v1": 21}),
}


LOCAL_PRIORITIES = {
    (group, version): (group_priority, version_priority)
    for group, (group_priority, versions) in _PRIORITIES.items()
    for version, version_priority in versions.items()
}


def local_services() -> list[Json]:
    """The APIServices of the groups that this server itself serves."""
    return [
        {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {
                "name": f"{version}.{group}",
                "labels": {"kube-aggregator.kubernetes.io/automanaged": "onstart"},
            },
            "spec": {
                "group": group,
                "version": version,
                "groupPriorityMinimum": group_priority,
                "versionPriority": version_priority,
            },
        }
        for group, (group_priority, versions) in _PRIORITIES.items()
        for version, version_priority in versions.items()
    ]


STRATEGIES: dict[tuple[str, str], Strategy] = {("apiregistration.k8s.io", "apiservices"): APIService()}
