"""Rules that the strategies of Pods and of their subresources share."""

from __future__ import annotations

from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.resources.core.pods.spec.containers import validate_image_text
from ostinato.server.resources.core.pods.spec.validation import validate_pod_annotations, validate_pod_spec
from ostinato.server.resources.core.pods.update import validate_annotation_change
from ostinato.server.resources.strategy import Json

_SPEC = Path("spec")
_MIRROR = "kubernetes.io/config.mirror"
_METADATA = ("labels", "annotations", "finalizers", "ownerReferences", "deletionTimestamp")


def restore_field(field: str, to: Json, old: Json) -> None:
    """Restore a field from the old object; remove it if the old object lacks it."""
    to.pop(field, None)
    if field in old:
        to[field] = old[field]


def validate_pod(pod: Json) -> list[FieldError]:
    """Validate a Pod, new or old."""
    spec, metadata = pod["spec"], pod["metadata"]
    path = Path("metadata", "annotations")
    annotations = metadata.get("annotations", {})
    errors = validate_pod_annotations(annotations, spec, path)
    errors += validate_pod_spec(spec, metadata.get("name", ""), _SPEC, mirror=_MIRROR in annotations)
    if not spec.get("serviceAccountName"):
        errors += [
            FieldError.forbidden(
                _SPEC.child("volumes")
                .index(i)
                .child("projected")
                .child("sources")
                .index(j)
                .child("serviceAccountToken"),
                "must not be specified when serviceAccountName is not set",
            )
            for i, volume in enumerate(spec.get("volumes", ()))
            for j, source in enumerate(volume.get("projected", {}).get("sources") or ())
            if "serviceAccountToken" in source
        ]
    for kind in ("containers", "initContainers"):
        for i, container in enumerate(spec.get(kind) or ()):
            errors += validate_image_text(container, _SPEC.child(kind).index(i))
    return errors


def validate_pod_annotation_change(new: Json, old: Json) -> list[FieldError]:
    annotations, before = new["metadata"].get("annotations", {}), old["metadata"].get("annotations", {})
    if not annotations and not before:
        return []
    errors = validate_annotation_change(annotations, before)
    return errors + validate_pod_annotations(annotations, new["spec"], Path("metadata", "annotations"))


def validate_pod_change(new: Json, old: Json) -> list[FieldError]:
    return validate_pod(new) + validate_pod_annotation_change(new, old)


def keep_metadata(new: Json, old: Json) -> None:
    for field in _METADATA:
        restore_field(field, new["metadata"], old["metadata"])
