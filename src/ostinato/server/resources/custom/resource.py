"""Custom resource: one served version of a definition.

Data stored in a version with the same schema is served unchanged; other data is pruned to this version's schema.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial

import msgspec

from ostinato.api.apply import FieldManager, field_path, from_paths, without
from ostinato.api.apply.fieldpath.field_set import Filter
from ostinato.api.gvk import GroupVersionKind, GroupVersionResource, version_priority
from ostinato.server.resources.custom.apply_schema import apply_schema
from ostinato.server.resources.custom.columns import Columns
from ostinato.server.resources.custom.conversion import Conversion
from ostinato.server.resources.custom.definition import Definition, Version, shaped, whole_numbers
from ostinato.server.resources.custom.replicas import nested
from ostinato.server.resources.custom.strategy import CustomStrategy
from ostinato.server.resources.resource import Resource, Subresource
from ostinato.server.resources.scaling import ScaleFields
from ostinato.server.resources.strategy import Json
from ostinato.server.schema.structural.defaulting import apply_defaults
from ostinato.server.schema.structural.node import TYPE_FIELDS
from ostinato.server.schema.structural.pruning import read, read_update
from ostinato.server.store.collection import Collection
from ostinato.world import Clock

VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
_OF_SUBRESOURCES = ("get", "patch", "update")
_SCALE = GroupVersionKind("autoscaling", "v1", "Scale")
_decode = msgspec.json.Decoder().decode
_STATUS = without(from_paths(field_path("status")))
_ALL_BUT_STATUS = without(from_paths(field_path("metadata"), field_path("spec")))


class CustomResource(Resource):
    """One served version of a definition."""

    def __init__(
        self,
        definition: Definition,
        version: Version,
        collection: Collection,
        clock: Clock,
        conversion: Conversion | None = None,
    ) -> None:
        gvk = GroupVersionKind(definition.group, version.name, definition.names["kind"])
        super().__init__(
            gvr=GroupVersionResource(definition.group, version.name, definition.names["plural"]),
            gvk=gvk,
            namespaced=definition.namespaced,
            verbs=VERBS,
            strategy=CustomStrategy(definition, version),
            schema=None,
            collection=collection,
            subresources=_subresources(version, gvk),
            custom=True,
        )
        self.definition = definition
        self.version = version
        self.list_kind = definition.names["listKind"]
        self.singular = definition.names["singular"]
        self.short_names = tuple(definition.names.get("shortNames") or ())
        self.categories = tuple(definition.names.get("categories") or ())
        self.openapi = version.schema
        self.storage_gvk = GroupVersionKind(definition.group, definition.storage.name, gvk.kind)
        self.selectable = tuple(version.selectable)
        self.read = partial(read, version.node)
        if conversion is None:  # with webhook conversion, data may come from the webhook
            self.read_update = partial(read_update, version.node)
        columns = Columns(version.raw)
        self.columns = columns.definitions
        self.row = lambda obj: columns.row(obj, clock.now())
        self.warnings = _deprecation(definition, version)
        self.conversion = conversion
        versions = tuple(definition.versions)
        if conversion is None:
            self.managers = _shared_managers(versions, version, gvk)
        else:
            self.managers = _managers(versions, version, gvk, conversion.known)
        if version.scale is not None:
            self.scale = _scale_fields(definition, version.scale)
        self._of_one_schema = {other.api_version for other in definition.versions if other.schema == version.schema}
        # Prefixes of data that is served unchanged: its version has the same schema as this one.
        self._alike = tuple(
            map(_beginning, {version.api_version} if conversion is not None else sorted(self._of_one_schema))
        )

    @property
    def terminating(self) -> bool:  # type: ignore[override]
        return self.definition.terminating

    def wrap(self, data: bytes) -> bytes:
        for beginning in self._alike:
            if data.startswith(beginning):
                return self._head + data[len(beginning) :]
        return msgspec.json.encode(self.object(data))

    def item(self, data: bytes) -> bytes:
        return self.wrap(data)

    def object(self, data: bytes) -> Json:
        obj: Json = _decode(data)
        stored = obj.pop("apiVersion", None)
        whole = {**self.named, **obj}
        if stored is None or stored in self._of_one_schema:
            return whole
        if self.definition.version(stored).api_version in self._of_one_schema:
            return whole
        return shaped(self.version.node, whole)

    def stored(self, obj: Json) -> Json:
        storage = self.definition.storage
        api_version = storage.api_version
        if self.conversion is not None:
            api_version = obj["apiVersion"]  # converted by the webhook already
        elif storage.schema != self.version.schema:
            obj = shaped(storage.node, obj)
            apply_defaults(storage.node, obj)
        stored = {"apiVersion": api_version, "metadata": obj["metadata"]}
        for name, value in obj.items():
            if name not in TYPE_FIELDS:
                stored[name] = whole_numbers(value)
        return stored


def _deprecation(definition: Definition, version: Version) -> tuple[str, ...]:
    """The deprecation warning of a version: its own, or one that names the replacement."""
    if not version.raw.get("deprecated"):
        return ()
    own = version.raw.get("deprecationWarning")
    if own is not None:
        return (own,)
    kind = definition.names["kind"]
    better = [
        other
        for other in definition.versions
        if other.served
        and not other.raw.get("deprecated")
        and version_priority(other.name) < version_priority(version.name)
    ]
    text = f"{version.api_version} {kind} is deprecated"
    if better:
        text += f"; use {min(better, key=lambda other: version_priority(other.name)).api_version} {kind}"
    return (text,)


def _beginning(api_version: str) -> bytes:
    return msgspec.json.encode({"apiVersion": api_version})[:-1] + b","


def _subresources(version: Version, gvk: GroupVersionKind) -> dict[str, Subresource]:
    found = {}
    if version.has_status:
        found["status"] = Subresource("status", _OF_SUBRESOURCES, gvk)
    if version.scale is not None:
        found["scale"] = Subresource("scale", _OF_SUBRESOURCES, _SCALE)
    return found


def _scale_fields(definition: Definition, scale: Mapping[str, str]) -> ScaleFields:
    selector = scale.get("labelSelectorPath")
    return ScaleFields(
        selector=lambda parent: str(nested(parent, selector)[0] or "") if selector else "",
        replicas=_steps(scale["specReplicasPath"]),
        current=_steps(scale["statusReplicasPath"]),
        owned={
            other.api_version: None if other.scale is None else _steps(other.scale["specReplicasPath"])
            for other in definition.versions
        },
    )


def _steps(path: str) -> tuple[str, ...]:
    return tuple(path.removeprefix(".").split("."))


def _renamed(value: Json, to: str) -> Json:
    return {**value, "apiVersion": to}


@lru_cache(maxsize=64)
def _shared_managers(versions: tuple[Version, ...], version: Version, gvk: GroupVersionKind) -> dict[str, FieldManager]:
    """Those of all servers with the same definition: what they keep depends on it alone."""
    return _managers(versions, version, gvk, _renamed)


def _managers(
    versions: tuple[Version, ...], version: Version, gvk: GroupVersionKind, convert: Callable[[Json, str], Json]
) -> dict[str, FieldManager]:
    schemas = {other.api_version: apply_schema(other.schema) for other in versions}
    own: dict[str, Filter] = {version.api_version: _STATUS} if version.has_status else {}
    make = partial(FieldManager, gvk, schemas, convert=convert, drops_unknown_versions=False)
    managers = {"": make(allowed=own)}
    if version.has_status:
        status = {other.api_version: _ALL_BUT_STATUS for other in versions if other.has_status}
        managers["status"] = make(subresource="status", allowed=status)
    return managers
