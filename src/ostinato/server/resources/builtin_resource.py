"""Built-in resources, from the discovery document and the strategies of their group.

Most servers use few of the built-in kinds. What a kind needs (strategy and validation, field managers, Table rows) is
loaded on its first use.
"""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any

import msgspec

from ostinato.api.apply import FieldManager
from ostinato.api.apply.managedfields.updater import Converter, UnknownVersionError
from ostinato.api.gvk import GroupVersionKind, GroupVersionResource
from ostinato.api.schema import Schema, builtin_schemas
from ostinato.server.resources import tables
from ostinato.server.resources.builtin import DEPRECATED, SHARED, SharedStorage, strategy_of
from ostinato.server.resources.core.pods.status_shapes import StatusShapes
from ostinato.server.resources.repeated_bodies import RepeatedBodies
from ostinato.server.resources.resource import Resource, Subresource
from ostinato.server.resources.scaling import ScaleFields, map_selector, struct_selector
from ostinato.server.resources.strategy import Json, Strategy
from ostinato.server.schema.decoding import builtin
from ostinato.server.store.index import Index
from ostinato.world import Clock, World

_POD = GroupVersionKind("", "v1", "Pod")


class BuiltinResource(Resource):
    def __init__(self, group: str, version: str, raw: dict[str, Any], columns: dict[str, Any]) -> None:
        """What all servers have in common; `served` returns the resource of one.

        `raw`: its entry of the discovery document. `columns`: the columns of all Tables, by path.
        """
        name, kind = raw["resource"], raw["responseKind"]["kind"]
        gvk = GroupVersionKind(group, version, kind)
        super().__init__(
            gvr=GroupVersionResource(group, version, name),
            gvk=gvk,
            namespaced=raw["scope"] == "Namespaced",
            verbs=tuple(raw["verbs"]),
            strategy=partial(strategy_of, group, version, name),
            schema=builtin_schemas().of(gvk),
            collection=None,
            subresources=_subresources(group, version, raw),
        )
        shared = SHARED.get((group, version, name))
        if shared:
            self.storage_gvk = shared.stored_as
            self.from_storage, self.to_storage = shared.from_storage, shared.to_storage
        self.singular = raw["singularResource"]
        self.short_names = tuple(raw.get("shortNames", ()))
        self.categories = tuple(raw.get("categories", ()))
        self.warnings = DEPRECATED.get((group, version, name), ())
        if self.schema is not None:
            self.read = partial(builtin.read, builtin.model_of(gvk))
            self.read_status_update = partial(builtin.read_status_update, builtin.model_of(gvk))
        if "scale" in self.subresources:
            by_map = (group, name) == ("", "replicationcontrollers")
            self.scale = ScaleFields(map_selector if by_map else struct_selector)
        self.columns = [{**column, "description": ""} for column in columns.get(f"{group}/{version}/{name}", ())]
        stored_in = self.storage_gvk.group
        self._collection_name = f"{name}.{stored_in}" if stored_in else name
        self._template = self
        self._made_of = dict(self.__dict__)  # without what is loaded later

    def served(self, index: Index, world: World) -> BuiltinResource:
        """Return the resource of a server: with a collection of its index, a strategy and a clock of its own."""
        made = BuiltinResource.__new__(BuiltinResource)
        made.__dict__ = self._made_of.copy()
        made.verb_cache = {}
        made.status_shapes = StatusShapes() if self.gvk == _POD else None
        made.repeated_bodies = RepeatedBodies()
        group, version, name = self.gvr.group, self.gvr.version, self.gvr.resource
        made._strategy = lambda: strategy_of(group, version, name).for_server(world)
        if "get" in self.verbs:
            made.collection = index.collection(
                self._collection_name,
                lambda data: _describe(made.strategy, data),
                lambda obj: _defaulted(made.strategy, obj),
            )
        if self.columns:
            made._tabulate(world.clock)
        return made

    @cached_property
    def selectable(self) -> tuple[str, ...]:
        return () if self.schema is None else self.strategy.selectable

    @cached_property
    def managers(self) -> dict[str, FieldManager]:
        return self._template._shared_managers

    @cached_property
    def _shared_managers(self) -> dict[str, FieldManager]:
        """Those of all servers: what they keep depends on the kind alone."""
        if self.schema is None:
            return {}
        schemas, convert = _versions(self.gvk)
        made: dict[str, FieldManager] = {}
        for sub in ("", *(sub.name for sub in self.subresources.values() if sub.kind == self.gvk)):
            allowed = self.strategy.applicable(sub) if "status" in self.subresources else None
            filters = None if allowed is None else dict.fromkeys(schemas, allowed)
            made[sub] = FieldManager(self.gvk, schemas, subresource=sub, allowed=filters, convert=convert)
        return made

    def _tabulate(self, clock: Clock) -> None:
        """Set the row function of the Table: it gets the stored object and the current time."""
        group, name, to_storage = self.gvr.group, self.gvr.resource, self.to_storage

        def row(obj: Json) -> list[Any]:
            return tables.cells_of(group, name)(obj if to_storage is None else to_storage(obj), clock.now())

        self.row = row
        if (group, name) == ("", "pods"):
            self.row_conditions = tables.pod_conditions
        elif (group, name) == ("flowcontrol.apiserver.k8s.io", "flowschemas"):
            self.row_order = tables.flow_schema_order


def _subresources(group: str, version: str, raw: dict[str, Any]) -> dict[str, Subresource]:
    found: dict[str, Subresource] = {}
    for sub in raw.get("subresources", ()):
        kind = sub["responseKind"]
        gvk = GroupVersionKind(kind["group"] or group, kind["version"] or version, kind["kind"])
        found[sub["subresource"]] = Subresource(sub["subresource"], tuple(sub["verbs"]), gvk)
    return found


def _versions(gvk: GroupVersionKind) -> tuple[dict[str, Schema | None], Converter | None]:
    """The schemas of all versions of a kind by apiVersion, and the conversion between them."""
    for (group, version, _), shared in SHARED.items():
        served = GroupVersionKind(group, version, shared.stored_as.kind)
        if gvk in (served, shared.stored_as):
            kinds = (served, shared.stored_as)
            return {kind.api_version: builtin_schemas().of(kind) for kind in kinds}, partial(_convert, shared, kinds)
    return {gvk.api_version: builtin_schemas().of(gvk)}, None


def _convert(shared: SharedStorage, kinds: tuple[GroupVersionKind, GroupVersionKind], obj: Json, to: str) -> Json:
    served, stored = (kind.api_version for kind in kinds)
    if (obj.get("apiVersion"), to) == (served, stored):
        return {**shared.to_storage(obj), "apiVersion": to}
    if (obj.get("apiVersion"), to) == (stored, served):
        return {**shared.from_storage(obj), "apiVersion": to}
    raise UnknownVersionError(to)


def _defaulted(strategy: Strategy, obj: Json) -> Json:
    strategy.default(obj)
    return obj


def _describe(strategy: Strategy, data: bytes) -> tuple[dict[str, str], dict[str, str], str]:
    """Read labels, selectable fields and uid from stored data."""
    obj = msgspec.json.decode(data)
    meta = obj["metadata"]
    return meta.get("labels") or {}, strategy.fields(obj), meta.get("uid", "")
