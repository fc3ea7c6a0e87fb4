"""The registry: every resource that the server serves, by group, version and name.

The built-in ones come from the discovery document and the table of strategies; custom ones come and go.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from importlib import resources
from typing import Any

import msgspec

from ostinato.api.apply import FieldManager
from ostinato.api.apply.ownership import Converter, UnknownVersionError
from ostinato.api.gvk import GroupVersionKind, GroupVersionResource
from ostinato.api.schema import Schema, builtin_schemas
from ostinato.server.resources import tables
from ostinato.server.resources.builtin import DEPRECATED, SHARED, Shared, strategy_of
from ostinato.server.resources.resource import Resource, Subresource
from ostinato.server.resources.scaling import ScaleFields, map_selector, struct_selector
from ostinato.server.resources.strategy import Json, Strategy
from ostinato.server.schema import builtin
from ostinato.server.store.index import Collection, Index
from ostinato.server.verbs import component_status
from ostinato.world import World


class Registry:
    def __init__(self, index: Index, world: World) -> None:
        self._index = index
        self._world = world
        self._resources: dict[tuple[str, str, str], Resource] = {}
        self.generation = 0  # counts changes, so that discovery documents can be kept until the next one
        self.discovery: dict[str, Any] = msgspec.json.decode(
            resources.files("ostinato.api").joinpath("data/discovery.json").read_bytes()
        )
        columns = msgspec.json.decode(resources.files("ostinato.server").joinpath("data/tables.json").read_bytes())
        for root in ("api", "apis"):
            for group in self.discovery[root]["items"]:
                for version in group["versions"]:
                    for raw in version["resources"]:
                        self.add(self._builtin(group["metadata"].get("name", ""), version["version"], raw, columns))

    def get(self, group: str, version: str, resource: str) -> Resource | None:
        return self._resources.get((group, version, resource))

    def has_version(self, group: str, version: str) -> bool:
        return any(key[0] == group and key[1] == version for key in self._resources)

    def has_group(self, group: str) -> bool:
        return any(key[0] == group for key in self._resources)

    def __iter__(self) -> Iterator[Resource]:
        return iter(list(self._resources.values()))

    def add(self, resource: Resource) -> None:
        gvr = resource.gvr
        self._resources[gvr.group, gvr.version, gvr.resource] = resource
        self.generation += 1

    def remove(self, gvr: GroupVersionResource) -> None:
        if self._resources.pop((gvr.group, gvr.version, gvr.resource), None) is not None:
            self.generation += 1

    def collection(self, name: str, strategy: Strategy) -> Collection:
        return self._index.collection(name, partial(describe, strategy))

    def _builtin(self, group: str, version: str, raw: dict[str, Any], columns: dict[str, Any]) -> Resource:
        name, kind = raw["resource"], raw["responseKind"]["kind"]
        gvk = GroupVersionKind(group, version, kind)
        strategy = strategy_of(group, version, name).for_server(self._world)
        schema = builtin_schemas().of(gvk)
        stored = "get" in raw["verbs"]
        shared = SHARED.get((group, version, name))
        storage_gvk = shared.stored_as if shared else gvk
        resource = Resource(
            gvr=GroupVersionResource(group, version, name),
            gvk=gvk,
            namespaced=raw["scope"] == "Namespaced",
            verbs=tuple(raw["verbs"]),
            strategy=strategy,
            schema=schema,
            collection=self.collection(f"{name}.{storage_gvk.group}" if storage_gvk.group else name, strategy)
            if stored
            else None,
            subresources={
                sub["subresource"]: Subresource(
                    sub["subresource"],
                    tuple(sub["verbs"]),
                    GroupVersionKind(
                        sub["responseKind"]["group"] or group,
                        sub["responseKind"]["version"] or version,
                        sub["responseKind"]["kind"],
                    ),
                )
                for sub in raw.get("subresources", ())
            },
        )
        resource.storage_gvk = storage_gvk
        if shared:
            resource.from_storage, resource.to_storage = shared.from_storage, shared.to_storage
        resource.singular = raw["singularResource"]
        resource.short_names = tuple(raw.get("shortNames", ()))
        resource.categories = tuple(raw.get("categories", ()))
        if schema is not None:
            model = builtin.model_of(gvk)
            resource.read = partial(builtin.read, model)
            resource.selectable = strategy.selectable
            schemas, convert = _versions(gvk)
            for sub in ("", *(sub.name for sub in resource.subresources.values() if sub.kind == gvk)):
                allowed = strategy.applicable(sub) if "status" in resource.subresources else None
                filters = None if allowed is None else dict.fromkeys(schemas, allowed)
                resource.managers[sub] = FieldManager(gvk, schemas, subresource=sub, allowed=filters, convert=convert)
        resource.warnings = DEPRECATED.get((group, version, name), ())
        if (group, name) == ("", "componentstatuses"):
            resource.handlers.update(component_status.HANDLERS)
        if "scale" in resource.subresources:
            by_map = (group, name) == ("", "replicationcontrollers")
            resource.scale = ScaleFields(map_selector if by_map else struct_selector)
        resource.columns = [{**column, "description": ""} for column in columns.get(f"{group}/{version}/{name}", ())]
        if resource.columns:
            self._tabulate(resource)
        return resource

    def _tabulate(self, resource: Resource) -> None:
        """Give a built-in resource its Table rows. They show the object as it is stored, at the present time."""
        key = resource.gvr.group, resource.gvr.resource
        cells, clock, to_storage = (
            tables.CELLS.get(key, tables.name_and_creation),
            self._world.clock,
            resource.to_storage,
        )
        if to_storage is None:
            resource.row = lambda obj: cells(obj, clock.now())
        else:
            resource.row = lambda obj: cells(to_storage(obj), clock.now())
        if key == ("", "pods"):
            resource.row_conditions = tables.pod_conditions
        elif key == ("flowcontrol.apiserver.k8s.io", "flowschemas"):
            resource.row_order = tables.flow_schema_order


def _versions(gvk: GroupVersionKind) -> tuple[dict[str, Schema | None], Converter | None]:
    """The schemas of every version of a kind, by apiVersion, and what goes between them."""
    for (group, version, _), shared in SHARED.items():
        served = GroupVersionKind(group, version, shared.stored_as.kind)
        if gvk in (served, shared.stored_as):
            kinds = (served, shared.stored_as)
            return {kind.api_version: builtin_schemas().of(kind) for kind in kinds}, partial(_convert, shared, kinds)
    return {gvk.api_version: builtin_schemas().of(gvk)}, None


def _convert(shared: Shared, kinds: tuple[GroupVersionKind, GroupVersionKind], obj: Json, to: str) -> Json:
    served, stored = (kind.api_version for kind in kinds)
    if (obj.get("apiVersion"), to) == (served, stored):
        return {**shared.to_storage(obj), "apiVersion": to}
    if (obj.get("apiVersion"), to) == (stored, served):
        return {**shared.from_storage(obj), "apiVersion": to}
    raise UnknownVersionError(to)


def describe(strategy: Strategy, data: bytes) -> tuple[dict[str, str], dict[str, str], str]:
    """What selectors ask of stored data."""
    obj = msgspec.json.decode(data)
    meta = obj["metadata"]
    return meta.get("labels") or {}, strategy.fields(obj), meta.get("uid", "")
