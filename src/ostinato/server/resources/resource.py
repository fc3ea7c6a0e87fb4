"""Resource: a kind as the server serves it in one version."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from ostinato.api.apply import FieldManager
from ostinato.api.gvk import GroupVersionKind, GroupVersionResource
from ostinato.api.schema import Schema
from ostinato.server.resources.repeated_bodies import RepeatedBodies
from ostinato.server.resources.scaling import ScaleFields
from ostinato.server.resources.strategy import Json, Strategy
from ostinato.server.store.collection import Collection

if TYPE_CHECKING:
    from ostinato.server.resources.core.pods.status_shapes import StatusShapes
    from ostinato.server.resources.custom.conversion import Conversion

_TYPE = frozenset({"kind", "apiVersion"})
_decode = msgspec.json.Decoder().decode


class Subresource(msgspec.Struct, frozen=True):
    name: str
    verbs: tuple[str, ...]
    kind: GroupVersionKind


class Resource:
    """What is served under /apis/GROUP/VERSION/RESOURCE."""

    terminating = False  # whether its CustomResourceDefinition is being deleted; then no object can be created

    def __init__(
        self,
        *,
        gvr: GroupVersionResource,
        gvk: GroupVersionKind,
        namespaced: bool,
        verbs: tuple[str, ...],
        strategy: Strategy | Callable[[], Strategy],
        schema: Schema | None,
        collection: Collection | None,
        subresources: Mapping[str, Subresource] | None = None,
        custom: bool = False,
    ) -> None:
        self.gvr = gvr
        self.gvk = gvk
        self.named = {"kind": gvk.kind, "apiVersion": gvk.api_version}  # type metadata of its objects
        self.group_resource = gvr.group_resource
        self.namespaced = namespaced
        self.verbs = verbs
        self._strategy = strategy  # or a factory, called on first use
        self.schema = schema
        self.collection = collection
        self.subresources: Mapping[str, Subresource] = subresources or {}
        self.custom = custom  # defined by a CustomResourceDefinition
        self.conversion: Conversion | None = None  # webhook conversion of objects stored in other versions
        self.singular = gvk.kind.lower()
        self.short_names: tuple[str, ...] = ()
        self.categories: tuple[str, ...] = ()
        self.described = True  # published in OpenAPI
        self.openapi: Mapping[str, Any] | None = None  # schema of a CustomResourceDefinition; None for built-in kinds
        self.storage_gvk = gvk  # the version in which objects are stored
        self.from_storage: Callable[[Json], Json] | None = None  # None: the versions differ in kind and apiVersion only
        self.to_storage: Callable[[Json], Json] | None = None
        self.read: Callable[[Json], tuple[Json, list[str]]] = lambda body: (body, [])
        # A faster `read` for objects derived from a stored one; None if there is none.
        self.read_update: Callable[[Json, Json], tuple[Json, list[str]]] | None = None
        self.read_status_update: Callable[[Json, Json], tuple[Json, list[str]]] | None = None  # of the status alone
        self.columns: list[dict[str, Any]] = []  # columns of its Table
        self.row: Callable[[Json], list[Any]] | None = None  # the cells of a Table row
        self.row_conditions: Callable[[Json], list[Json]] | None = None  # conditions of a Table row
        self.row_order: Callable[[Json], Any] | None = None  # sort key of Table rows; None: list order
        self.scale: ScaleFields | None = None  # None without a scale subresource
        self.verb_cache: dict[tuple[Any, ...], Callable[[Any], Awaitable[Any]]] = {}  # cache of the dispatcher
        self.repeated_bodies = RepeatedBodies()  # of creates
        self.status_shapes: StatusShapes | None = None  # of writes that the admission of this server let pass
        self.list_kind = gvk.kind + "List"
        self.warnings: tuple[str, ...] = ()  # warnings of every response, such as a deprecation
        head = msgspec.json.encode(self.named)
        self._head = head[:-1] + b","

    @cached_property
    def strategy(self) -> Strategy:
        """The strategy of its kind."""
        return self._strategy if isinstance(self._strategy, Strategy) else self._strategy()

    @cached_property
    def managers(self) -> dict[str, FieldManager]:
        """Field managers by subresource, "" for the object itself."""
        return {}

    @cached_property
    def selectable(self) -> tuple[str, ...]:
        """The fields that field selectors support, besides name and namespace."""
        return ()

    def wrap(self, data: bytes) -> bytes:
        """Encode stored data as an object of this resource, with kind and apiVersion first."""
        if self.from_storage is not None:
            data = msgspec.json.encode(self.from_storage(msgspec.json.decode(data)))
        return self._head + data[1:]

    def wrapped(self, data: bytes) -> tuple[bytes | memoryview, ...]:
        """Like `wrap`, in parts: without a copy of the data where that is possible."""
        if self.from_storage is not None:
            return (self.wrap(data),)
        return self._head, memoryview(data)[1:]

    @property
    def items_as_stored(self) -> bool:
        """Whether `item` returns its argument unchanged."""
        return not self.custom and self.from_storage is None

    def item(self, data: bytes) -> bytes:
        """Encode stored data as an item of a list; only items of custom resources have kind and apiVersion."""
        if self.custom:
            return self._head + data[1:]
        if self.from_storage is not None:
            return msgspec.json.encode(self.from_storage(msgspec.json.decode(data)))
        return data

    def object(self, data: bytes) -> Json:
        """Decode stored data to this resource's version, with kind and apiVersion first."""
        stored: Json = _decode(data)
        if self.from_storage is not None:
            stored = self.from_storage(stored)
        return {**self.named, **stored}

    def stored(self, obj: Json) -> Json:
        """Convert an object to its stored form: the storage version, without kind and apiVersion."""
        if self.to_storage is not None:
            obj = self.to_storage(obj)
        return {key: value for key, value in obj.items() if key not in _TYPE}

    def key(self, namespace: str, name: str) -> str:
        return f"{namespace}/{name}" if self.namespaced else name
