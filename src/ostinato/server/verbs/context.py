"""What every verb works with: the server's parts, and the request at hand."""

from __future__ import annotations

import msgspec

from ostinato.api import names
from ostinato.api.errors import BadRequest
from ostinato.api.quoting import quote
from ostinato.server.admission.chain import Admission
from ostinato.server.request import Request
from ostinato.server.resources.resource import Resource
from ostinato.server.route import Route
from ostinato.server.store.index import Collection, Index
from ostinato.world import World


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
        """The key of the object that the path names; BadRequest if no object can have that name."""
        name = self.route.name
        wrong = names.name_is_path_segment(name)
        if wrong:
            raise BadRequest.of(f"Name parameter invalid: {quote(name)}: {';'.join(wrong)}")
        return self.resource.key(self.route.namespace, name)

    @property
    def prefix(self) -> str:
        """What the keys of the objects in the request's scope begin with."""
        return f"{self.route.namespace}/" if self.resource.namespaced and self.route.namespace else ""

    @property
    def collection(self) -> Collection:
        """Where the objects of the resource are; only resources that are stored have the common verbs."""
        collection = self.resource.collection
        assert collection is not None
        return collection
