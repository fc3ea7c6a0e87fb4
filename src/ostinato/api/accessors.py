"""Accessors: metadata of any object, typed or a JSON-compatible dict.

- Getters never fail: a field that is missing, or has the wrong type in a dict, is empty.
- Setters modify the object, and return whether it changed.
"""

from typing import Any

from ostinato.api.codec import ObjectError
from ostinato.api.gvk import GroupVersionKind, NamespacedName
from ostinato.api.object import Object, kind_of
from ostinato.api.time import Time, TimeError

AnyObject = Object | dict[str, Any]


def gvk(instance: AnyObject) -> GroupVersionKind:
    """Return the kind; missing parts of a dict are empty. Raises ValueError if `apiVersion` is malformed."""
    if isinstance(instance, Object):
        return kind_of(instance).gvk
    api_version, kind = instance.get("apiVersion"), instance.get("kind")
    return GroupVersionKind.of(
        api_version if isinstance(api_version, str) else "", kind if isinstance(kind, str) else ""
    )


def key(instance: AnyObject) -> NamespacedName:
    if isinstance(instance, Object):
        metadata = instance.metadata
        return NamespacedName(metadata.namespace, metadata.name)
    return NamespacedName(namespace(instance), name(instance))


def describe(instance: AnyObject) -> str:
    """Return kind and key for errors and logs: "Pod default/a"."""
    kind = kind_of(instance).gvk.kind if isinstance(instance, Object) else _typed(instance.get("kind"), str)
    return f"{kind or 'object'} {key(instance)}"


def name(instance: AnyObject) -> str:
    return instance.metadata.name if isinstance(instance, Object) else _text(instance, "name")


def namespace(instance: AnyObject) -> str:
    """ "" for cluster-scoped objects."""
    return instance.metadata.namespace if isinstance(instance, Object) else _text(instance, "namespace")


def uid(instance: AnyObject) -> str:
    return instance.metadata.uid if isinstance(instance, Object) else _text(instance, "uid")


def resource_version(instance: AnyObject) -> str:
    return instance.metadata.resource_version if isinstance(instance, Object) else _text(instance, "resourceVersion")


def generation(instance: AnyObject) -> int:
    if isinstance(instance, Object):
        return instance.metadata.generation
    return _typed(_metadata(instance).get("generation"), int) or 0


def labels(instance: AnyObject) -> dict[str, str]:
    """Return the labels, read-only; `set_label` changes them."""
    return instance.metadata.labels if isinstance(instance, Object) else _mapping(instance, "labels")


def annotations(instance: AnyObject) -> dict[str, str]:
    """Return the annotations, read-only; `set_annotation` changes them."""
    return instance.metadata.annotations if isinstance(instance, Object) else _mapping(instance, "annotations")


def set_label(instance: AnyObject, label: str, value: str | None) -> bool:
    """Set a label, or remove it (None)."""
    return _set_entry(instance, "labels", label, value)


def set_annotation(instance: AnyObject, annotation: str, value: str | None) -> bool:
    """Set an annotation, or remove it (None)."""
    return _set_entry(instance, "annotations", annotation, value)


def creation_timestamp(instance: AnyObject) -> Time | None:
    if isinstance(instance, Object):
        return instance.metadata.creation_timestamp
    return _time(instance, "creationTimestamp")


def deletion_timestamp(instance: AnyObject) -> Time | None:
    """Return the deletionTimestamp; None if the object is not being deleted."""
    if isinstance(instance, Object):
        return instance.metadata.deletion_timestamp
    return _time(instance, "deletionTimestamp")


def is_being_deleted(instance: AnyObject) -> bool:
    """Whether the object has a deletionTimestamp; it exists until its finalizers are removed."""
    if isinstance(instance, Object):
        return instance.metadata.deletion_timestamp is not None
    return bool(_text(instance, "deletionTimestamp"))


def finalizers(instance: AnyObject) -> tuple[str, ...]:
    if isinstance(instance, Object):
        return tuple(instance.metadata.finalizers)
    found = _typed(_metadata(instance).get("finalizers"), list) or []
    return tuple(each for each in found if isinstance(each, str))


def has_finalizer(instance: AnyObject, finalizer: str) -> bool:
    return finalizer in finalizers(instance)


def add_finalizer(instance: AnyObject, finalizer: str) -> bool:
    """Append a finalizer, unless the object has it."""
    if has_finalizer(instance, finalizer):
        return False
    _set_finalizers(instance, [*finalizers(instance), finalizer])
    return True


def remove_finalizer(instance: AnyObject, finalizer: str) -> bool:
    """Remove all occurrences of a finalizer."""
    if not has_finalizer(instance, finalizer):
        return False
    _set_finalizers(instance, [each for each in finalizers(instance) if each != finalizer])
    return True


def writable_metadata(instance: dict[str, Any]) -> dict[str, Any]:
    """Return the metadata of a dict; it is created if absent."""
    metadata = instance.get("metadata")
    if metadata is None:
        metadata = instance["metadata"] = {}
    if not isinstance(metadata, dict):
        raise ObjectError(f"metadata: expected dict, got {type(metadata).__name__}")
    return metadata


def _set_finalizers(instance: AnyObject, wanted: list[str]) -> None:
    if isinstance(instance, Object):
        instance.metadata.finalizers = wanted
    elif wanted:
        writable_metadata(instance)["finalizers"] = wanted
    else:
        writable_metadata(instance).pop("finalizers", None)


def _set_entry(instance: AnyObject, field: str, entry: str, value: str | None) -> bool:
    entries = getattr(instance.metadata, field) if isinstance(instance, Object) else _mapping(instance, field)
    if entries.get(entry) == value:
        return False
    if value is None:
        del entries[entry]
    else:
        entries[entry] = value
    if isinstance(instance, dict):
        writable_metadata(instance)[field] = entries
    return True


def _metadata(instance: dict[str, Any]) -> dict[str, Any]:
    return _typed(instance.get("metadata"), dict) or {}


def _text(instance: dict[str, Any], field: str) -> str:
    metadata = instance.get("metadata")  # not by `_metadata`: each write and event comes here
    found = metadata.get(field) if isinstance(metadata, dict) else None
    return found if isinstance(found, str) else ""


def _mapping(instance: dict[str, Any], field: str) -> dict[str, str]:
    found = _typed(_metadata(instance).get(field), dict)
    return {} if found is None else found


def _time(instance: dict[str, Any], field: str) -> Time | None:
    try:
        return Time.parse(_text(instance, field))
    except TimeError:
        return None


def _typed(value: Any, kind: type[Any]) -> Any:
    return value if isinstance(value, kind) else None
