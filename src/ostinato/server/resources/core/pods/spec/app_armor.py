"""AppArmor profiles in annotations, the predecessor of the field.

On creation of a Pod, the annotation sets a field that is absent, with a warning. If both are present, they must match.
"""

from __future__ import annotations

from typing import Final

from ostinato.api.text.go_format import quote
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.resources.core.pods.spec.security import validate_app_armor
from ostinato.server.resources.strategy import Json

PREFIX: Final = "container.apparmor.security.beta.kubernetes.io/"
_LOCAL: Final = "localhost/"
_TYPES: Final = {"unconfined": "Unconfined", "runtime/default": "RuntimeDefault"}
_CONTAINERS: Final = ("initContainers", "containers", "ephemeralContainers")
_TYPE_DIFFERS: Final = "apparmor type in annotation and field must match"
_PROFILE_DIFFERS: Final = "apparmor profile in annotation and field must match"


def app_armor_from_annotations(metadata: Json, spec: Json) -> list[str]:
    """Set the fields from the annotations of a new Pod; return warnings."""
    annotations = metadata.get("annotations") or {}
    if (spec.get("os") or {}).get("name") == "windows" or not any(key.startswith(PREFIX) for key in annotations):
        return []
    of_pod = (spec.get("securityContext") or {}).get("appArmorProfile")
    warnings = []
    for container in (container for field in _CONTAINERS for container in spec.get(field) or ()):
        key, context = PREFIX + container.get("name", ""), container.get("securityContext") or {}
        if key not in annotations or "appArmorProfile" in context:
            continue
        profile = _profile(annotations[key])
        if profile is not None and validate_app_armor(profile, Path()):
            profile = None
        if profile is not None and profile == of_pod:
            continue
        if profile is not None:
            container["securityContext"] = {**context, "appArmorProfile": profile}
        warnings.append(_deprecated(Path("metadata", "annotations").key(key)))
    return warnings


def app_armor_warnings(metadata: Json, spec: Json, template: Path) -> list[str]:
    """Warnings for a Pod template, whose annotations are not converted."""
    annotations = metadata.get("annotations") or {}
    of_pod = (spec.get("securityContext") or {}).get("appArmorProfile")
    return [
        _deprecated(template.child("metadata", "annotations").key(key))
        for field in _CONTAINERS
        for container in spec.get(field) or ()
        if (key := PREFIX + container.get("name", "")) in annotations
        and "appArmorProfile" not in (container.get("securityContext") or {})
        and (of_pod is None or of_pod != _profile(annotations[key]))
    ]


def validate_app_armor_annotations(annotations: dict[str, str], spec: Json, path: Path) -> list[FieldError]:
    errors = []
    for key, value in annotations.items():
        if not key.startswith(PREFIX):
            continue
        name = key.removeprefix(PREFIX)
        if not any(container.get("name") == name for field in _CONTAINERS for container in spec.get(field) or ()):
            errors.append(FieldError.invalid(path.key(key), name, "container not found"))
        if value and value not in _TYPES and not value.startswith(_LOCAL):
            errors.append(FieldError.invalid(path.key(key), value, f"invalid AppArmor profile name: {quote(value)}"))
    return errors


def validate_app_armor_matches(metadata: Json, spec: Json, path: Path) -> list[FieldError]:
    """Validate that annotations and fields of a new Pod or template match."""
    annotations = metadata.get("annotations") or {}
    if (spec.get("os") or {}).get("name") == "windows" or not any(key.startswith(PREFIX) for key in annotations):
        return []
    of_pod = (spec.get("securityContext") or {}).get("appArmorProfile")
    errors = []
    for field in _CONTAINERS:
        for i, container in enumerate(spec.get(field) or ()):
            profile = (container.get("securityContext") or {}).get("appArmorProfile", of_pod)
            profile_annotation = annotations.get(PREFIX + container.get("name", ""))
            if profile is None or profile_annotation is None:
                continue
            at, kind = path.child(field).index(i).child("securityContext", "appArmorProfile"), profile.get("type")
            local = profile_annotation.startswith(_LOCAL)
            if (
                kind in (*_TYPES.values(), "Localhost")
                and _TYPES.get(profile_annotation, "Localhost" if local else "") != kind
            ):
                errors.append(FieldError.forbidden(at.child("type"), _TYPE_DIFFERS))
            elif kind == "Localhost" and profile_annotation.removeprefix(_LOCAL) != profile.get("localhostProfile"):
                errors.append(FieldError.forbidden(at.child("localhostProfile"), _PROFILE_DIFFERS))
    return errors


def _profile(annotation: str) -> Json | None:
    if annotation in _TYPES:
        return {"type": _TYPES[annotation]}
    name = annotation.removeprefix(_LOCAL)
    return {"type": "Localhost", "localhostProfile": name} if name and name != annotation else None


def _deprecated(path: Path) -> str:
    return f'{path}: deprecated since v1.30; use the "appArmorProfile" field instead'
