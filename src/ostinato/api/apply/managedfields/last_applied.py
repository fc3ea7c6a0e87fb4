"""The last-applied-configuration annotation of client-side `kubectl apply`.

It is used for the field manager "kubectl" only, so that objects can migrate to server-side apply and back: fields that
still have the value in the annotation do not conflict, and an existing annotation is updated.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from ostinato.api.apply.fieldpath.field_set import FieldSet, difference
from ostinato.api.apply.typed.compare import compare, fields_of
from ostinato.api.apply.typed.merge_rules import Rules
from ostinato.api.apply.typed.validate import TypedError, validate
from ostinato.api.text.go_format import json_text
from ostinato.api.validation.names import ANNOTATIONS_SIZE

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
KUBECTL: Final = "kubectl"


def unchanged_since_last_applied(live: dict[str, Any], api_version: str, rules: Rules) -> FieldSet | None:
    """Return the fields that still have the value in the annotation; None without a usable annotation."""
    text = _annotations(live).get(LAST_APPLIED)
    if not text or not isinstance(text, str):
        return None
    try:
        last = msgspec.json.decode(text)
        if not isinstance(last, dict) or not last.get("kind") or last.get("apiVersion") != api_version:
            return None
        validate(live, rules, duplicates=False)
        validate(last, rules, duplicates=False)
        fields = fields_of(last, rules)
        for changed in compare(last, live, rules):
            fields = difference(fields, changed)
    except (msgspec.DecodeError, TypedError, UnicodeEncodeError, RecursionError):
        return None
    return fields


def with_last_applied(applied: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    """Return the applied object with its annotation updated; unchanged if it has none."""
    annotations = _annotations(applied)
    if not annotations.get(LAST_APPLIED):
        return applied
    after = {name: value for name, value in annotations.items() if name != LAST_APPLIED}
    text = _configuration(config)
    size = sum(len(str(part).encode(errors="replace")) for name, value in after.items() for part in (name, value))
    if text is not None and size + len(LAST_APPLIED) + len(text.encode(errors="replace")) <= ANNOTATIONS_SIZE:
        after[LAST_APPLIED] = text
    return {**applied, "metadata": {**applied["metadata"], "annotations": after}}


def _configuration(config: dict[str, Any]) -> str | None:
    """Return the value of the annotation for a configuration; None if it is nested too deeply."""
    annotations = _annotations(config)
    if LAST_APPLIED in annotations:
        rest = {name: value for name, value in annotations.items() if name != LAST_APPLIED}
        config = {**config, "metadata": {**config["metadata"], "annotations": rest}}
    try:
        return json_text(config) + "\n"
    except RecursionError:
        return None


def _annotations(value: dict[str, Any]) -> dict[str, Any]:
    metadata = value.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    return annotations if isinstance(annotations, dict) else {}
