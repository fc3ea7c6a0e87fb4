"""How custom objects are written: the rules of one version of a definition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ostinato.api import names
from ostinato.api.field_errors import FieldError
from ostinato.api.quoting import quote
from ostinato.server.resources.custom.definition import Definition, Version
from ostinato.server.resources.custom.replicas import scale_faults, scale_status_faults
from ostinato.server.resources.strategy import Json, Strategy
from ostinato.server.schema.check import fits_table
from ostinato.server.schema.default import apply_defaults
from ostinato.server.schema.embedded import embedded_faults
from ostinato.server.schema.explain import Before, explain
from ostinato.server.schema.lists import repetitions

_STANDARD_FINALIZERS = frozenset({"orphan", "foregroundDeletion", "kubernetes"})


class CustomStrategy(Strategy):
    """How the objects of one version of a definition are written."""

    allow_unconditional_update = False
    generation = True

    def __init__(self, definition: Definition, version: Version) -> None:
        self._definition = definition
        self._version = version

    def default(self, obj: Json) -> None:
        apply_defaults(self._version.node, obj)

    def prepare_create(self, obj: Json) -> None:
        if self._version.has_status:
            obj.pop("status", None)

    def prepare_status_update(self, new: Json, old: Json) -> None:
        """The status is new, and who owns what; all else stays."""
        managed = new["metadata"].get("managedFields")
        status = {"status": new["status"]} if "status" in new else {}
        new.clear()
        new.update({name: value for name, value in old.items() if name != "status"} | status)
        new["metadata"] = {name: value for name, value in old["metadata"].items() if name != "managedFields"}
        if managed:
            new["metadata"]["managedFields"] = managed

    def validate(self, obj: Json) -> list[FieldError]:
        version = self._version
        errors = [] if fits_table(version.table, obj) else explain(version.schema, obj)
        return [
            *errors,
            *scale_faults(version.scale, obj),
            *embedded_faults(version.node, obj),
            *repetitions(version.node, obj),
        ]

    def validate_update(self, new: Json, old: Json) -> list[FieldError]:
        version = self._version
        errors = []
        if not fits_table(version.table, new):
            errors = explain(version.schema, new, before=Before(version.node, new, old))
        return [
            *errors,
            *scale_faults(version.scale, new),
            *embedded_faults(version.node, new),
            *self._new_repetitions(new, old),
        ]

    def validate_status_update(self, new: Json, old: Json) -> list[FieldError]:
        version = self._version
        errors = []
        node = version.node.properties.get("status")
        if "status" in new and node is not None:
            status = new["status"]
            errors = explain(node.raw, status, "status", Before(node, status, old.get("status")))
        return errors + scale_status_faults(version.scale, new) + self._new_repetitions(new, old)

    def _new_repetitions(self, new: Json, old: Json) -> list[FieldError]:
        """What occurs twice may stay as it is, with all the rest."""
        found = repetitions(self._version.node, new)
        return [] if found and repetitions(self._version.node, old) else found

    def warnings(self, new: Json, old: Json | None) -> list[str]:
        before = old["metadata"].get("finalizers", ()) if old is not None else ()
        added = sorted(set(new["metadata"].get("finalizers", ())) - set(before))
        return [warning for finalizer in added for warning in _finalizer_warnings(finalizer)]

    def desired(self, obj: Json) -> Any:
        return {name: value for name, value in obj.items() if name != "metadata"}

    def fields(self, obj: Mapping[str, Any]) -> dict[str, str]:
        return self._definition.fields(obj)


def _finalizer_warnings(finalizer: str) -> list[str]:
    """Names of finalizers that may be anybody's."""
    about = f"metadata.finalizers: {quote(finalizer)}: "
    found = [about + fault for fault in names.is_qualified_name(finalizer)]
    if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
        path = " including a path (/)" if "." in finalizer else ""
        found.append(
            f"{about}prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with other finalizer "
            "writers"
        )
    return found
