"""Validation of PersistentVolumeClaimSpecs."""

from __future__ import annotations

from ostinato.api.selectors import labels
from ostinato.api.validation import names
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.resources.strategy import Json
from ostinato.server.resources.validation.checks import checked, positive_quantity
from ostinato.server.resources.validation.quantities import validate_amount

_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_VOLUME_MODES = ("Block", "Filesystem")


def validate_claim_template(template: Json, path: Path) -> list[FieldError]:
    """Validate the claim template of an ephemeral volume."""
    metadata = template.get("metadata", {})
    errors = names.validate_annotations(metadata.get("annotations", {}), path.child("metadata", "annotations"))
    errors += names.validate_labels(metadata.get("labels", {}), path.child("metadata", "labels"))
    errors += [
        FieldError.forbidden(path.child("metadata", "uID" if field == "uid" else field), "cannot be set")
        for field in metadata
        if field not in ("annotations", "labels", "creationTimestamp")
    ]
    return errors + validate_claim_spec(template.get("spec", {}), path.child("spec"))


def validate_claim_spec(spec: Json, path: Path, *, any_group: bool = False) -> list[FieldError]:
    """Validate the spec of a claim; `any_group`: the API groups of its data sources are not validated."""
    errors: list[FieldError] = []
    modes = spec.get("accessModes", [])
    if not modes:
        errors.append(FieldError.required(path.child("accessModes"), "at least 1 access mode is required"))
    if "selector" in spec:
        errors += labels.validate_label_selector(spec["selector"], path.child("selector"))
    errors += validate_access_modes(modes, path.child("accessModes"))
    errors += _validate_storage(spec.get("resources", {}).get("requests", {}), path.child("resources").key("storage"))
    if spec.get("storageClassName"):
        errors += checked(names.name_is_dns_subdomain, spec["storageClassName"], path.child("storageClassName"))
    errors += validate_volume_mode(spec, path)
    for field in ("dataSource", "dataSourceRef"):
        if field in spec:
            errors += _validate_data_source(spec[field], path.child(field), any_group=any_group)
    errors += _validate_data_sources(spec, path)
    name = spec.get("volumeAttributesClassName")
    return errors + (
        checked(names.name_is_dns_subdomain, name, path.child("volumeAttributesClassName")) if name else []
    )


def validate_access_modes(modes: list[str], path: Path) -> list[FieldError]:
    errors = [FieldError.not_supported(path, mode, _MODES) for mode in modes if mode not in _MODES]
    if "ReadWriteOncePod" in modes and any(mode in _MODES and mode != "ReadWriteOncePod" for mode in modes):
        errors.append(FieldError.forbidden(path, "may not use ReadWriteOncePod with other access modes"))
    return errors


def validate_volume_mode(spec: Json, path: Path) -> list[FieldError]:
    mode = spec.get("volumeMode", "Filesystem")
    return [] if mode in _VOLUME_MODES else [FieldError.not_supported(path.child("volumeMode"), mode, _VOLUME_MODES)]


def _validate_storage(requests: dict[str, str], path: Path) -> list[FieldError]:
    if "storage" not in requests:
        return [FieldError.required(path)]
    return positive_quantity(requests["storage"], path) or validate_amount("storage", requests["storage"], path)


def _validate_data_source(source: Json, path: Path, *, any_group: bool) -> list[FieldError]:
    errors = [FieldError.required(path.child(field)) for field in ("name", "kind") if not source.get(field)]
    group = source.get("apiGroup", "")
    if not group and source.get("kind") != "PersistentVolumeClaim":
        detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        errors.append(FieldError.invalid(path, source.get("kind", ""), detail))
    if group and not any_group:
        errors += checked(names.is_dns1123_subdomain, group, path.child("apiGroup"))
    if source.get("namespace"):
        errors += checked(names.name_is_dns_label, source["namespace"], path.child("namespace"))
    return errors


def _validate_data_sources(spec: Json, path: Path) -> list[FieldError]:
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is None or reference is None:
        return []
    if reference.get("namespace"):
        detail = "may not be specified when dataSourceRef.namespace is specified"
    elif all(source.get(field) == reference.get(field) for field in ("apiGroup", "kind", "name")):
        return []
    else:
        detail = "must match dataSourceRef"
    return [FieldError.invalid(path, {}, detail)]
