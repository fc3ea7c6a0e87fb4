"""The apiregistration group: which API is served by whom."""

from __future__ import annotations

from typing import ClassVar

from ostinato.api import names
from ostinato.api.field_errors import FieldError, Path
from ostinato.api.quoting import quote
from ostinato.server.resources.strategy import Json, NameRule, Strategy
from ostinato.server.resources.validation import checked
from ostinato.world import Clock, World

_SPEC = Path("spec")


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
    if insecure and spec.get("caBundle"):
        errors.append(FieldError.invalid(path, insecure, "may not be true if caBundle is present"))
    return errors


STRATEGIES: dict[tuple[str, str], Strategy] = {("apiregistration.k8s.io", "apiservices"): APIService()}
