"""Validation of environment variables, fieldRef and resourceFieldRef."""

from __future__ import annotations

import re

from ostinato.api.quantity import Quantity
from ostinato.api.validation import field_values, names
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.resources.strategy import Json
from ostinato.server.resources.validation.checks import checked, no_backsteps

ENV_FIELDS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
_FIELDS = frozenset(
    {
        *ENV_FIELDS,
        "metadata.annotations",
        "metadata.labels",
        "spec.restartPolicy",
        "spec.schedulerName",
        "status.phase",
    }
)
_RESOURCES = tuple(
    sorted(f"{side}.{name}" for side in ("limits", "requests") for name in ("cpu", "memory", "ephemeral-storage"))
)
_HUGE_PAGES = ("limits.hugepages-", "requests.hugepages-")
_CPU_DIVISORS: tuple[str, ...] = ("1m", "1")
_STORAGE_DIVISORS: tuple[str, ...] = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
_subscripted = re.compile(r"(.*)\['(.*)'\]", re.DOTALL).fullmatch
_ONE_SOURCE = "may not have more than one field specified at a time"
_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")


def validate_env(variables: list[Json], path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    for i, variable in enumerate(variables):
        name = variable.get("name", "")
        if "valueFrom" not in variable and not field_values.is_relaxed_env_var_name(name):
            continue  # the common case
        at = path.index(i)
        if name:
            errors += checked(field_values.is_relaxed_env_var_name, name, at.child("name"))
        else:
            errors.append(FieldError.required(at.child("name")))
        if "valueFrom" in variable:
            errors += _validate_source(variable["valueFrom"], variable.get("value", ""), at.child("valueFrom"))
    return errors


def _validate_source(source: Json, value: str, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    if "fieldRef" in source:
        errors += validate_field_reference(source["fieldRef"], ENV_FIELDS, path.child("fieldRef"))
    if "resourceFieldRef" in source:
        errors += validate_resource_reference(source["resourceFieldRef"], path.child("resourceFieldRef"))
    for kind in ("configMapKeyRef", "secretKeyRef"):
        if kind in source:
            errors += _validate_key(source[kind], path.child(kind))
    if "fileKeyRef" in source:
        errors += _validate_file_key(source["fileKeyRef"], path.child("fileKeyRef"))
    count = sum(kind in source for kind in _SOURCES)
    if not count:
        detail = f"must specify one of: {', '.join(f'`{kind}`' for kind in _SOURCES[:-1])} or `{_SOURCES[-1]}`"
        errors.append(FieldError.invalid(path, "", detail))
    elif value:
        errors.append(FieldError.invalid(path, "", "may not be specified when `value` is not empty"))
    elif count > 1:
        errors.append(FieldError.invalid(path, "", _ONE_SOURCE))
    return errors


def _validate_key(reference: Json, path: Path) -> list[FieldError]:
    key = reference.get("key", "")
    errors = checked(names.name_is_dns_subdomain, reference.get("name", ""), path.child("name"))
    if not key:
        return [*errors, FieldError.required(path.child("key"))]
    return errors + checked(field_values.is_config_map_key, key, path.child("key"))


def _validate_file_key(reference: Json, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    for field, rule in (
        ("key", field_values.is_relaxed_env_var_name),
        ("volumeName", names.is_dns1123_label),
    ):
        value = reference.get(field, "")
        errors += checked(rule, value, path.child(field)) if value else [FieldError.required(path.child(field))]
    where = reference.get("path", "")
    errors += no_backsteps(where, path.child("path")) if where else [FieldError.required(path.child("path"))]
    return errors


def validate_field_reference(reference: Json, supported: tuple[str, ...], path: Path) -> list[FieldError]:
    """Validate a fieldRef."""
    version, field = reference.get("apiVersion", ""), reference.get("fieldPath", "")
    if not version or not field:
        return [FieldError.required(path.child("fieldPath" if version else "apiVersion"))]
    where = path.child("fieldPath")
    found = _subscripted(field)
    why = _field_error(version, found[1] if found else field, field, subscripted=bool(found))
    if why:
        return [FieldError.invalid(where, field, f"error converting fieldPath: {why}")]
    if found:
        key = found[2].lower() if found[1] == "metadata.annotations" else found[2]
        return checked(names.is_qualified_name, key, path)
    field = "spec.nodeName" if field == "spec.host" else field
    return [] if field in supported else [FieldError.not_supported(where, field, sorted(supported))]


def _field_error(version: str, name: str, field: str, *, subscripted: bool) -> str:
    if version != "v1":
        return f"unsupported pod version: {version}"
    if subscripted:
        known = name in ("metadata.annotations", "metadata.labels")
        return "" if known else f"field label does not support subscript: {field}"
    return "" if name in _FIELDS or name == "spec.host" else f"field label not supported: {field}"


def validate_resource_reference(reference: Json, path: Path, *, volume: bool = False) -> list[FieldError]:
    """Validate a resourceFieldRef."""
    resource, errors = reference.get("resource", ""), []
    if volume and not reference.get("containerName"):
        errors.append(FieldError.required(path.child("containerName")))
    elif not resource:
        errors.append(FieldError.required(path.child("resource")))
    elif resource not in _RESOURCES and not resource.startswith(_HUGE_PAGES):
        errors.append(FieldError.not_supported(path.child("resource"), resource, _RESOURCES))
    return errors + _validate_divisor(resource, reference.get("divisor", "0"), path.child("divisor"))


def _validate_divisor(resource: str, divisor: str, path: Path) -> list[FieldError]:
    if not Quantity.parse(divisor):
        return []
    if resource.endswith(".cpu"):
        allowed, what = _CPU_DIVISORS, "only divisor's values 1m and 1 are supported with the cpu resource"
    elif resource.endswith(".memory"):
        allowed, what = _STORAGE_DIVISORS, _storage("memory")
    elif resource.endswith(".ephemeral-storage"):
        allowed, what = _STORAGE_DIVISORS, _storage("local ephemeral storage")
    elif resource.startswith(_HUGE_PAGES):
        allowed, what = _STORAGE_DIVISORS, _storage("hugepages")
    else:
        return []
    return [] if divisor in allowed else [FieldError.invalid(path, resource, what)]


def _storage(name: str) -> str:
    listed = ", ".join(_STORAGE_DIVISORS)
    return f"only divisor's values {listed} are supported with the {name} resource"


def validate_env_from(sources: list[Json], path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    for i, source in enumerate(sources):
        at = path.index(i)
        if source.get("prefix"):
            errors += checked(field_values.is_relaxed_env_var_name, source["prefix"], at.child("prefix"))
        given = [kind for kind in ("configMapRef", "secretRef") if kind in source]
        for kind in given:
            name, where = source[kind].get("name", ""), at.child(kind).child("name")
            if name:
                errors += [
                    FieldError.invalid(where, name, text) for text in names.name_is_dns_subdomain(name, prefix=True)
                ]
            else:
                errors.append(FieldError.required(where))
        if not given:
            errors.append(FieldError.invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"))
        elif len(given) > 1:
            errors.append(FieldError.invalid(path, "", _ONE_SOURCE))
    return errors
