"""Patches: the forms in which a change is sent, and the change between an object as it was read and as it is now.

    await client.patch(Pod, key, MergePatch({"metadata": {"labels": {"tier": "front"}}}))
    await client.patch(Pod, key, JsonPatch([{"op": "remove", "path": "/metadata/labels/tier"}]))

    pod.metadata.labels["tier"] = "front"
    await client.patch(pod)                    # what has changed since it was read

The computed change is a strategic merge patch for built-in kinds, so that lists such as `containers` are merged item by
item, and a merge patch for all others, which replaces lists as a whole. What is not changed is not sent: two writers
of different fields do not meet. Two writers of one list may; `optimistic_lock=True` makes the later one a `Conflict`.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from ostinato.api.access import AnyObject, describe, gvk, resource_version
from ostinato.api.codec import to_dict, to_json
from ostinato.api.object import Object, origin
from ostinato.api.overlay import overlay
from ostinato.api.patch import create_merge_patch, create_two_way_strategic
from ostinato.api.patch.values import same
from ostinato.api.schema import builtin_schemas
from ostinato.client.arguments import check_object
from ostinato.client.views import Json, PartialObjectMetadata

APPLY = "application/apply-patch+yaml"  # of which JSON is a part


class Patch(msgspec.Struct, frozen=True):
    """A change in one of the forms that servers know."""

    content: Any

    content_type: ClassVar[str]

    def body(self) -> bytes:
        return msgspec.json.encode(self.content)


class JsonPatch(Patch, frozen=True):
    """Operations, RFC 6902: a list of `{"op": …, "path": …, "value": …}`."""

    content_type = "application/json-patch+json"


class MergePatch(Patch, frozen=True):
    """The fields to change, RFC 7386; None removes one, lists are replaced."""

    content_type = "application/merge-patch+json"


class StrategicMergePatch(Patch, frozen=True):
    """As `MergePatch`, but lists are merged as their kind says. Built-in kinds only."""

    content_type = "application/strategic-merge-patch+json"


def document(instance: AnyObject) -> Json:
    """What an update sends: the typed fields, laid over what was read, so that unknown ones survive."""
    if isinstance(instance, dict):
        return instance
    before = _origin(instance)
    return to_dict(instance) if before is None else overlay(before, instance)


def encoded(instance: AnyObject) -> bytes:
    """The document of an object, as bytes."""
    if isinstance(instance, Object) and origin(instance) is None:
        return to_json(instance)
    return msgspec.json.encode(document(instance))


def difference(instance: AnyObject, original: AnyObject | None = None, *, optimistic_lock: bool = False) -> Patch:
    """The change from what was read, or from `original`, to the object as it is; its content is {} if there is none.

    A ValueError if it is not known what was read: a dict does not remember, nor does an object that was made here.
    """
    before = _original(instance, original)
    modified = _without_type(document(instance))
    schema = builtin_schemas().of(gvk(instance))
    content: Json = {}
    if not same(before, modified):
        merged = schema is None
        content = create_merge_patch(before, modified) if merged else create_two_way_strategic(before, modified, schema)
    if content and optimistic_lock:
        version = resource_version(instance)
        if not version:
            raise ValueError(f"{describe(instance)}: an optimistic lock needs a resourceVersion")
        content = {**content, "metadata": {**(content.get("metadata") or {}), "resourceVersion": version}}
    return MergePatch(content) if schema is None else StrategicMergePatch(content)


def check_whole(instance: AnyObject, verb: str) -> None:
    """Refuse to write what is no object, and one of which only the metadata is here."""
    check_object(instance, verb)
    if isinstance(instance, PartialObjectMetadata):
        raise TypeError(
            f"{describe(instance)}: only its metadata was read, to {verb} it would erase the rest; patch it"
        )


def check_applicable(instance: AnyObject) -> None:
    """Refuse to apply what was read: it would claim every field, those of other managers too."""
    check_whole(instance, "apply")
    read = origin(instance) is not None if isinstance(instance, Object) else _managed_fields(instance)
    if read:
        raise ValueError(
            f"{describe(instance)}: it was read from the server, and to apply it would claim all of its fields; "
            "make an object with just those that you mean, or use update or patch"
        )


def _original(instance: AnyObject, original: AnyObject | None) -> Json:
    if original is not None:
        return _without_type(document(original))
    before = _origin(instance) if isinstance(instance, Object) else None
    if before is None:
        raise ValueError(
            f"{describe(instance)}: it is not known how it was read, so what has changed is not either; "
            "give original=, or a patch"
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
