"""What every verb works with: the server's parts, and the request at hand."""

from __future__ import annotations

import msgspec

from ostinato.api import names
from ostinato.api.errors import BadRequest, NotFound
from ostinato.api.quoting import quote
from ostinato.server.admission.chain import Admission
from ostinato.server.request import Request
from ostinato.server.resources.resource import Resource
from ostinato.server.route import Route
from ostinato.server.store.index import Collection, Index
from ostinato.world import World

_NO_NAMESPACES = frozenset({".", ".."})


class Context(msgspec.Struct):
    """One request for a resource."""

    world: World
    index: Index
    request: Request
    route: Route
    resource: Resource
    admission: Admission

    @property
    def key(self) -> str:
        """The key of the object that the path names; BadRequest if no object can have that name.

        A key is only ever built in the namespace that was authorized: the route's, which a cluster-scoped resource
        cannot have.
        """
        name = self.route.name
        wrong = names.name_is_path_segment(name)
        if wrong:
            raise BadRequest.of(f"Name parameter invalid: {quote(name)}: {';'.join(wrong)}")
        if not self.resource.namespaced:
            if self.route.in_namespace:
                raise NotFound.of(self.resource.group_resource, name)
            return name
        if not self.route.namespace:
            raise BadRequest.of("namespace must be provided")
        return self._in_namespace + name

    @property
    def prefix(self) -> str:
        """What the keys of the objects in the request's scope begin with."""
        if not self.resource.namespaced:
            if self.route.in_namespace:
                raise NotFound.of(self.resource.group_resource, self.route.name)
            return ""
        return self._in_namespace if self.route.namespace else ""

    @property
    def _in_namespace(self) -> str:
        namespace = self.route.namespace
        if namespace in _NO_NAMESPACES:
            raise BadRequest.of(f"Namespace parameter invalid: {quote(namespace)}: may not be '{namespace}'")
        return f"{namespace}/"

    @property
    def collection(self) -> Collection:
        """Where the objects of the resource are; only resources that are stored have the common verbs."""
        collection = self.resource.collection
        assert collection is not None
        return collection
