"""Validation of a definition's spec, except for its schemas.

If all versions have the same schema, subresources, columns or selectable fields, errors refer to the top-level field,
as in kube-apiserver's internal version.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ostinato.api.validation import names
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.resources.apiextensions.validation.conversion import conversion_faults
from ostinato.server.resources.apiextensions.validation.internal_form import shown_version
from ostinato.server.resources.apiextensions.validation.schema import schema_faults
from ostinato.server.resources.apiextensions.validation.version import (
    column_faults,
    deprecation_faults,
    selectable_faults,
    subresource_faults,
)
from ostinato.server.resources.strategy import Json

_SPEC = Path("spec")
_NO_SCHEMA_HERE = "may only be set when validations.schema is included"
_NO_SCHEMA_IN_VERSION = "may only be set when `version.schema.openAPIV3Schema` is not included"  # sic
_SHARED = ("schema", "subresources", "additionalPrinterColumns", "selectableFields")


def name_faults(obj: Json) -> list[FieldError]:
    """Validate that the name is `PLURAL.GROUP`."""
    spec = obj["spec"]
    name = obj["metadata"].get("name", "")
    if name and name != f"{spec['names'].get('plural', '')}.{spec.get('group', '')}":
        return [FieldError.invalid(Path("metadata", "name"), name, 'must be spec.names.plural+"."+spec.group')]
    return []


def spec_faults(spec: Json) -> list[FieldError]:
    versions: list[Json] = spec.get("versions") or []
    shared = {name for name in _SHARED if versions and all(v.get(name) == versions[0].get(name) for v in versions)}
    return [
        *_group_faults(spec.get("group", "")),
        *_choice(_SPEC.child("scope"), spec.get("scope", ""), ("Cluster", "Namespaced")),
        *_missing_schemas(versions),
        *_versions_faults(spec.get("versions"), shared),
        *_first_version_faults(versions),
        *_required_names(spec["names"]),
        *names_faults(spec["names"], _SPEC.child("names")),
        *(_shared_faults(versions[0], shared) if versions else ()),
        *conversion_faults(spec["conversion"], _SPEC.child("conversion")),
        *_preserve_faults(spec),
    ]


def update_faults(new: Json, old: Json, *, established: bool) -> list[FieldError]:
    errors = spec_faults(new)
    fixed: list[tuple[Path, Any, Any]] = []
    if established:
        fixed.append((_SPEC.child("scope"), new["scope"], old["scope"]))
        fixed.append((_SPEC.child("names", "kind"), new["names"].get("kind", ""), old["names"].get("kind", "")))
    fixed.append((_SPEC.child("group"), new["group"], old["group"]))
    fixed.append((_SPEC.child("names", "plural"), new["names"]["plural"], old["names"]["plural"]))
    errors += [FieldError.invalid(path, value, "field is immutable") for path, value, was in fixed if value != was]
    return errors


def _group_faults(group: str) -> list[FieldError]:
    path = _SPEC.child("group")
    if not group:
        return [FieldError.required(path)]
    faults = names.is_dns1123_subdomain(group)
    if faults:
        return [FieldError.invalid(path, group, ",".join(faults))]
    if "." not in group:
        return [FieldError.invalid(path, group, "should be a domain with at least one dot")]
    return []


def _choice(path: Path, value: str, allowed: Sequence[str]) -> list[FieldError]:
    if not value:
        return [FieldError.required(path)]
    return [] if value in allowed else [FieldError.not_supported(path, value, allowed)]


def _missing_schemas(versions: list[Json]) -> list[FieldError]:
    return [
        FieldError.required(_SPEC.child("versions").index(i).child("schema", "openAPIV3Schema"))
        for i, version in enumerate(versions)
        if (version.get("schema") or {}).get("openAPIV3Schema") is None
    ]


def _versions_faults(given: list[Json] | None, shared: set[str]) -> list[FieldError]:
    errors: list[FieldError] = []
    versions = given or []
    path = _SPEC.child("versions")
    for i, version in enumerate(versions):
        faults = names.is_dns1035_label(version["name"])
        if faults:
            errors.append(FieldError.invalid(path.index(i).child("name"), version["name"], ",".join(faults)))
        errors += deprecation_faults(version, path.index(i))
        own = {name: value for name, value in version.items() if name not in shared}
        errors += _part_faults(own, version, path.index(i), path.index(i).child("schema"))
    shown = None if given is None else [shown_version(version, shared) for version in versions]
    if len({version["name"] for version in versions}) < len(versions):
        errors.append(FieldError.invalid(path, shown, "must contain unique version names"))
    if sum(bool(version.get("storage")) for version in versions) != 1:
        errors.append(FieldError.invalid(path, shown, "must have exactly one version marked as storage version"))
    return errors


def _first_version_faults(versions: list[Json]) -> list[FieldError]:
    """Validate the name of the first version again, as `spec.version`."""
    faults = names.is_dns1035_label(versions[0]["name"]) if versions and versions[0]["name"] else []
    return [FieldError.invalid(_SPEC.child("version"), versions[0]["name"], ",".join(faults))] if faults else []


def _shared_faults(version: Json, shared: set[str]) -> list[FieldError]:
    common = {name: value for name, value in version.items() if name in shared}
    return _part_faults(common, version, _SPEC, _SPEC.child("validation"))


def _part_faults(part: Mapping[str, Any], version: Json, path: Path, schema_path: Path) -> list[FieldError]:
    """Validate the parts of a version whose errors refer to this path."""
    errors: list[FieldError] = []
    schema = (part.get("schema") or {}).get("openAPIV3Schema")
    if schema is not None:
        status = (version.get("subresources") or {}).get("status") is not None
        errors += schema_faults(schema, schema_path, status=status)
    if part.get("subresources"):
        errors += subresource_faults(part["subresources"], path.child("subresources"))
    for i, column in enumerate(part.get("additionalPrinterColumns") or ()):
        errors += column_faults(column, path.child("additionalPrinterColumns").index(i))
    if part.get("selectableFields"):
        where = path.child("selectableFields")
        if schema is None:  # shared by all versions while the selectable fields are not, or vice versa
            errors.append(FieldError.invalid(where, "", _NO_SCHEMA_HERE if path is _SPEC else _NO_SCHEMA_IN_VERSION))
        else:
            errors += selectable_faults(part["selectableFields"], schema, where)
    return errors


def _required_names(names_: Json) -> list[FieldError]:
    return [
        FieldError.required(_SPEC.child("names", field))
        for field in ("plural", "singular", "kind", "listKind")
        if not names_.get(field)
    ]


def names_faults(given: Json, path: Path) -> list[FieldError]:
    """Validate the names of a kind; absent ones are skipped."""
    errors: list[FieldError] = []
    for field in ("plural", "singular"):
        faults = names.is_dns1035_label(given[field]) if given.get(field) else []
        if faults:
            errors.append(FieldError.invalid(path.child(field), given[field], ",".join(faults)))
    for field in ("kind", "listKind"):
        faults = names.is_dns1035_label(given[field].lower()) if given.get(field) else []
        if faults:
            detail = "may have mixed case, but should otherwise match: " + ",".join(faults)
            errors.append(FieldError.invalid(path.child(field), given[field], detail))
    errors += _label_list_faults(given.get("shortNames"), path.child("shortNames"))
    if given.get("kind") and given.get("kind") == given.get("listKind"):
        errors.append(
            FieldError.invalid(path.child("listKind"), given["listKind"], "kind and listKind may not be the same")
        )
    errors += _label_list_faults(given.get("categories"), path.child("categories"))
    return errors


def _label_list_faults(values: list[str] | None, path: Path) -> list[FieldError]:
    found = [(i, text, names.is_dns1035_label(text)) for i, text in enumerate(values or ())]
    return [FieldError.invalid(path.index(i), text, ",".join(faults)) for i, text, faults in found if faults]


def _preserve_faults(spec: Json) -> list[FieldError]:
    preserve = spec.get("preserveUnknownFields")
    if not preserve:
        return []
    why = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
    return [FieldError.invalid(_SPEC.child("preserveUnknownFields"), preserve, why)]
