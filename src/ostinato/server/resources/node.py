"""The node group: RuntimeClasses."""

from __future__ import annotations

from ostinato.api.field_errors import FieldError, Path
from ostinato.api.names import is_dns1123_label
from ostinato.server.resources.strategy import Json, Strategy
from ostinato.server.resources.validation import checked, unchanged

_HANDLER = Path("handler")


class RuntimeClass(Strategy):
    allow_create_on_update = True
    allow_unconditional_update = False

    def validate(self, obj: Json) -> list[FieldError]:
        handler = obj.get("handler", "")
        return checked(is_dns1123_label, handler, _HANDLER) if handler else [FieldError.required(_HANDLER)]

    def validate_update(self, new: Json, old: Json) -> list[FieldError]:
        return unchanged(new.get("handler"), old.get("handler"), _HANDLER)


STRATEGIES: dict[tuple[str, str], Strategy] = {("node.k8s.io", "runtimeclasses"): RuntimeClass()}
