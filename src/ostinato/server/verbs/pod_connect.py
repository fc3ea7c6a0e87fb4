"""What goes on inside a Pod: logs, exec, attach, port-forward.

The server finds the container and the node; who runs Pods answers. Where nobody does, the server says so.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from ostinato.api.errors import BadRequest, InternalError, Invalid, NotFound
from ostinato.api.field_errors import FieldError, Path
from ostinato.api.gvk import GroupKind
from ostinato.server.options import integer
from ostinato.server.request import Response
from ostinato.server.resources.pod_spec import containers_of
from ostinato.server.resources.resource import Resource
from ostinato.server.resources.strategy import Json
from ostinato.server.resources.validation import not_negative
from ostinato.server.verbs.context import Context


def connects(nodes: Resource, what: str) -> Callable[[Context], Awaitable[Response]]:
    """What answers a connection of one kind: log, exec, attach, portforward."""

    async def connect(context: Context) -> Response:
        if what == "log":
            _check_log_options(context)
        entry = context.collection.entries.get(context.key)
        if entry is None:
            raise NotFound.of(context.resource.group_resource, context.route.name)
        pod = context.resource.object(entry.data)
        if what != "portforward":
            _container(pod, context.request.parameter("container"))
        node = pod["spec"].get("nodeName", "")
        if not node:
            if what == "log":
                return Response(204, b"", "text/plain")
            raise BadRequest.of(f"pod {context.route.name} does not have a host assigned")
        assert nodes.collection is not None
        if node not in nodes.collection.entries:
            raise NotFound.of(context.resource.group_resource, node)  # a kube-apiserver says so, of the node
        raise InternalError.of(f"no node agent answers for node {node}")

    return connect


def _container(pod: Json, name: str) -> str:
    """The container that is meant; a Pod with one container needs no name."""
    known = [container.get("name", "") for container in containers_of(pod["spec"])]
    if name:
        if name not in known:
            raise BadRequest.of(f"container {name} is not valid for pod {pod['metadata']['name']}")
        return name
    containers = pod["spec"].get("containers") or []
    if len(containers) == 1:
        return str(containers[0].get("name", ""))
    must = f"a container name must be specified for pod {pod['metadata']['name']}"
    raise BadRequest.of(f"{must}, choose one of: [{' '.join(known)}]" if containers else must)


def _check_log_options(context: Context) -> None:
    request = context.request
    errors: list[FieldError] = []
    numbers = {
        name: integer(request.parameter(name))
        for name in ("tailLines", "limitBytes", "sinceSeconds")
        if request.query.get(name)
    }
    errors += not_negative(numbers.get("tailLines", 0), Path("tailLines"))
    if numbers.get("limitBytes", 1) < 1:
        errors.append(FieldError.invalid(Path("limitBytes"), numbers["limitBytes"], "must be greater than 0"))
    if "sinceSeconds" in numbers and request.query.get("sinceTime"):
        errors.append(FieldError.forbidden(Path("[]"), "at most one of `sinceTime` or `sinceSeconds` may be specified"))
    elif numbers.get("sinceSeconds", 1) < 1:
        errors.append(FieldError.invalid(Path("sinceSeconds"), numbers["sinceSeconds"], "must be greater than 0"))
    if request.query.get("stream"):
        errors.append(FieldError.forbidden(Path("stream"), "may not be specified"))
    if errors:
        raise Invalid.of(GroupKind("", "PodLogOptions"), context.route.name, errors)
