"""Requests: shared by the verbs of a client. Resolves kinds to resources and names to objects, and sends."""

from __future__ import annotations

import copy
from collections.abc import Awaitable
from functools import lru_cache
from typing import Any, Self

import msgspec

from ostinato.api import accessors as access
from ostinato.api.accessors import AnyObject
from ostinato.api.gvk import NamespacedName
from ostinato.api.object import KindInfo, Object
from ostinato.api.scheme import Scheme
from ostinato.client.arguments import key_from
from ostinato.client.collection import Collection, Selection
from ostinato.client.discovery.discovery import Discovery
from ostinato.client.discovery.mapping import Mapper
from ostinato.client.discovery.paths import Key, object_path
from ostinato.client.options import Query
from ostinato.client.transport.exchange import Call, Exchange, LogWarnings, WarningHandler
from ostinato.client.transport.protocol import Transport
from ostinato.client.unreadable import UnreadableObjects
from ostinato.client.views import JSON, MetadataOf, PartialObjectMetadata, Unstructured, View, view_of
from ostinato.kinds.builtin import builtin_scheme
from ostinato.world import World


class Target(msgspec.Struct, frozen=True):
    """One object, or a subresource of it."""

    info: KindInfo
    key: NamespacedName
    subresource: str = ""

    @property
    def path(self) -> str:
        return object_path(self.info, self.key, self.subresource)


class Content(msgspec.Struct, frozen=True, kw_only=True):
    """Query, body and headers of a request."""

    query: Query = []
    body: bytes = b""
    content_type: str = JSON
    accept: str = JSON
    timeout: float | None = None


_NOTHING = Content()


class Requests:
    def __init__(
        self,
        transport: Transport,
        world: World,
        scheme: Scheme | None,
        namespace: str,
        warn: WarningHandler | None,
        unreadable: UnreadableObjects | None = None,
    ) -> None:
        warn = warn or LogWarnings()
        self.world = world
        self.namespace = namespace
        self.unreadable = unreadable or UnreadableObjects()
        self.mapper = Mapper(Discovery(Exchange(transport, warn)), world.clock)
        self.exchange = Exchange(transport, warn, on_missing_kind=self.mapper.forget)
        self._scheme = scheme or builtin_scheme()

    def in_namespace(self, namespace: str) -> Self:
        """Return a copy with another default namespace; everything else is shared."""
        scoped = copy.copy(self)
        scoped.namespace = namespace
        return scoped

    async def resolve(self, view: View[Any]) -> KindInfo:
        """Return the REST mapping of a kind: from its class (`view.info`), the scheme, or discovery."""
        if view.info is not None:
            return view.info
        if self._scheme.recognizes(view.gvk):
            return self._scheme.info(view.gvk)
        return await self.mapper.kind(view.gvk)

    def collection(self, view: View[Any], selection: Selection) -> Collection:
        return Collection(self.exchange, self.world.clock, self.resolve, view, selection)

    def target(self, info: KindInfo, name: Key, namespace: str | None = None, subresource: str = "") -> Target:
        """Return the target of an object. A bare name is in `namespace`, which defaults to the client's."""
        if not isinstance(name, str):
            key = key_from(info, name)
            if namespace is not None and namespace != key.namespace:
                raise ValueError(
                    f"{info.gvk.kind} {key}: namespace={namespace!r} differs from that of the key; omit it"
                )
            return Target(info, key, subresource)
        if namespace is None:
            namespace = self.namespace if info.namespaced else ""
        return Target(info, NamespacedName(namespace, name), subresource)

    def target_of(self, info: KindInfo, instance: AnyObject, subresource: str = "") -> Target:
        return Target(info, self.key_of(info, instance), subresource)

    def key_of(self, info: KindInfo, instance: AnyObject) -> NamespacedName:
        """Return the key of an object; its namespace defaults to the client's."""
        found = access.key(instance)
        namespace = (found.namespace or self.namespace) if info.namespaced else ""
        return found if namespace == found.namespace else NamespacedName(namespace, found.name)

    def send(self, method: str, target: Target, content: Content = _NOTHING) -> Awaitable[bytes]:
        """Send a request, and return the body of the response."""
        call = Call(
            method=method,
            path=target.path,
            query=content.query,
            body=content.body,
            content_type=content.content_type,
            accept=content.accept,
            timeout=content.timeout,
            info=target.info,
            name=target.key.name,
            subresource=target.subresource,
        )
        return self.exchange.send(call)


def view_like(instance: AnyObject) -> View[Any]:
    """Return the view for an object's own representation."""
    return Unstructured(_kind_of_dict(instance)) if isinstance(instance, dict) else _view_of_class(type(instance))


@lru_cache(maxsize=1024)
def _view_of_class(cls: type[Object]) -> View[Any]:
    return MetadataOf(cls) if issubclass(cls, PartialObjectMetadata) else view_of(cls)


def _kind_of_dict(instance: dict[str, Any]) -> Any:
    found = access.gvk(instance)
    if not found.kind or not found.version:
        raise ValueError(f"{access.describe(instance)}: apiVersion and kind are required in a dict")
    return found
