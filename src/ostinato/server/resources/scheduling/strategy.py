"""Strategy of PriorityClasses."""

from __future__ import annotations

from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.resources.strategy import Json, Strategy
from ostinato.server.resources.validation.checks import one_of, unchanged

_PREFIX = "system-"
_HIGHEST = 1_000_000_000  # maximum of user-defined classes
_OF_THE_SYSTEM = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}


class PriorityClass(Strategy):
    generation = True

    def default(self, obj: Json) -> None:
        obj.setdefault("preemptionPolicy", "PreemptLowerPriority")

    def desired(self, obj: Json) -> None:
        """PriorityClasses are immutable: the generation stays."""

    def validate(self, obj: Json) -> list[FieldError]:
        name, value = obj["metadata"].get("name", ""), obj.get("value", 0)
        errors = []
        if name.startswith(_PREFIX):
            why = _not_of_the_system(name, value, obj)
            if why:
                detail = f"priority class names with '{_PREFIX}' prefix are reserved for system use only. error: {why}"
                errors.append(FieldError.forbidden(Path("metadata", "name"), detail))
        elif value > _HIGHEST:
            detail = f"maximum allowed value of a user defined priority is {_HIGHEST}"
            errors.append(FieldError.forbidden(Path("value"), detail))
        policies = ["PreemptLowerPriority", "Never"]
        return errors + one_of(obj.get("preemptionPolicy", ""), policies, Path("preemptionPolicy"))

    def validate_update(self, new: Json, old: Json) -> list[FieldError]:
        errors = []
        if new.get("value", 0) != old.get("value", 0):
            errors.append(FieldError.forbidden(Path("value"), "may not be changed in an update."))
        return errors + unchanged(new.get("preemptionPolicy"), old.get("preemptionPolicy"), Path("preemptionPolicy"))


def _not_of_the_system(name: str, value: int, obj: Json) -> str:
    known = _OF_THE_SYSTEM.get(name)
    if known is None:
        return f"{name} is not a known system priority class"
    if value != known:
        return f"value of {name} PriorityClass must be {known}"
    return f"globalDefault of {name} PriorityClass must be false" if obj.get("globalDefault") else ""


STRATEGIES: dict[tuple[str, str], Strategy] = {("scheduling.k8s.io", "priorityclasses"): PriorityClass()}
