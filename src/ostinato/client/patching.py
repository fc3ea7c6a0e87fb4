"""Patches: the patch types of the API, and the patch from an object as it was read to its current state.

    await client.patch(Pod, key, MergePatch({"metadata": {"labels": {"tier": "front"}}}))
    await client.patch(Pod, key, JsonPatch([{"op": "remove", "path": "/metadata/labels/tier"}]))

    pod.metadata.labels["tier"] = "front"
    await client.patch(pod)                    # the changes since it was read

The computed patch is a strategic merge patch for built-in kinds, which merges lists such as `containers` by item, and a
merge patch for others, which replaces lists. Only changed fields are sent, so writers of different fields do not
conflict. Concurrent writers of one list may overwrite each other, unless they set `optimistic_lock=True`: the later one
then gets `Conflict`.
"""

from __future__ import annotations

import logging
from typing import Any, ClassVar

import msgspec

from ostinato.api.accessors import AnyObject, describe, gvk, resource_version
from ostinato.api.codec import to_dict, to_json
from ostinato.api.equality import identical
from ostinato.api.object import CustomResource, Object, origin
from ostinato.api.patch import create_merge_patch, create_two_way_strategic
from ostinato.api.schema import builtin_schemas
from ostinato.api.serializer.overlay import overlay
from ostinato.client.arguments import check_object
from ostinato.client.views import Json, PartialObjectMetadata

APPLY = "application/apply-patch+yaml"  # JSON is valid YAML
_logger = logging.getLogger("ostinato.client")


class Patch(msgspec.Struct, frozen=True):
    """A patch with its media type."""

    content: Any

    content_type: ClassVar[str]

    def body(self) -> bytes:
        return msgspec.json.encode(self.content)


class JsonPatch(Patch, frozen=True):
    """JSON Patch, RFC 6902: a list of `{"op": …, "path": …, "value": …}`."""

    content_type = "application/json-patch+json"


class MergePatch(Patch, frozen=True):
    """JSON Merge Patch, RFC 7386: the fields to change; None removes a field, lists are replaced."""

    content_type = "application/merge-patch+json"


class StrategicMergePatch(Patch, frozen=True):
    """Merge patch that merges lists by the schema of the kind. Built-in kinds only."""

    content_type = "application/strategic-merge-patch+json"


def document(instance: AnyObject) -> Json:
    """Return the body of an update: the typed fields over the object as read, so that unknown fields are kept."""
    if isinstance(instance, dict):
        return instance
    before = _origin(instance)
    return to_dict(instance) if before is None else overlay(before, instance)


def encoded(instance: AnyObject) -> bytes:
    """Encode the body of an update."""
    if isinstance(instance, Object) and origin(instance) is None:
        return to_json(instance)
    return msgspec.json.encode(document(instance))


def difference(instance: AnyObject, original: AnyObject | None = None, *, optimistic_lock: bool = False) -> Patch:
    """Return the patch from the object as read, or from `original`, to its current state; its content is {} if equal.

    Raises ValueError if the original is unknown: for dicts, and for objects that were not read from a server.
    """
    before = _original(instance, original)
    modified = _without_type(document(instance))
    schema = builtin_schemas().of(gvk(instance))
    content: Json = {}
    if not identical(before, modified):
        merged = schema is None
        content = create_merge_patch(before, modified) if merged else create_two_way_strategic(before, modified, schema)
    if content and optimistic_lock:
        version = resource_version(instance)
        if not version:
            raise ValueError(f"{describe(instance)}: optimistic_lock requires a resourceVersion; read the object first")
        content = {**content, "metadata": {**(content.get("metadata") or {}), "resourceVersion": version}}
    return MergePatch(content) if schema is None else StrategicMergePatch(content)


def check_whole(instance: AnyObject, verb: str) -> None:
    """Raise TypeError for anything but an object, and for an object of which only the metadata was read."""
    check_object(instance, verb)
    if isinstance(instance, PartialObjectMetadata):
        raise TypeError(f"{describe(instance)}: {verb}() of an object of which only the metadata was read; use patch()")


def check_applicable(instance: AnyObject) -> None:
    """Raise ValueError for an object that was read: applying it would take ownership of every field."""
    check_whole(instance, "apply")
    read = origin(instance) is not None if isinstance(instance, Object) else _managed_fields(instance)
    if read:
        raise ValueError(
            f"{describe(instance)}: apply() of an object that was read from the server would take ownership of all of "
            "its fields; construct an object with the fields to set, or use update() or patch()"
        )


def report_ignored_status(sent: AnyObject, written: AnyObject) -> None:
    """Log a changed status of a custom resource that an update did not write: it is a subresource."""
    if not isinstance(sent, CustomResource) or getattr(sent, "status", None) is None:
        return
    if sent.status != getattr(written, "status", None):  # type: ignore[attr-defined]
        _logger.warning(
            "update() did not write the status; use ctx.status(...), or update(..., subresource='status') object=%r",
            describe(sent),
        )


def _original(instance: AnyObject, original: AnyObject | None) -> Json:
    if original is not None:
        return _without_type(document(original))
    before = _origin(instance) if isinstance(instance, Object) else None
    if before is None:
        raise ValueError(
            f"{describe(instance)}: patch() of an object that was not read from the server: its changes are unknown; "
            "pass original=, or a patch"
        )
    return _without_type(before)


def _origin(instance: Object) -> Json | None:
    data = origin(instance)
    return None if data is None else msgspec.json.decode(data)


def _without_type(value: Json) -> Json:
    return {name: field for name, field in value.items() if name not in ("apiVersion", "kind")}


def _managed_fields(instance: Json) -> Any:
    metadata = instance.get("metadata")
    return metadata.get("managedFields") if isinstance(metadata, dict) else None
