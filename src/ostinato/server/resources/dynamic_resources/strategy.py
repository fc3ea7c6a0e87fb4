"""Strategies of the resource.k8s.io group (dynamic resource allocation)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.resources.strategy import Json, Strategy
from ostinato.server.resources.validation.checks import unchanged
from ostinato.world import Clock, World

_GROUP = "resource.k8s.io"


def _default_claim(spec: Json) -> None:
    for request in (spec.get("devices") or {}).get("requests") or ():
        alternatives = [request["exactly"]] if request.get("exactly") is not None else []
        for wanted in (*alternatives, *(request.get("firstAvailable") or ())):
            wanted["allocationMode"] = wanted.get("allocationMode") or "ExactCount"
            if wanted["allocationMode"] == "ExactCount":
                wanted["count"] = wanted.get("count") or 1
            _default_tolerations(wanted.get("tolerations") or ())


def _default_tolerations(tolerations: Iterable[Json]) -> None:
    for toleration in tolerations:
        toleration["operator"] = toleration.get("operator") or "Equal"


class DeviceClass(Strategy):
    generation = True
    returns_deleted = True


class ResourceClaim(Strategy):
    returns_deleted = True
    empty_status: ClassVar[Json] = {}
    status_keeps_metadata = True

    def default(self, obj: Json) -> None:
        _default_claim(obj.setdefault("spec", {}))

    def validate_update(self, new: Json, old: Json) -> list[FieldError]:
        return self.validate(new) + unchanged(new.get("spec"), old.get("spec"), Path("spec"))


class ResourceClaimTemplate(Strategy):
    returns_deleted = True

    def default(self, obj: Json) -> None:
        _default_claim(obj.setdefault("spec", {}).setdefault("spec", {}))

    def validate_update(self, new: Json, old: Json) -> list[FieldError]:
        return self.validate(new) + unchanged(new.get("spec"), old.get("spec"), Path("spec"))


class ResourceSlice(Strategy):
    generation = True
    returns_deleted = True
    selectable = ("spec.nodeName", "spec.driver")

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock

    def for_server(self, world: World) -> Strategy:
        return ResourceSlice(world.clock)

    def default(self, obj: Json) -> None:
        assert self._clock is not None
        for device in (obj.get("spec") or {}).get("devices") or ():
            for taint in device.get("taints") or ():
                if not taint.get("timeAdded"):
                    taint["timeAdded"] = self._clock.now().isoformat(timespec="seconds")[:19] + "Z"
            for mapping in (device.get("nodeAllocatableResourceMappings") or {}).values():
                mapping.setdefault("allocationMultiplier", "1")

    def validate_update(self, new: Json, old: Json) -> list[FieldError]:
        before, after = old.get("spec") or {}, new.get("spec") or {}
        path, errors = Path("spec"), self.validate(new)
        for field in ("nodeName", "driver"):
            errors += unchanged(after.get(field), before.get(field), path.child(field))
        pool, pool_before = ((spec.get("pool") or {}).get("name") for spec in (after, before))
        return errors + unchanged(pool, pool_before, path.child("pool", "name"))

    def fields(self, obj: Mapping[str, Any]) -> dict[str, str]:
        spec = obj.get("spec") or {}
        return {"spec.nodeName": spec.get("nodeName", ""), "spec.driver": spec.get("driver", "")}


STRATEGIES: dict[tuple[str, str], Strategy] = {
    (_GROUP, "deviceclasses"): DeviceClass(),
    (_GROUP, "resourceclaims"): ResourceClaim(),
    (_GROUP, "resourceclaimtemplates"): ResourceClaimTemplate(),
    (_GROUP, "resourceslices"): ResourceSlice(),
}
