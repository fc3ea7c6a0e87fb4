"""Strategy of CertificateSigningRequests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ostinato.api.apply import field_path, from_paths, without
from ostinato.api.apply.fieldpath.field_set import Filter
from ostinato.api.validation import names
from ostinato.api.validation.field_errors import FieldError
from ostinato.server.resources.certificates.validation import conditions_of, validate, validate_update
from ostinato.server.resources.strategy import Json, NameRule, Strategy
from ostinato.world import Clock, World

_APPLICABLE = {
    "": without(from_paths(field_path("spec"), field_path("status"))),
    "status": without(from_paths(field_path("spec"), field_path("status", "conditions"))),
    "approval": without(from_paths(field_path("spec"), field_path("status", "certificate"))),
}


class CertificateSigningRequest(Strategy):
    """The spec is immutable; `approval` writes the conditions, `status` the certificate."""

    name_rule: ClassVar[NameRule] = staticmethod(names.name_is_path_segment)
    status = False  # the writable part depends on the subresource; see below
    empty_status: ClassVar[Json] = {}
    selectable = ("spec.signerName",)

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock
        if clock is not None:
            self.subresources = {"approval": _Approval(clock)}  # type: ignore[misc]

    def for_server(self, world: World) -> Strategy:
        return CertificateSigningRequest(world.clock)

    def applicable(self, subresource: str) -> Filter | None:
        return _APPLICABLE.get(subresource)

    def prepare_update(self, new: Json, old: Json) -> None:
        for field in ("spec", "status"):
            new[field] = old.get(field, {})

    def prepare_status_update(self, new: Json, old: Json) -> None:
        super().prepare_status_update(new, old)
        for kind in ("Approved", "Denied"):
            self._keep(new, old, kind)
        self._stamp(new, old)

    def _keep(self, new: Json, old: Json, kind: str) -> None:
        """Keep the conditions of a type as they were, if their number is unchanged."""
        before = [c for c in conditions_of(old) if c.get("type") == kind]
        places = [i for i, c in enumerate(conditions_of(new)) if c.get("type") == kind]
        if len(before) == len(places):
            for place, condition in zip(places, before, strict=True):
                new["status"]["conditions"][place] = condition

    def _stamp(self, new: Json, old: Json) -> None:
        """Set the timestamps of new conditions."""
        assert self._clock is not None
        now = self._clock.now().isoformat(timespec="seconds")[:19] + "Z"
        for condition in conditions_of(new):
            condition["lastUpdateTime"] = condition.get("lastUpdateTime") or now
            if not condition.get("lastTransitionTime"):
                same = (
                    c["lastTransitionTime"]
                    for c in conditions_of(old)
                    if c.get("type") == condition.get("type")
                    and c.get("status") == condition.get("status")
                    and c.get("lastTransitionTime")
                )
                condition["lastTransitionTime"] = next(same, now)

    def validate(self, obj: Json) -> list[FieldError]:
        return validate(obj, None)

    def validate_update(self, new: Json, old: Json) -> list[FieldError]:
        return validate_update(new, old)

    def validate_status_update(self, new: Json, old: Json) -> list[FieldError]:
        return validate_update(new, old, certificate=True)

    def fields(self, obj: Mapping[str, Any]) -> dict[str, str]:
        return {"spec.signerName": (obj.get("spec") or {}).get("signerName", "")}


class _Approval(CertificateSigningRequest):
    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def prepare_update(self, new: Json, old: Json) -> None:
        self._stamp(new, old)
        conditions = conditions_of(new)
        new["spec"] = old.get("spec", {})
        new["status"] = {k: v for k, v in (old.get("status") or {}).items() if k != "conditions"}
        if conditions:
            new["status"]["conditions"] = conditions

    def validate_update(self, new: Json, old: Json) -> list[FieldError]:
        return validate_update(new, old, approval=True)


STRATEGIES: dict[tuple[str, str], Strategy] = {
    ("certificates.k8s.io", "certificatesigningrequests"): CertificateSigningRequest(),
}
