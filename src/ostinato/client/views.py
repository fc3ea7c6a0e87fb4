"""Views: a kind together with the representation of its objects.

    await client.get(Pod, key)                                        # typed: a Pod
    await client.get(Unstructured.of("example.dev/v1", "Widget"), key)  # a dict, as in JSON
    await client.get(MetadataOf(Pod), key)                            # metadata only

A class includes its REST mapping. The other views can name a kind without a class, whose mapping is then looked up by
discovery.

An object read with `MetadataOf` can own other objects, and be patched and deleted. It cannot be updated or applied, as
that would erase the fields that were not read.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import cache, lru_cache
from typing import Any, Generic, TypeAlias, TypeVar, cast

import msgspec

from ostinato.api.codec import ObjectError, from_json, list_from_json, raw_list_from_json
from ostinato.api.gvk import GroupVersionKind
from ostinato.api.meta import ListMeta
from ostinato.api.object import KindInfo, Object, ObjectMetaclass, kind_of, set_origin
from ostinato.api.serializer.scalars import decode_scalar
from ostinato.api.wire import DecodeError, decode_json
from ostinato.client.arguments import not_a_kind

Json = dict[str, Any]
T = TypeVar("T")
O = TypeVar("O", bound=Object)  # noqa: E741

JSON = "application/json"
_PARTIAL = "application/json;as=PartialObjectMetadata{};g=meta.k8s.io;v=v1,application/json"


class PartialObjectMetadata(Object):
    """Metadata of an object of any kind. Each kind has a subclass, so that `kind_of` returns that kind."""


class View(Generic[T]):  # not an ABC: `isinstance` of an ABC is slow, and dominates cached reads
    """A kind, and the decoder of its objects."""

    accept = JSON  # for one object, and for events
    accept_list = JSON

    def __init__(self, gvk: GroupVersionKind, info: KindInfo | None = None) -> None:
        self.gvk = gvk
        self.info = info  # REST mapping; None if it requires discovery

    @abstractmethod
    def read(self, data: bytes, info: KindInfo) -> T:
        """Decode one object. Raises `ObjectError` if it is not of this kind."""

    @abstractmethod
    def read_list(self, data: bytes, info: KindInfo) -> tuple[ListMeta, list[T]]:
        """Decode one page of a list."""


Kind: TypeAlias = type[T] | View[T]


class Typed(View[O]):
    """View of a class; created by `view_of`."""

    def __init__(self, cls: type[O]) -> None:
        info = kind_of(cls)
        super().__init__(info.gvk, info)
        self.cls = cls

    def read(self, data: bytes, info: KindInfo) -> O:  # noqa: ARG002 - known from the class
        return from_json(self.cls, data)

    def read_list(self, data: bytes, info: KindInfo) -> tuple[ListMeta, list[O]]:  # noqa: ARG002
        decoded = list_from_json(self.cls, data)
        return decoded.metadata, decoded.items


class Unstructured(View[Json]):
    """Objects as dicts, as in JSON, each with its `apiVersion` and `kind`."""

    @classmethod
    def of(cls, api_version: str, kind: str) -> Unstructured:
        return cls(GroupVersionKind.of(api_version, kind))

    def read(self, data: bytes, info: KindInfo) -> Json:
        try:
            value = decode_json(data)
        except DecodeError as error:
            raise ObjectError(f"{self.gvk.kind}: {error}") from None
        if not isinstance(value, dict):
            raise ObjectError(f"{self.gvk.kind}: expected an object, got {type(value).__name__}")
        if "kind" in value and "apiVersion" in value:
            return value
        return {"apiVersion": info.gvk.api_version, "kind": info.gvk.kind, **value}

    def read_list(self, data: bytes, info: KindInfo) -> tuple[ListMeta, list[Json]]:
        decoded = raw_list_from_json(data)
        return decoded.metadata, [self.read(bytes(item), info) for item in decoded.items]


class MetadataOf(View[PartialObjectMetadata]):
    """Metadata only (PartialObjectMetadata): the server does not send the rest."""

    accept = _PARTIAL.format("")
    accept_list = _PARTIAL.format("List")

    def __init__(self, kind: type[Object] | View[Any] | GroupVersionKind) -> None:
        view = view_of(kind)
        super().__init__(view.gvk, view.info)

    def read(self, data: bytes, info: KindInfo) -> PartialObjectMetadata:
        try:
            return set_origin(_metadata_decoder(info).decode(data), data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise ObjectError(f"metadata of {info.gvk.kind}: {error}") from None

    def read_list(self, data: bytes, info: KindInfo) -> tuple[ListMeta, list[PartialObjectMetadata]]:
        decoded = raw_list_from_json(data)
        return decoded.metadata, [self.read(bytes(item), info) for item in decoded.items]


def view_of(kind: type[T] | View[T] | GroupVersionKind) -> View[T]:
    """Return the view of a class, a view or a GroupVersionKind, which is `Unstructured`."""
    if isinstance(kind, View):
        return kind
    if isinstance(kind, type) and issubclass(kind, Object):
        return cast("View[T]", _typed(kind))
    if isinstance(kind, GroupVersionKind):
        return cast("View[T]", Unstructured(kind))
    raise not_a_kind(kind)


@cache
def _typed(cls: type[O]) -> Typed[O]:
    return Typed(cls)


@lru_cache(maxsize=1024)
def _metadata_decoder(info: KindInfo) -> msgspec.json.Decoder[PartialObjectMetadata]:
    # apiVersion and kind cannot be checked: in the response they are those of PartialObjectMetadata.
    name = f"{info.gvk.kind}Metadata"
    cls = ObjectMetaclass(name, (PartialObjectMetadata,), {"__module__": __name__, "__kind__": info})
    return msgspec.json.Decoder(cast("type[PartialObjectMetadata]", cls), dec_hook=decode_scalar)
