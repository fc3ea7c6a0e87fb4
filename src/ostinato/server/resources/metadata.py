"""Object metadata: validation that applies to every kind."""

from __future__ import annotations

from typing import Any

import msgspec

from ostinato.api.gvk import GroupResource
from ostinato.api.meta import OwnerReference
from ostinato.api.owners import validate_owner_references
from ostinato.api.text.short_cache import short_cache
from ostinato.api.validation import names
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.resources.resource import Resource
from ostinato.server.resources.strategy import Json, NameRule

_META = Path("metadata")
_NAMESPACE = _META.child("namespace")
_MANAGED_FIELDS = _META.child("managedFields")
_SHORT_MANAGER = names.FIELD_MANAGER_LENGTH // 4  # characters that are within the limit in any encoding
_IMMUTABLE = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")
_LONGEST_SUBRESOURCE = 256


_UPDATE, _CREATE, _BOTH = ("update",), ("create",), ("update", "create")
_CREATE_FIRST = ("create", "update")

# Kinds whose validation of metadata on update differs from the common one.
_AGAIN: dict[tuple[str, str], tuple[str, ...]] = {
    ("", "events"): (),
    ("", "limitranges"): _CREATE,
    ("", "namespaces"): _CREATE_FIRST,
    ("", "nodes"): _CREATE_FIRST,
    ("", "persistentvolumes"): ("create", "create"),
    ("", "podtemplates"): _UPDATE,
    ("", "replicationcontrollers"): _UPDATE,
    ("", "resourcequotas"): _UPDATE,
    ("", "services"): _UPDATE,
    ("admissionregistration.k8s.io", "mutatingadmissionpolicies"): _CREATE,
    ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings"): _CREATE,
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"): _CREATE,
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"): _CREATE,
    ("admissionregistration.k8s.io", "validatingadmissionpolicybindings"): _CREATE,
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"): _CREATE,
    ("apps", "daemonsets"): _UPDATE,
    ("apps", "deployments"): _UPDATE,
    ("apps", "replicasets"): _UPDATE,
    ("apps", "statefulsets"): _UPDATE,
    ("autoscaling", "horizontalpodautoscalers"): _UPDATE,
    ("batch", "cronjobs"): _UPDATE,
    ("batch", "jobs"): _CREATE_FIRST,
    ("certificates.k8s.io", "certificatesigningrequests"): _CREATE_FIRST,
    ("coordination.k8s.io", "leases"): _UPDATE,
    ("discovery.k8s.io", "endpointslices"): _CREATE,
    ("events.k8s.io", "events"): _UPDATE,
    ("flowcontrol.apiserver.k8s.io", "flowschemas"): _CREATE,
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"): _CREATE,
    ("networking.k8s.io", "ipaddresses"): _CREATE_FIRST,
    ("networking.k8s.io", "networkpolicies"): _UPDATE,
    ("networking.k8s.io", "servicecidrs"): _UPDATE,
    ("policy", "poddisruptionbudgets"): (),
    ("rbac.authorization.k8s.io", "clusterrolebindings"): _CREATE_FIRST,
    ("rbac.authorization.k8s.io", "clusterroles"): _CREATE_FIRST,
    ("rbac.authorization.k8s.io", "rolebindings"): _CREATE_FIRST,
    ("rbac.authorization.k8s.io", "roles"): _CREATE_FIRST,
    ("scheduling.k8s.io", "priorityclasses"): _UPDATE,
    ("storage.k8s.io", "csidrivers"): _UPDATE,
    ("storage.k8s.io", "csinodes"): _CREATE,
    ("storage.k8s.io", "csistoragecapacities"): _CREATE_FIRST,
    ("storage.k8s.io", "storageclasses"): _CREATE_FIRST,
    ("storage.k8s.io", "volumeattachments"): _CREATE,
}


# The same for updates through a subresource.
_AGAIN_THROUGH: dict[tuple[str, str, str], tuple[str, ...]] = {
    ("admissionregistration.k8s.io", "validatingadmissionpolicies", "status"): (),
    ("batch", "cronjobs", "status"): (),
    ("certificates.k8s.io", "certificatesigningrequests", "status"): _CREATE_FIRST,
    ("policy", "poddisruptionbudgets", "status"): (),
}


def validate(obj: Json, resource: Resource) -> list[FieldError]:
    """Validate the metadata of a new object."""
    meta = obj["metadata"]
    errors = _validate(meta, resource, resource.strategy.name_rule, _Parts(meta))
    return errors + _validate_finalizers_of_kind(meta, resource)


def validate_update(new: Json, old: Json, resource: Resource, subresource: str = "") -> list[FieldError]:
    """Validate a change of metadata, through a subresource ("" for the object itself).

    Errors are reported twice, as in kube-apiserver: by the common rules, then by those of the kind. Metadata that is
    unchanged except for managedFields was validated when it was stored.
    """
    meta, before = new["metadata"], old["metadata"]
    if _is_kept(meta, before):
        return []
    parts = _Parts(meta)
    as_new = _validate(meta, resource, names.name_is_path_segment, parts)
    change = _validate_change(meta, before, parts)
    of_kind = _validate_finalizers_of_kind(meta, resource)
    if not (as_new or change or of_kind or "generateName" in meta):
        return []
    kind = (resource.gvr.group, resource.gvr.resource)
    whole = not (resource.custom or subresource)
    again = _AGAIN.get(kind, _BOTH) if whole else _AGAIN_THROUGH.get((*kind, subresource), _UPDATE)
    of_rules = {
        "update": [*change, *of_kind],
        "create": [*_validate(meta, resource, resource.strategy.name_rule, parts), *of_kind],
    }
    return [*as_new, *change, *(error for each in again for error in of_rules[each])]


