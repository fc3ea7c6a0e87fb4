"""Connections to Pods: log, exec, attach, portforward.

The server resolves the container and the node, and forwards the request to the kubelet API of the node's agent. If no
agent responds, the server returns the error.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from urllib.parse import urlencode

from ostinato.api.errors import APIError, BadRequest, Forbidden, InternalError, Invalid, NotFound, generic
from ostinato.api.gvk import GroupKind
from ostinato.api.status import Status
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.access.attributes import RequestAttributes
from ostinato.server.access.authorization.authorizer import Authorizer
from ostinato.server.node_agents.endpoint import NodeAgents
from ostinato.server.request import Answer, Request, Response
from ostinato.server.request.context import Context
from ostinato.server.request.negotiate import check_text
from ostinato.server.request.options import boolean, integer, refuse_dry_run
from ostinato.server.resources.core.pods.spec.defaults import containers_of
from ostinato.server.resources.resource import Resource
from ostinato.server.resources.strategy import Json
from ostinato.server.resources.validation.checks import not_negative
from ostinato.streams.channels import V5, failed_upgrade, offered

_PATHS = {"log": "containerLogs", "exec": "exec", "attach": "attach", "portforward": "portForward"}
_FLAGS = {"stdin": "input", "stdout": "output", "stderr": "error", "tty": "tty"}
_OF_LOGS = ("follow", "previous", "timestamps", "sinceSeconds", "sinceTime", "tailLines", "limitBytes")
_HEADERS = ("upgrade", "connection", "sec-websocket-protocol", "x-stream-protocol-version")


def connect_handler(
    resource: Resource, nodes: NodeAgents, authorizer: Authorizer, what: str
) -> Callable[[Context], Awaitable[Answer]]:
    """The handler of one connect subresource: log, exec, attach, portforward. `resource` is that of nodes."""

    async def connect(context: Context) -> Answer:
        if what == "log":
            check_text(context.request)
            _check_log_options(context)
        else:
            refuse_dry_run(context.request)
        options = _options(what, context)
        if what != "log":
            await context.admission.mutate(context, "CONNECT", options, None, None)
            await context.admission.validate(context, "CONNECT", options, None, None)
            await check_create(context, authorizer)
        entry = context.collection.entries.get(context.key)
        if entry is None:
            raise NotFound.of(context.resource.group_resource, context.route.name)
        pod = context.resource.object(entry.data)
        container = "" if what == "portforward" else _container(pod, options.get("container", ""))
        node = pod["spec"].get("nodeName", "")
        if not node:
            if what == "log":
                return Response(204, b"", "text/plain")
            raise BadRequest.of(f"pod {context.route.name} does not have a host assigned")
        assert resource.collection is not None
        host = resource.collection.entries.get(node)
        if host is None:
            raise NotFound.of(context.resource.group_resource, node)  # kube-apiserver reports the node here
        if what != "log" and not context.request.headers.get("upgrade"):
            raise BadRequest.of("Upgrade request required")
        answer = await nodes.send(resource.object(host.data), _to_node(what, context, options, container))
        if isinstance(answer, Response) and not 200 <= answer.status < 300:
            return _refusal(what, context, answer)
        return answer

    return connect


async def check_create(context: Context, authorizer: Authorizer) -> None:
    """Authorize a WebSocket: it begins with a GET, but requires the verb `create`."""
    route, user = context.route, context.request.user
    if route.verb == "create" or user is None:
        return
    asked = RequestAttributes("create", route.group, route.resource, route.subresource, route.namespace, route.name)
    decision = await authorizer.decide(user, asked)
    if not decision.allowed:
        raise Forbidden.of(context.resource.group_resource, route.name, decision.reason)


def _options(what: str, context: Context) -> Json:
    """The options of the connection, after admission, which may mutate them."""
    asked = context.request
    options: Json = {"kind": context.resource.subresources[what].kind.kind, "apiVersion": "v1"}
    if what == "portforward":
        ports = [port for text in asked.query.get("ports", ()) for port in text.split(",") if port.isdecimal()]
        return options | ({"ports": [int(port) for port in ports]} if ports else {})
    options |= {name: True for name in _FLAGS if name in asked.query and boolean(asked.parameter(name))}
    if asked.parameter("container"):
        options["container"] = asked.parameter("container")
    if asked.query.get("command"):
        options["command"] = list(asked.query["command"])
    return options


def _to_node(what: str, context: Context, options: Json, container: str) -> Request:
    """The request to the node's agent."""
    asked, route = context.request, context.route
    query: list[tuple[str, str]] = []
    if what == "log":
        query = [(name, asked.parameter(name)) for name in _OF_LOGS if asked.query.get(name)]
    elif what == "portforward":
        ports = [port for text in asked.query.get("ports", ()) for port in text.split(",")]
        query = [("port", ",".join(ports))] if ports else []
    else:
        query = [(short, "1") for name, short in _FLAGS.items() if options.get(name)]
        query += [("command", word) for word in options.get("command") or ()] if what == "exec" else []
    path = "/".join(["", _PATHS[what], route.namespace, route.name, *([container] if container else [])])
    headers = {name: asked.headers[name] for name in _HEADERS if name in asked.headers}
    request = Request(asked.method, path, urlencode(query), headers)
    request.repeated = {name: asked.repeated[name] for name in _HEADERS if name in asked.repeated}
    return request


def _refusal(what: str, context: Context, answer: Response) -> Answer:
    """Convert an error of a node, which is plain text, to an APIError."""
    text = answer.body.decode(errors="replace").rstrip("\n")
    if what == "log":
        raise _log_error(answer.status, text, context)
    protocols = offered(context.request.headers)
    if what == "portforward" or V5 not in protocols:
        return answer
    return failed_upgrade(Status(message=f"unable to upgrade connection: {text}", code=answer.status), V5)


def _log_error(status: int, text: str, context: Context) -> APIError:
    if status == 400:
        return BadRequest.of(text)
    if status == 500:
        return InternalError.of(text)
    return generic(status, "", context.resource.group_resource, context.route.name, text, unexpected=False)


def _container(pod: Json, name: str) -> str:
    """The requested container; a Pod with a single container needs no name."""
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
