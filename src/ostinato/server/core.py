"""The core: from a request to its answer, without any I/O of its own.

A request passes these stages in order: authentication, routing, authorization, the verb. Every refusal is an
APIError, told as a Status.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

from ostinato.api.errors import APIError, Forbidden, InternalError, MethodNotAllowed, NotFound
from ostinato.api.gvk import GroupResource
from ostinato.api.status import Status, StatusDetails
from ostinato.server.access.authenticate import Authenticator
from ostinato.server.admission import Admission
from ostinato.server.admission.namespace_lifecycle import NamespaceLifecycle
from ostinato.server.publish import Publisher
from ostinato.server.request import Request, Response, Stream, User, error_response, text_response
from ostinato.server.resources.registry import Registry
from ostinato.server.resources.resource import Resource
from ostinato.server.route import Route, parse
from ostinato.server.store.index import Index, Log
from ostinato.server.verbs.context import Context
from ostinato.server.verbs.create import create
from ostinato.server.verbs.delete import delete, delete_collection
from ostinato.server.verbs.get import get
from ostinato.server.verbs.list import list_
from ostinato.server.verbs.patch import patch
from ostinato.server.verbs.update import update
from ostinato.server.verbs.watch import watch
from ostinato.world import World

Answer = Response | Stream
Verb = Callable[[Context], Awaitable[Any]]

_logger = logging.getLogger(__name__)

_VERBS: dict[str, Verb] = {
    "get": get,
    "list": list_,
    "watch": watch,
    "create": create,
    "update": update,
    "patch": patch,
    "delete": delete,
    "deletecollection": delete_collection,
}

_NOT_FOUND = NotFound(
    Status(
        message="the server could not find the requested resource", reason="NotFound", details=StatusDetails(), code=404
    )
)
_NOT_ALLOWED = MethodNotAllowed(
    Status(
        message="the server does not allow this method on the requested resource",
        reason="MethodNotAllowed",
        details=StatusDetails(),
        code=405,
    )
)


class Server:
    """An API server: `handle` answers requests; whoever calls it brings the transport."""

    def __init__(self, world: World, log: Log) -> None:
        self.world = world
        self.index = Index(log, world.clock)
        self.registry = Registry(self.index, world)
        self.authenticator = Authenticator()
        self.publisher = Publisher(self.registry)
        namespaces = self.registry.get("", "v1", "namespaces")
        assert namespaces is not None
        assert namespaces.collection is not None
        self.admission = Admission([NamespaceLifecycle(namespaces.collection)])

    async def handle(self, request: Request) -> Answer:
        """Answer a request. Never raises, but for cancellation."""
        try:
            answer = await self._handle(request)
        except APIError as error:
            answer = error_response(error)
        except Exception:
            _logger.exception("%s %s", request.method, request.path)
            answer = error_response(InternalError.of("the server made an error; its log says more"))
        if request.warnings:
            answer.headers = [*answer.headers, *((("Warning", _warning(text))) for text in request.warnings)]
        return answer

    async def _handle(self, request: Request) -> Answer:
        user = request.user = self.authenticator.authenticate(request)
        route = parse(request.method, request.path, watch=bool(request.query_string) and _watches(request))
        if request.method in ("HEAD", "OPTIONS"):
            return error_response(_NOT_ALLOWED)
        if route is None:
            return await self._publish(request, user)
        self._authorize(user, route)
        resource = self.registry.get(route.group, route.version, route.resource)
        if resource is None:
            if route.group and not self.registry.has_group(route.group):
                return text_response(404, "404 page not found\n")
            raise _NOT_FOUND
        verb = self._verb(resource, route)
        answer: Answer = await verb(Context(self.world, self.index, request, route, resource, self.admission))
        return answer

    def _verb(self, resource: Resource, route: Route) -> Verb:
        if route.subresource:
            subresource = resource.subresources.get(route.subresource)
            if subresource is None:
                raise _NOT_FOUND
            if route.verb not in subresource.verbs:
                raise _NOT_ALLOWED
            return self._subresource_verb(resource, route)
        if route.verb not in resource.verbs:
            raise _NOT_ALLOWED
        if resource.namespaced and not route.namespace and route.verb not in ("list", "watch"):
            raise _NOT_ALLOWED
        if (
            bool(route.name) == (route.verb in ("create", "list", "watch", "deletecollection"))
            and route.verb != "watch"
        ):
            raise _NOT_ALLOWED
        return _VERBS[route.verb]

    def _subresource_verb(self, resource: Resource, route: Route) -> Verb:
        if resource.subresources[route.subresource].kind == resource.gvk:
            return _VERBS[route.verb]
        raise _NOT_FOUND

    def _authorize(self, user: User, route: Route) -> None:
        """Administrators may do everything, others nothing."""
        if "system:masters" in user.groups:
            return
        resource = route.resource + (f"/{route.subresource}" if route.subresource else "")
        where = f'in the namespace "{route.namespace}"' if route.namespace else "at the cluster scope"
        raise Forbidden.of(
            GroupResource(route.group, route.resource),
            route.name,
            f'User "{user.name}" cannot {route.verb} resource "{resource}" in API group "{route.group}" {where}',
        )

    async def _publish(self, request: Request, user: User) -> Answer:
        return self.publisher.answer(request, user)

    async def close(self) -> None:
        """Finish the writes that are under way, end the watches, close the store."""
        await self.index.close()


def _watches(request: Request) -> bool:
    return request.parameter("watch").lower() in ("1", "true", "t")


def _warning(text: str) -> str:
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{quoted}"'
