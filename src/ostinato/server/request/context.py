"""Context of a resource request: the input of verbs and admission plugins."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, TypeVar

import msgspec

from ostinato.api.errors import BadRequest, NotFound
from ostinato.api.gvk import GroupResource
from ostinato.api.text.go_format import quote
from ostinato.api.validation import names
from ostinato.server.flow.heavy import HeavyLane
from ostinato.server.flow.loop_budget import LoopBudgetExceeded, within_loop_budget
from ostinato.server.request import Request
from ostinato.server.request.known_applies import KnownApplies
from ostinato.server.request.list_body import ListCache
from ostinato.server.request.route import Route
from ostinato.server.resources.resource import Resource
from ostinato.server.resources.strategy import Json
from ostinato.server.store.collection import Collection
from ostinato.server.store.index import Index
from ostinato.world import World

_NO_NAMESPACES = frozenset({".", ".."})
T = TypeVar("T")

OnEncoded = Callable[[int, bytes], None]  # with the resourceVersion of the data


class Admission(Protocol):
    """Admission of a write: mutation, then validation. `operation` is CREATE, UPDATE, DELETE or CONNECT."""

    async def mutate(self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any) -> None:
        """Mutate the object in place, or raise an APIError."""

    async def validate(
        self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any
    ) -> None:
        """Validate the object: raise an APIError to reject it."""

    def judges_status_by_content(self, resource: GroupResource) -> bool:
        """Whether writes of a status with the same content, by users of the same node, are admitted alike."""


class AdmitAll:
    """Admission without plugins, for writes that follow from an admitted one."""

    async def mutate(self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any) -> None:
        pass

    async def validate(
        self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any
    ) -> None:
        pass

    def judges_status_by_content(self, resource: GroupResource) -> bool:
        return True


class Context(msgspec.Struct):
    """One request for a resource."""

    world: World
    index: Index
    request: Request
    route: Route
    resource: Resource
    admission: Admission
    lane: HeavyLane
    lists: ListCache
    applies: KnownApplies | None = None  # results of earlier applies, if they are kept
    heavy: bool = False  # the object is so large that processing it would block the event loop
    on_encoded: OnEncoded | None = None  # called with what is going to be stored

    async def in_thread(self, function: Callable[[], T]) -> T:
        """Call a slow function in a worker thread. It must not modify shared state."""
        return await self.lane.run(self.request.line, function)

    async def check(self, function: Callable[[], T]) -> T:
        """Call a function; if it turns out to be slow, call it again in a worker thread."""
        if not self.heavy:
            try:
                return within_loop_budget(function)
            except LoopBudgetExceeded:
                pass
        return await self.in_thread(function)

    @property
    def key(self) -> str:
        """The key of the object that the path names; BadRequest if the name is not a valid path segment.

        A key is only built in the namespace that was authorized: the route's, which a cluster-scoped resource cannot
        have.
        """
        name = self.route.name
        wrong = names.name_is_path_segment(name)
        if wrong:
            raise BadRequest.of(f"Name parameter invalid: {quote(name)}: {';'.join(wrong)}")
        if not self.resource.namespaced:
            if self.route.in_namespace:
                raise NotFound.of(self.resource.group_resource, name)
            return name
        namespace = self.route.namespace
        if not namespace:
            raise BadRequest.of("namespace must be provided")
        if namespace in _NO_NAMESPACES:
            raise _bad_namespace(namespace)
        return f"{namespace}/{name}"

    @property
    def prefix(self) -> str:
        """The common key prefix of the objects in the request's scope."""
        if not self.resource.namespaced:
            if self.route.in_namespace:
                raise NotFound.of(self.resource.group_resource, self.route.name)
            return ""
        namespace = self.route.namespace
        if namespace in _NO_NAMESPACES:
            raise _bad_namespace(namespace)
        return f"{namespace}/" if namespace else ""

    @property
    def collection(self) -> Collection:
        """The collection of the resource's objects; only stored resources have the common verbs."""
        collection = self.resource.collection
        assert collection is not None
        return collection


def _bad_namespace(namespace: str) -> BadRequest:
    return BadRequest.of(f"Namespace parameter invalid: {quote(namespace)}: may not be '{namespace}'")


Handler = Callable[[Context], Awaitable[Any]]
HandlerKey = tuple[str, str, str, str]  # group, resource, subresource ("" for the resource itself), verb
Handlers = Mapping[HandlerKey, Handler]  # override the common verbs
