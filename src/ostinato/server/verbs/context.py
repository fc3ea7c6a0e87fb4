"""What every verb works with: the server's parts, and the request at hand."""

from __future__ import annotations

import msgspec

from ostinato.server.admission.chain import Admission
from ostinato.server.request import Request
from ostinato.server.resources.resource import Resource
from ostinato.server.route import Route
from ostinato.server.store.index import Index
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
        return self.resource.key(self.route.namespace, self.route.name)

    @property
    def prefix(self) -> str:
        """What the keys of the objects in the request's scope begin with."""
        return f"{self.route.namespace}/" if self.resource.namespaced and self.route.namespace else ""