def _is_kept(meta: Json, before: Json) -> bool:
    """Whether metadata is unchanged except for valid managedFields."""
    if {**meta, "managedFields": None} != {**before, "managedFields": None}:
        return False
    return not _validate_managed_fields(meta.get("managedFields", ()))


class _Parts:
    """Errors of parts that several rules report: validated once, reported by each rule."""

    __slots__ = ("managed_fields", "maps")

    def __init__(self, meta: Json) -> None:
        self.maps = _validate_maps(meta)
        self.managed_fields = _validate_managed_fields(meta.get("managedFields", ()))


def _validate(meta: Json, resource: Resource, rule: NameRule, parts: _Parts) -> list[FieldError]:
    errors: list[FieldError] = []
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
    errors += _validate_namespace(meta.get("namespace", ""), namespaced=resource.namespaced)
    if meta.get("generation", 0) < 0:
        errors.append(
            FieldError.invalid(_META.child("generation"), meta["generation"], "must be greater than or equal to 0")
        )
    errors += parts.maps
    if "finalizers" in meta:
        errors += names.validate_finalizers(meta["finalizers"], _META.child("finalizers"))
    errors += parts.managed_fields
    return errors


def _validate_namespace(namespace: str, *, namespaced: bool) -> list[FieldError]:
    if not namespaced:
        return [FieldError.forbidden(_NAMESPACE, "not allowed on this type")] if namespace else []
    if not namespace:
        return [FieldError.required(_NAMESPACE)]
    if _is_namespace(namespace):
        return []
    return [FieldError.invalid(_NAMESPACE, namespace, text) for text in names.is_dns1123_label(namespace)]


@short_cache(1024)  # many objects share few namespaces
def _is_namespace(name: str) -> bool:
    return not names.is_dns1123_label(name)


def _validate_maps(meta: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    if "labels" in meta:
        errors += names.validate_labels(meta["labels"], _META.child("labels"))
    if "annotations" in meta:
        errors += names.validate_annotations(meta["annotations"], _META.child("annotations"))
    if "ownerReferences" in meta and not _are_usual_owners(meta["ownerReferences"]):
        errors += validate_owner_references(_owners(meta["ownerReferences"]), _META.child("ownerReferences"))
    return errors


def _are_usual_owners(references: list[Json]) -> bool:
    """Whether owner references are valid, as far as a fast check can tell."""
    controllers = 0
    for reference in references:
        if not (
            reference.get("name")
            and reference.get("uid")
            and _may_own(reference.get("apiVersion", ""), reference.get("kind", ""))
        ):
            return False
        controllers += bool(reference.get("controller"))
    return controllers <= 1


@short_cache(256)  # many owners share few kinds
def _may_own(api_version: str, kind: str) -> bool:
    return not validate_owner_references([OwnerReference(api_version=api_version, kind=kind, name="a", uid="a")], _META)


def _owners(references: list[Json]) -> list[OwnerReference]:
    return [msgspec.convert({**_NO_OWNER, **reference}, OwnerReference) for reference in references]


_NO_OWNER = {"apiVersion": "", "kind": "", "name": "", "uid": ""}


def _validate_finalizers_of_kind(meta: Json, resource: Resource) -> list[FieldError]:
    """Validate finalizers of built-in kinds, which are stricter than a qualified name, except in some groups."""
    finalizers = meta.get("finalizers")
    if (
        not finalizers
        or resource.custom
        or resource.gvr.group in _LENIENT_GROUPS
        or resource.group_resource in _LENIENT
    ):
        return []
    path = _META.child("finalizers")
    return [
        error for i, name in enumerate(finalizers) for error in names.validate_built_in_finalizer(name, path.index(i))
    ]


_LENIENT = frozenset(
    {
        GroupResource("", "events"),
        GroupResource("coordination.k8s.io", "leases"),
        GroupResource("events.k8s.io", "events"),
        GroupResource("node.k8s.io", "runtimeclasses"),
        GroupResource("policy", "poddisruptionbudgets"),
    }
)
_LENIENT_GROUPS = frozenset({"admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io"})


def _validate_managed_fields(entries: Any) -> list[FieldError]:
    errors: list[FieldError] = []
    for i, entry in enumerate(entries):
        operation, fields_type = entry.get("operation", ""), entry.get("fieldsType", "")
        manager, subresource = entry.get("manager", ""), entry.get("subresource", "")
        is_usual = (
            operation in ("Apply", "Update") and fields_type == "FieldsV1" and len(subresource) <= _LONGEST_SUBRESOURCE
        )
        if is_usual and len(manager) <= _SHORT_MANAGER and manager.isprintable():
            continue
        at = _MANAGED_FIELDS.index(i)
        if operation not in ("Apply", "Update"):
            errors.append(FieldError.invalid(at.child("operation"), operation, "must be `Apply` or `Update`"))
        if fields_type and fields_type != "FieldsV1":
            errors.append(FieldError.invalid(at.child("fieldsType"), fields_type, "must be `FieldsV1`"))
        if len(manager) > _SHORT_MANAGER or not manager.isprintable():
            errors += names.validate_field_manager(manager, at.child("manager"))
        if len(subresource) > _LONGEST_SUBRESOURCE:
            errors.append(FieldError.too_long(at.child("subresource"), _LONGEST_SUBRESOURCE))
    return errors


def _validate_change(meta: Json, before: Json, parts: _Parts) -> list[FieldError]:
    errors: list[FieldError] = []
    if before.get("deletionTimestamp"):
        errors += names.validate_no_new_finalizers(
            meta.get("finalizers", ()), before.get("finalizers", ()), _META.child("finalizers")
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
    errors += parts.maps
    errors += parts.managed_fields
    return errors
