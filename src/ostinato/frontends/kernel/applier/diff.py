"""Differences of an object, as text for users: unified, in YAML, without values of Secrets."""

from __future__ import annotations

from difflib import unified_diff
from typing import Any, Final

from ostinato.api.wire.yaml_output import encode_yaml
from ostinato.frontends.kernel.applier.refs import ObjectRef

Json = dict[str, Any]

_REDACTED: Final = "(redacted)"
_CHANGED: Final = "(redacted, changed)"
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_SYSTEM: Final = ("managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink")


def essence(instance: Json | None) -> Json | None:
    """Return a copy without the status and what the server sets in the metadata."""
    if instance is None:
        return None
    kept = {name: value for name, value in instance.items() if name not in ("status", "metadata")}
    metadata = instance.get("metadata") or {}
    kept["metadata"] = {name: value for name, value in metadata.items() if name not in _SYSTEM}
    return kept


def same(one: Json, other: Json) -> bool:
    """Return whether two states of an object differ in what the server sets only."""
    return essence(one) == essence(other)


def diff_text(ref: ObjectRef, before: Json | None, after: Json | None) -> str:
    """Return the unified diff of two states of an object; None is a state in which it does not exist."""
    old_name = str(ref) if before is not None else "/dev/null"
    new_name = str(ref) if after is not None else "/dev/null"
    old, new = _lines(masked(before, None)), _lines(masked(after, before))
    return "".join(unified_diff(old, new, old_name, new_name))


def _lines(instance: Json | None) -> list[str]:
    return encode_yaml(essence(instance)).decode().splitlines(keepends=True) if instance is not None else []


def masked(instance: Json | None, before: Json | None) -> Json | None:
    """Return a Secret without its values, in a way that shows which ones changed; other objects as they are."""
    if instance is None or instance.get("kind") != "Secret" or instance.get("apiVersion") != "v1":
        return instance
    shown, old = dict(instance), before or {}
    for field in ("data", "stringData"):
        if isinstance(values := shown.get(field), dict):
            shown[field] = _shown(values, old.get(field))
    metadata = shown.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    if isinstance(metadata, dict) and isinstance(annotations, dict) and _LAST_APPLIED in annotations:
        shown["metadata"] = {**metadata, "annotations": {**annotations, _LAST_APPLIED: _REDACTED}}
    return shown


def _shown(values: Json, old: Any) -> Json:
    known = old if isinstance(old, dict) else values
    return {name: _REDACTED if known.get(name) == value else _CHANGED for name, value in values.items()}
