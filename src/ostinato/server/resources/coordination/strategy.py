"""Strategy of Leases."""

from __future__ import annotations

from ostinato.api.validation.field_errors import FieldError
from ostinato.server.resources.strategy import Json, Strategy
from ostinato.server.resources.validation.workloads import SPEC, counts

_GATED = ("strategy", "preferredHolder")  # coordinated leader election; feature gate off


class Lease(Strategy):
    allow_create_on_update = True
    allow_unconditional_update = False

    def prepare_create(self, obj: Json) -> None:
        self.prepare_update(obj, {})

    def prepare_update(self, new: Json, old: Json) -> None:
        before = old.get("spec") or {}
        for field in _GATED:
            if field not in before:
                new.get("spec", {}).pop(field, None)

    def validate(self, obj: Json) -> list[FieldError]:
        spec = obj.get("spec") or {}
        errors, seconds = [], spec.get("leaseDurationSeconds", 1)
        if seconds <= 0:
            errors.append(FieldError.invalid(SPEC.child("leaseDurationSeconds"), seconds, "must be greater than 0"))
        return errors + counts(spec, SPEC, "leaseTransitions")


STRATEGIES: dict[tuple[str, str], Strategy] = {("coordination.k8s.io", "leases"): Lease()}
