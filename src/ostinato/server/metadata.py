"""Metadata: the rules that hold for every object, whatever its kind."""

from __future__ import annotations

from typing import Any

from ostinato.api import names
from ostinato.api.field_errors import FieldError, Path
from ostinato.api.quoting import quote
from ostinato.server.resources.resource import Resource
from ostinato.server.resources.strategy import Json

_META = Path("metadata")
_IMMUTABLE = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")


def validate(obj: Json, resource: Resource) -> list[FieldError]:
    """What is wrong with the metadata of an object."""
    meta = obj["metadata"]
    errors: list[FieldError] = []
    rule = resource.strategy.name_rule
    generate_name = meta.get("generateName", "")
    if generate_name:
        errors += [
            FieldError.invalid(_META.child("generateName"), generate_name, text)
            for text in rule(generate_name, prefix=True)
        ]
    name = meta.get("name", "")
    if not name:
        errors.append(FieldError.required(_META.child("name"), "name or generateName is required"))
    else:
        errors += [FieldError.invalid(_META.child("name"), name, text) for text in rule(name)]
    namespace = meta.get("namespace", "")
    if resource.namespaced:
        if not namespace:
            errors.append(FieldError.required(_META.child("namespace")))
        else:
            errors += [
                FieldError.invalid(_META.child("namespace"), namespace, text)
                for text in names.is_dns1123_label(namespace)
            ]
    elif namespace:
        errors.append(FieldError.forbidden(_META.child("namespace"), "not allowed on this type"))
    if meta.get("generation", 0) < 0:
        errors.append(
            FieldError.invalid(_META.child("generation"), meta["generation"], "must be greater than or equal to 0")
        )
    errors += validate_common(meta)
    errors += _validate_finalizers(meta.get("finalizers", ()))
    return errors


def validate_common(meta: dict[str, Any]) -> list[FieldError]:
    errors = names.validate_labels(meta.get("labels", {}), _META.child("labels"))
    errors += names.validate_annotations(meta.get("annotations", {}), _META.child("annotations"))
    errors += _validate_owners(meta.get("ownerReferences", ()))
    errors += _validate_managed_fields(meta.get("managedFields", ()))
    return errors


def _validate_owners(owners: Any) -> list[FieldError]:
    errors: list[FieldError] = []
    path = _META.child("ownerReferences")
    controller = ""
    for owner in owners:
        api_version, kind = owner.get("apiVersion", ""), owner.get("kind", "")
        if not api_version or api_version.startswith("/") or api_version.endswith("/"):
            errors.append(FieldError.invalid(path.child("apiVersion"), api_version, "version must not be empty"))
        if not kind:
            errors.append(FieldError.invalid(path.child("kind"), kind, "must not be empty"))
        if not owner.get("name"):
            errors.append(FieldError.invalid(path.child("name"), owner.get("name", ""), "must not be empty"))
        if not owner.get("uid"):
            errors.append(FieldError.invalid(path.child("uid"), owner.get("uid", ""), "must not be empty"))
        if (api_version, kind) == ("v1", "Event"):
            errors.append(
                FieldError.invalid(path, owner, f"{api_version}, Kind={kind} is disallowed from being an owner")
            )
        if owner.get("controller"):
            if controller:
                errors.append(
                    FieldError.invalid(
                        path,
                        owners,
                        'Only one reference can have Controller set to true. Found "true" in references for '
                        f"{controller} and {owner.get('name', '')}",
                    )
                )
            else:
                controller = owner.get("name", "")
    return errors


def _validate_managed_fields(entries: Any) -> list[FieldError]:
    errors: list[FieldError] = []
    path = _META.child("managedFields")
    for i, entry in enumerate(entries):
        at = path.index(i)
        if entry.get("operation", "") not in ("Apply", "Update"):
            errors.append(
                FieldError.invalid(at.child("operation"), entry.get("operation", ""), "must be `Apply` or `Update`")
            )
        if len(entry.get("fieldsType", "")) > 0 and entry["fieldsType"] != "FieldsV1":
            errors.append(FieldError.invalid(at.child("fieldsType"), entry["fieldsType"], "must be `FieldsV1`"))
        errors += names.validate_field_manager(entry.get("manager", ""), at.child("manager"))
    return errors


def _validate_finalizers(finalizers: Any) -> list[FieldError]:
    path = _META.child("finalizers")
    errors = [FieldError.invalid(path, name, text) for name in finalizers for text in names.is_qualified_name(name)]
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        errors.append(
            FieldError.invalid(
                path,
                list(finalizers),
                "finalizer orphan and foregroundDeletion cannot be both set",
            )
        )
    return errors


def validate_update(new: Json, old: Json) -> list[FieldError]:
    """What is wrong with a change of metadata."""
    meta, before = new["metadata"], old["metadata"]
    errors: list[FieldError] = []
    if before.get("deletionTimestamp"):
        added = sorted(set(meta.get("finalizers", ())) - set(before.get("finalizers", ())))
        if added:
            shown = ", ".join(quote(name) for name in added)
            errors.append(
                FieldError.forbidden(
                    _META.child("finalizers"),
                    "no new finalizers can be added if the object is being deleted, found new finalizers "
                    f"[]string{{{shown}}}",
                )
            )
    if meta.get("generation", 0) < before.get("generation", 0):
        errors.append(
            FieldError.invalid(_META.child("generation"), meta.get("generation", 0), "must not be decremented")
        )
    errors += [
        FieldError.invalid(_META.child(field), meta.get(field), "field is immutable")
        for field in _IMMUTABLE
        if meta.get(field) != before.get(field)
    ]
    errors += validate_common(meta)
    return errors
