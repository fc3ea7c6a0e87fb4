"""Strategy of PodDisruptionBudgets."""

from __future__ import annotations

from typing import ClassVar

from ostinato.api.selectors import labels
from ostinato.api.validation import names
from ostinato.api.validation.field_errors import FieldError
from ostinato.server.resources.strategy import Json, NameRule, Strategy
from ostinato.server.resources.validation.checks import listed
from ostinato.server.resources.validation.conditions import validate_conditions
from ostinato.server.resources.validation.internal_values import as_internal
from ostinato.server.resources.validation.workloads import SPEC, STATUS, at_most_all, count_or_percent, counts


class PodDisruptionBudget(Strategy):
    name_rule: ClassVar[NameRule] = staticmethod(names.name_is_path_segment)
    generation = True
    allow_unconditional_update = False
    empty_status: ClassVar[Json] = {
        "disruptionsAllowed": 0,
        "currentHealthy": 0,
        "desiredHealthy": 0,
        "expectedPods": 0,
    }

    def validate(self, obj: Json) -> list[FieldError]:
        spec = obj.get("spec") or {}
        errors = []
        if "minAvailable" in spec and "maxUnavailable" in spec:
            detail = "minAvailable and maxUnavailable cannot be both set"
            errors.append(FieldError.invalid(SPEC, as_internal("policy.v1.PodDisruptionBudgetSpec", spec), detail))
        for field in ("minAvailable", "maxUnavailable"):
            if field in spec:
                errors += count_or_percent(spec[field], SPEC.child(field))
                errors += at_most_all(spec[field], SPEC.child(field))
        if spec.get("selector") is not None:
            errors += labels.validate_label_selector(spec["selector"], SPEC.child("selector"))
        if "unhealthyPodEvictionPolicy" in spec:
            path = SPEC.child("unhealthyPodEvictionPolicy")
            errors += listed(spec["unhealthyPodEvictionPolicy"], ["AlwaysAllow", "IfHealthyBudget"], path)
        return errors

    def validate_status_update(self, new: Json, old: Json) -> list[FieldError]:
        status = new.get("status") or {}
        errors = validate_conditions(status.get("conditions") or (), STATUS.child("conditions"))
        return errors + counts(status, STATUS, *self.empty_status)


STRATEGIES: dict[tuple[str, str], Strategy] = {("policy", "poddisruptionbudgets"): PodDisruptionBudget()}
