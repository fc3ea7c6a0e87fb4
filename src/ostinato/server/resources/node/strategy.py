"""Strategy of RuntimeClasses."""

from __future__ import annotations

from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.api.validation.names import is_dns1123_label, validate_labels
from ostinato.server.resources.core.pods.spec.containers import validate_resources
from ostinato.server.resources.core.pods.spec.scheduling import validate_tolerations
from ostinato.server.resources.strategy import Json, Strategy
from ostinato.server.resources.validation.checks import checked, unchanged
from ostinato.server.resources.validation.internal_values import as_internal
from ostinato.server.resources.validation.quantities import validate_container_name

_HANDLER = Path("handler")


class RuntimeClass(Strategy):
    allow_create_on_update = True
    allow_unconditional_update = False

    def validate(self, obj: Json) -> list[FieldError]:
        handler = obj.get("handler", "")
        errors = checked(is_dns1123_label, handler, _HANDLER) if handler else [FieldError.required(_HANDLER)]
        if obj.get("overhead") is not None:
            view = {"limits": obj["overhead"].get("podFixed") or {}}
            errors += validate_resources(view, validate_container_name, frozenset(), Path("overhead"))
        scheduling, path = obj.get("scheduling") or {}, Path("scheduling")
        errors += validate_labels(scheduling.get("nodeSelector") or {}, path.child("nodeSelector"))
        return errors + _tolerations(scheduling.get("tolerations") or [], path.child("tolerations"))

    def validate_update(self, new: Json, old: Json) -> list[FieldError]:
        return self.validate(new) + unchanged(new.get("handler", ""), old.get("handler", ""), _HANDLER)


def _tolerations(tolerations: list[Json], path: Path) -> list[FieldError]:
    """Validate that tolerations are unique, tolerationSeconds aside."""
    errors, seen = validate_tolerations(tolerations, path), []
    for i, toleration in enumerate(tolerations):
        key = {field: toleration.get(field, "") for field in ("key", "operator", "value", "effect")}
        if key in seen:
            errors.append(FieldError.duplicate(path.index(i), as_internal("core.v1.Toleration", toleration)))
        seen.append(key)
    return errors


STRATEGIES: dict[tuple[str, str], Strategy] = {("node.k8s.io", "runtimeclasses"): RuntimeClass()}
