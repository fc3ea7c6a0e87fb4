"""Dispatch: find the verb that handles a route of a resource.

A path that the resource lacks is NotFound; a path that it has, but not with this method, is MethodNotAllowed. Messages
differ between built-in and custom resources, because kube-apiserver routes them separately.
"""

from __future__ import annotations

from collections.abc import Collection

from ostinato.api.errors import APIError, BadRequest, MethodNotAllowed, NotFound
from ostinato.api.status import Status, StatusDetails
from ostinato.server.request.context import Handler, Handlers
from ostinato.server.request.route import Route
from ostinato.server.resources.resource import Resource
from ostinato.server.verbs.create import create
from ostinato.server.verbs.delete import delete, delete_collection
from ostinato.server.verbs.get import get
from ostinato.server.verbs.list import list_
from ostinato.server.verbs.patch import patch
from ostinato.server.verbs.subresources.scale import get_scale, patch_scale, update_scale
from ostinato.server.verbs.update import update
from ostinato.server.verbs.watch import watch

_VERBS: dict[str, Handler] = {
    "get": get,
    "list": list_,
    "watch": watch,
    "create": create,
    "update": update,
    "patch": patch,
    "delete": delete,
    "deletecollection": delete_collection,
}
_SCALE: dict[str, Handler] = {"get": get_scale, "update": update_scale, "patch": patch_scale}
_OF_ONE = frozenset({"get", "update", "patch", "delete"})
_OF_MANY = frozenset({"list", "watch", "create", "deletecollection"})
_EVERYWHERE = frozenset({"list", "watch"})  # verbs of a namespaced resource across namespaces
_WATCH = frozenset({"watch"})


class Dispatcher:
    """Finds the verb that handles a route. `handlers` take precedence over the common verbs."""

    def __init__(self, handlers: Handlers) -> None:
        self._handlers = dict(handlers)

    def add(self, handlers: Handlers) -> None:
        """Add the handlers of a resource that is not served yet."""
        self._handlers |= handlers

    def verb_of(self, resource: Resource, method: str, route: Route) -> Handler | None:
        """Return the verb; None if there is no such page.

        Raises an APIError if the resource does not have the path, or not with this method.
        """
        if route.unserved:
            return None
        verb = resource.verb_cache.get(route.endpoint)
        if verb is None:
            verb = self._find(resource, method, route)
            if verb is not None:
                resource.verb_cache[route.endpoint] = verb
        return verb

    def _find(self, resource: Resource, method: str, route: Route) -> Handler | None:
        if resource.custom:
            return _custom_verb(resource, route)
        possible = _possible(resource, route)
        if not possible:
            raise not_found()
        forwarded = method in ("HEAD", "OPTIONS") and route.subresource == "proxy"
        if (route.verb not in possible or method in ("HEAD", "OPTIONS")) and not forwarded:
            raise not_allowed()
        if route.old_watch and method != "GET":
            raise not_allowed()
        if route.subresource == "scale":
            return _SCALE[route.verb]
        handler = self._handlers.get((resource.gvr.group, resource.gvr.resource, route.subresource, route.verb))
        if handler is not None:
            return handler
        if route.subresource and resource.subresources[route.subresource].kind != resource.gvk:
            raise not_found()
        return _VERBS[route.verb]


def _possible(resource: Resource, route: Route) -> Collection[str]:
    """The verbs of a path of a built-in resource."""
    if route.in_namespace and not resource.namespaced:
        return ()
    if route.verb == "proxy" or (route.path and route.subresource != "proxy"):
        return ()
    everywhere = resource.namespaced and not route.namespace
    if route.subresource and not route.old_watch:
        subresource = resource.subresources.get(route.subresource)
        return () if subresource is None or everywhere else subresource.verbs
    if route.subresource or (everywhere and route.name):
        return ()
    found = _WATCH if route.old_watch else _OF_ONE if route.name else _EVERYWHERE if everywhere else _OF_MANY
    return [verb for verb in resource.verbs if verb in found]


def _custom_verb(resource: Resource, route: Route) -> Handler | None:
    if resource.namespaced:
        if not route.namespace and route.verb not in _EVERYWHERE:
            return None
    elif route.namespace:
        return None
    verbs: Collection[str] = resource.verbs
    if route.subresource:
        subresource = resource.subresources.get(route.subresource)
        if subresource is None:
            raise NotFound.of(resource.group_resource, route.name)
        verbs = subresource.verbs
    if route.verb not in verbs:
        raise MethodNotAllowed.of(resource.group_resource, route.verb)
    if not route.name and route.verb in _OF_ONE:
        raise BadRequest.of("name must be provided")
    return _SCALE[route.verb] if route.subresource == "scale" else _VERBS[route.verb]


def not_found() -> APIError:
    """The error for a path that does not exist."""
    message = "the server could not find the requested resource"
    return NotFound(Status(message=message, reason="NotFound", details=StatusDetails(), code=404))


def not_allowed() -> APIError:
    message = "the server does not allow this method on the requested resource"
    return MethodNotAllowed(Status(message=message, reason="MethodNotAllowed", details=StatusDetails(), code=405))
