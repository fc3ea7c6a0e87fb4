"""Strategy of CustomResourceDefinitions. `server.controllers.custom_resources` serves the defined resources."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ostinato.api.text.go_format import quote
from ostinato.api.time import Time
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.api.validation.formats import known_format
from ostinato.server.resources.apiextensions import conditions
from ostinato.server.resources.apiextensions.approval import approval_faults
from ostinato.server.resources.apiextensions.validation.spec import (
    name_faults,
    names_faults,
    spec_faults,
    update_faults,
)
from ostinato.server.resources.strategy import Json, Strategy

_NO_NAMES = {"kind": "", "plural": ""}
_SUBSCHEMAS = ("items", "not", "additionalProperties")
_SUBSCHEMA_LISTS = ("allOf", "anyOf", "oneOf")
_SUBSCHEMA_MAPS = ("properties",)


class CustomResourceDefinition(Strategy):
    allow_unconditional_update = False
    generation = True

    def default(self, obj: Json) -> None:
        spec = obj["spec"]
        names = spec["names"]
        if not names.get("singular") and names.get("kind"):
            names["singular"] = names["kind"].lower()
        if not names.get("listKind") and names.get("kind"):
            names["listKind"] = names["kind"] + "List"
        conversion = spec.setdefault("conversion", {"strategy": "None"})
        service = ((conversion.get("webhook") or {}).get("clientConfig") or {}).get("service")
        if service is not None:
            service.setdefault("port", 443)
        if not obj["status"].get("storedVersions"):
            obj["status"]["storedVersions"] = _storage_versions(obj)[:1] or None

    def prepare_create(self, obj: Json) -> None:
        stored = _storage_versions(obj)[:1] or None
        obj["status"] = {"acceptedNames": dict(_NO_NAMES), "conditions": None, "storedVersions": stored}

    def prepare_update(self, new: Json, old: Json) -> None:
        stored = list(new["status"].get("storedVersions") or ())
        for version in _storage_versions(new)[:1]:
            if version not in stored:
                new["status"] = {**new["status"], "storedVersions": [*stored, version]}

    def desired(self, obj: Json) -> Any:
        return obj["spec"]

    def validate(self, obj: Json) -> list[FieldError]:
        return [*name_faults(obj), *spec_faults(obj["spec"]), *self._status_faults(obj), *approval_faults(obj, None)]

    def validate_update(self, new: Json, old: Json) -> list[FieldError]:
        established = conditions.is_true(old, "Established")
        return [
            *update_faults(new["spec"], old["spec"], established=established),
            *self._status_faults(new),
            *approval_faults(new, old),
        ]

    def validate_status_update(self, new: Json, old: Json) -> list[FieldError]:
        return names_faults(new["status"]["acceptedNames"], Path("status", "acceptedNames"))

    def _status_faults(self, obj: Json) -> list[FieldError]:
        errors = names_faults(obj["status"]["acceptedNames"], Path("status", "acceptedNames"))
        path = Path("status", "storedVersions")
        stored = obj["status"].get("storedVersions")
        if not stored:
            return [*errors, FieldError.invalid(path, None, "must have at least one stored version")]
        storage = _storage_versions(obj)
        errors += [
            FieldError.invalid(path, stored, f"must have the storage version {name}")
            for i, name in enumerate(storage)
            if name not in stored or name in storage[:i]
        ]
        defined = {version["name"] for version in obj["spec"].get("versions") or ()}
        for i, name in enumerate(stored):
            if name not in defined:
                why = (
                    f"missing from spec.versions; {name} was previously a storage version, and must remain in "
                    f"spec.versions until a storage migration ensures no data remains persisted in {name} and removes "
                    f"{name} from status.storedVersions"
                )
                errors.append(FieldError.invalid(path.index(i), name, why))
        return errors

    def warnings(self, new: Json, old: Json | None) -> list[str]:
        known = _unknown_formats(old) if old is not None else []
        return [f"unrecognized format {quote(name)}" for name in _unknown_formats(new) if name not in known]

    def begins_deletion(self, obj: Json, now: datetime) -> bool:
        """Keep the definition until its objects are deleted."""
        meta = obj["metadata"]
        if meta.get("deletionTimestamp"):
            return False
        stamp = str(Time.of(now))
        meta["deletionTimestamp"] = stamp
        if conditions.CLEANUP not in meta.get("finalizers", ()):
            meta["finalizers"] = [*meta.get("finalizers", ()), conditions.CLEANUP]
        pending = conditions.condition(
            "Terminating",
            "True",
            "InstanceDeletionPending",
            "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
        )
        obj["status"] = conditions.with_condition(obj["status"], pending, stamp)
        return True


def _storage_versions(obj: Json) -> list[str]:
    return [version["name"] for version in obj["spec"].get("versions") or () if version.get("storage")]


def _unknown_formats(obj: Json) -> list[str]:
    """Unknown formats, in the order of the schemas."""
    found: list[str] = []
    schemas = [
        (version.get("schema") or {}).get("openAPIV3Schema") or {} for version in obj["spec"].get("versions") or ()
    ]
    # Versions with the same schema share it.
    waiting = [schemas[0]] if schemas and all(schema == schemas[0] for schema in schemas) else list(reversed(schemas))
    while waiting:
        schema = waiting.pop()
        kind = schema.get("type", "")
        if schema.get("format") and not known_format(schema, (kind,)):
            found.append(schema["format"])
        below = [schema.get(name) for name in _SUBSCHEMAS]
        below += [item for name in _SUBSCHEMA_LISTS for item in schema.get(name) or ()]
        below += [item for name in _SUBSCHEMA_MAPS for item in (schema.get(name) or {}).values()]
        waiting.extend(item for item in reversed(below) if isinstance(item, dict))
    return found


STRATEGIES: dict[tuple[str, str], Strategy] = {
    ("apiextensions.k8s.io", "customresourcedefinitions"): CustomResourceDefinition(),
}
