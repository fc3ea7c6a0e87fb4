"""Strategy of Namespaces: deletion in two phases, the second once the namespace is empty."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar

from ostinato.api.time import Time
from ostinato.api.validation import names
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.resources.strategy import Json, NameRule, Strategy


class _Finalize(Strategy):
    """Strategy of namespaces/finalize, the only way to change `spec.finalizers`."""

    def prepare_update(self, new: Json, old: Json) -> None:
        _label(new)

    def validate_update(self, new: Json, old: Json) -> list[FieldError]:
        return [
            error
            for i, name in enumerate(Namespace.finalizers(new))
            for error in _validate_finalizer(name, _FINALIZERS.index(i))
        ]


class Namespace(Strategy):
    name_rule: ClassVar[NameRule] = staticmethod(names.name_is_dns_label)
    selectable = ("status.phase",)
    returns_deleted = True
    subresources: ClassVar[Mapping[str, Strategy]] = {"finalize": _Finalize()}

    def default(self, obj: Json) -> None:
        if obj["metadata"].get("name"):
            _label(obj)
        obj.setdefault("status", {}).setdefault("phase", "Active")

    def prepare_create(self, obj: Json) -> None:
        _label(obj)
        obj["status"] = {"phase": "Active"}
        finalizers = obj.setdefault("spec", {}).setdefault("finalizers", [])
        if "kubernetes" not in finalizers:
            finalizers.append("kubernetes")

    def prepare_update(self, new: Json, old: Json) -> None:
        _label(new)
        spec = new["spec"] = {**new.get("spec", {})}
        spec.pop("finalizers", None)
        if self.finalizers(old):
            spec["finalizers"] = self.finalizers(old)

    def validate(self, obj: Json) -> list[FieldError]:
        return [error for name in self.finalizers(obj) for error in _validate_finalizer(name, _FINALIZERS)]

    def validate_status_update(self, new: Json, old: Json) -> list[FieldError]:
        dying = bool(new["metadata"].get("deletionTimestamp"))
        phase = new.get("status", {}).get("phase", "")
        if phase == ("Terminating" if dying else "Active"):
            return []
        rule = (
            "'Terminating' if `deletionTimestamp` is not empty" if dying else "'Active' if `deletionTimestamp` is empty"
        )
        return [FieldError.invalid(Path("status", "Phase"), phase, f"may only be {rule}")]

    @staticmethod
    def finalizers(obj: Json) -> list[str]:
        found: list[str] = obj.get("spec", {}).get("finalizers") or []
        return found

    def is_finalized(self, obj: Json) -> bool:
        return not self.finalizers(obj)

    def begins_deletion(self, obj: Json, now: datetime) -> bool:
        if obj["metadata"].get("deletionTimestamp"):
            return not self.is_finalized(obj)
        obj["metadata"]["deletionTimestamp"] = str(Time.of(now))
        obj["status"] = {**obj.get("status", {}), "phase": "Terminating"}
        return True

    def fields(self, obj: Mapping[str, Any]) -> dict[str, str]:
        return {"status.phase": obj.get("status", {}).get("phase", "")}


_FINALIZERS = Path("spec", "finalizers")


def _validate_finalizer(name: str, path: Path) -> list[FieldError]:
    errors = [FieldError.invalid(path, name, text) for text in names.is_qualified_name(name)]
    return errors + names.validate_built_in_finalizer(name, path)


def _label(obj: Json) -> None:
    metadata = obj["metadata"]
    metadata["labels"] = {**metadata.get("labels", {}), "kubernetes.io/metadata.name": metadata.get("name", "")}
