"""Strategy of custom resources: the rules of one version of a definition."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

from ostinato.api.text.go_format import quote
from ostinato.api.validation import names
from ostinato.api.validation.field_errors import ErrorType, FieldError, Path
from ostinato.server.resources.custom.definition import Definition, Version
from ostinato.server.resources.custom.replicas import scale_faults, scale_status_faults
from ostinato.server.resources.strategy import Json, Strategy
from ostinato.server.schema.rules.evaluation import check_rules
from ostinato.server.schema.structural.defaulting import apply_defaults
from ostinato.server.schema.structural.embedded_resources import embedded_faults
from ostinato.server.schema.structural.list_types import duplicates
from ostinato.server.schema.validation.check import fits_table
from ostinato.server.schema.validation.explain import CorrelatedValue, explain

_BLOCKING = frozenset(
    {
        ErrorType.NOT_SUPPORTED,
        ErrorType.REQUIRED,
        ErrorType.TOO_LONG,
        ErrorType.TOO_MANY,
        ErrorType.TYPE_INVALID,
    }
)
_NOT_CHECKED = (
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete "
    "validation"
)
_ABSENT = object()
# Rule violations of the object validated last that are ratcheted (reported as warnings). A context variable,
# because objects are validated in more than one thread.
_ratcheted: ContextVar[tuple[Json, list[str]] | None] = ContextVar("ostinato.server.forgiven", default=None)
_STANDARD_FINALIZERS = frozenset({"orphan", "foregroundDeletion", "kubernetes"})


class CustomStrategy(Strategy):
    """The strategy of one version of a definition."""

    allow_unconditional_update = False
    generation = True

    def __init__(self, definition: Definition, version: Version) -> None:
        self._definition = definition
        self._version = version

    def default(self, obj: Json) -> None:
        apply_defaults(self._version.node, obj)

    def prepare_create(self, obj: Json) -> None:
        if self._version.has_status and obj.pop("status", None) is not None:
            self.default(obj)  # a status that the client cannot set may have a default

    def prepare_status_update(self, new: Json, old: Json) -> None:
        """Update the status and its managed fields; keep everything else."""
        managed, status = new["metadata"].get("managedFields"), new.get("status", _ABSENT)
        new.clear()
        new.update(old)
        new.pop("status", None)
        if status is not _ABSENT:
            new["status"] = status
        metadata = new["metadata"] = dict(old["metadata"])
        metadata.pop("managedFields", None)
        if managed:
            metadata["managedFields"] = managed

    def validate(self, obj: Json) -> list[FieldError]:
        version = self._version
        errors = [] if fits_table(version.table, obj) else explain(version.schema, obj)
        errors = [
            *errors,
            *scale_faults(version.scale, obj),
            *embedded_faults(version.node, obj),
            *duplicates(version.node, obj),
        ]
        return errors + self._rule_violations(errors, obj, None)

    def validate_update(self, new: Json, old: Json) -> list[FieldError]:
        version = self._version
        errors = []
        if not fits_table(version.table, new):
            errors = explain(version.schema, new, before=CorrelatedValue(version.node, new, old))
        errors = [
            *errors,
            *scale_faults(version.scale, new),
            *embedded_faults(version.node, new),
            *self._new_duplicates(new, old),
        ]
        return errors + self._rule_violations(errors, new, old)

    def validate_status_update(self, new: Json, old: Json) -> list[FieldError]:
        version = self._version
        errors = []
        node = version.node.properties.get("status")
        if "status" in new and node is not None:
            status = new["status"]
            if not fits_table(version.status_table, status):
                errors = explain(node.raw, status, "status", CorrelatedValue(node, status, old.get("status")))
        errors = errors + scale_status_faults(version.scale, new) + self._new_duplicates(new, old)
        return errors + self._rule_violations(errors, new, old)

    def _rule_violations(self, errors: list[FieldError], new: Json, old: Json | None) -> list[FieldError]:
        """Evaluate the CEL rules, for objects whose types and sizes are valid."""
        _ratcheted.set(None)
        tree = self._version.rules
        if tree is None:
            return []
        if any(error.type in _BLOCKING for error in errors):
            return [FieldError.invalid(Path(), None, _NOT_CHECKED)]
        before = CorrelatedValue(self._version.node, new, old) if old is not None else None
        found = check_rules(tree, new, old, before)
        if found.warnings:
            _ratcheted.set((new, found.warnings))
        return found.errors

    def _new_duplicates(self, new: Json, old: Json) -> list[FieldError]:
        """Duplicates in lists of type set and map, unless the old object has them unchanged."""
        found = duplicates(self._version.node, new)
        return [] if found and duplicates(self._version.node, old) else found

    def warnings(self, new: Json, old: Json | None) -> list[str]:
        before = old["metadata"].get("finalizers", ()) if old is not None else ()
        added = sorted(set(new["metadata"].get("finalizers", ())) - set(before))
        warnings = [warning for finalizer in added for warning in _finalizer_warnings(finalizer)]
        ratcheted = _ratcheted.get()
        _ratcheted.set(None)
        return warnings + ratcheted[1] if ratcheted is not None and ratcheted[0] is new else warnings

    def desired(self, obj: Json) -> Any:
        return {name: value for name, value in obj.items() if name != "metadata"}

    def fields(self, obj: Mapping[str, Any]) -> dict[str, str]:
        return self._definition.fields(obj)


def _finalizer_warnings(finalizer: str) -> list[str]:
    """Warn about finalizer names that are not qualified."""
    about = f"metadata.finalizers: {quote(finalizer)}: "
    found = [about + fault for fault in names.is_qualified_name(finalizer)]
    if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
        path = " including a path (/)" if "." in finalizer else ""
        found.append(
            f"{about}prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with other finalizer "
            "writers"
        )
    return found
