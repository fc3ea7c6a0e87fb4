"""proxy: forward a request to a Pod, to an endpoint of a Service, or to a node's agent.

- The target is `NAME`, `NAME:PORT` or `SCHEME:NAME:PORT`.
- `backends.addresses` decides which addresses are allowed. A Pod of a node in this process may have the address of that
  node, loopback included.
- Admission gets the path before the target is looked up.
- An upgrade of a connection to a node requires the verb `create`: a WebSocket begins with a GET, but runs commands.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import NamedTuple
from urllib.parse import quote as quote_path
from urllib.parse import unquote

import msgspec

from ostinato.api.errors import BadRequest, NotFound, ServiceUnavailable, Unknown
from ostinato.api.text.go_format import quote
from ostinato.server.access.authorization.authorizer import Authorizer
from ostinato.server.backends.addresses import AddressError, AddressGuard
from ostinato.server.backends.forwarding import Backend, Passage, forward
from ostinato.server.backends.headers import IdentityHeaders, is_upgrade
from ostinato.server.node_agents.endpoint import NodeAgents
from ostinato.server.node_agents.remote import AGENT_ADDRESSES
from ostinato.server.request import Answer, Request, Response
from ostinato.server.request.context import Context, Handlers
from ostinato.server.request.options import refuse_dry_run
from ostinato.server.resources.registry import Registry
from ostinato.server.resources.resource import Resource
from ostinato.server.resources.strategy import Json
from ostinato.server.verbs.subresources.pod_connect import check_create
from ostinato.server.webhooks.trust import unverifying
from ostinato.world import World

_VERBS = ("get", "create", "update", "patch", "delete", "")  # "": OPTIONS, which has no verb
_PORTS = {"": 80, "http": 80, "https": 443}
_KUBELET = 10250
_REDIRECTED = ("GET", "HEAD")  # methods that are redirected to the trailing slash


class ProxyAccess(msgspec.Struct, frozen=True):
    """The rules for forwarded requests: allowed addresses, removed identity headers, authorizer."""

    guard: AddressGuard
    identity: IdentityHeaders
    authorizer: Authorizer


def proxy_handlers(registry: Registry, nodes: NodeAgents, passage: ProxyAccess, world: World) -> Handlers:
    """Handlers that forward requests to Pods, Services and nodes."""
    proxy = _Proxy(registry, nodes, passage, world)
    answers = {"pods": proxy.to_pod, "services": proxy.to_service, "nodes": proxy.to_node}
    return {("", name, "proxy", verb): _handler(answer) for name, answer in answers.items() for verb in _VERBS}


def api_servers(registry: Registry) -> Iterator[tuple[str, int]]:
    """The addresses of the cluster's API servers: the endpoints of the Service `kubernetes`, and its cluster IPs."""
    endpoints = _object(_resource(registry, "endpoints"), "default", "kubernetes") or {}
    for subset in endpoints.get("subsets") or ():
        for address in subset.get("addresses") or ():
            yield from ((address["ip"], port["port"]) for port in subset.get("ports") or ())
    spec = (_object(_resource(registry, "services"), "default", "kubernetes") or {}).get("spec") or {}
    for address in spec.get("clusterIPs") or ():
        yield from ((address, port["port"]) for port in spec.get("ports") or ())


def _handler(
    answer: Callable[[Context, _Target], Awaitable[Answer]],
) -> Callable[[Context], Awaitable[Answer]]:
    async def handle(context: Context) -> Answer:
        refuse_dry_run(context.request)
        options = _options(context)
        await context.admission.mutate(context, "CONNECT", options, None, None)
        await context.admission.validate(context, "CONNECT", options, None, None)
        return await answer(context, _parse_target(context))

    return handle


def _options(context: Context) -> Json:
    """The options of the connection, as admission sees them."""
    path = unquote(_rest(context))
    options = {"kind": context.resource.subresources["proxy"].kind.kind, "apiVersion": "v1"}
    return {**options, "path": path} if path else {**options}


class _Target(NamedTuple):
    scheme: str
    name: str
    port: str


def _parse_target(context: Context) -> _Target:
    parts = context.route.name.split(":")
    scheme, name, port = {1: ("", *parts, ""), 2: ("", *parts), 3: parts}.get(len(parts), ("", "", ""))
    if not name or scheme not in _PORTS:
        kind = context.resource.gvk.kind.lower()
        raise BadRequest.of(f"invalid {kind} request {quote(context.route.name)}")
    return _Target(scheme, name, port)


class _Proxy:
    def __init__(self, registry: Registry, nodes: NodeAgents, passage: ProxyAccess, world: World) -> None:
        self.pods, self.services, self.nodes = (_resource(registry, name) for name in ("pods", "services", "nodes"))
        self._endpoints = _resource(registry, "endpoints")
        self._agents = nodes
        self._passage = passage
        self._guard = passage.guard
        self._world = world

    async def to_pod(self, context: Context, target: _Target) -> Answer:
        pod = _object(self.pods, context.route.namespace, target.name)
        if pod is None:
            raise NotFound.of(self.pods.group_resource, target.name)
        containers = pod["spec"].get("containers") or ()
        declared = (port["containerPort"] for each in containers for port in (each.get("ports") or ())[:1])
        port = target.port or str(next(declared, _PORTS[target.scheme]))
        address = ((pod.get("status") or {}).get("podIPs") or [{}])[0].get("ip", "")
        return await self._forward(context, target.scheme, self._checked(address, port, pod), port)

    def _checked(self, address: str, port: str, pod: Json) -> str:
        try:
            return self._guard.check(address, int(port) if port.isdecimal() else 0, local=self._is_here(pod, address))
        except AddressError as error:
            raise BadRequest.of(str(error)) from None

    def _is_here(self, pod: Json, address: str) -> bool:
        """Whether a Pod shares the address of its node, which is in this process: it may be loopback."""
        name = pod["spec"].get("nodeName", "")
        if not self._agents.is_local(name):
            return False
        node = _object(self.nodes, "", name) or {}
        return any(each.get("address") == address for each in (node.get("status") or {}).get("addresses") or ())

    async def to_service(self, context: Context, target: _Target) -> Answer:
        namespace, port = context.route.namespace, target.port
        if port.isdecimal():
            service = _object(self.services, namespace, target.name)
            if service is None:
                raise NotFound.of(self.services.group_resource, target.name)
            ports = service["spec"].get("ports") or ()
            known = next((each.get("name", "") for each in ports if each.get("port") == int(port)), None)
            if known is None:
                raise ServiceUnavailable.of(f"no service port {port} found for service {quote(target.name)}")
            port = known
        endpoints = _object(self._endpoints, namespace, target.name)
        if endpoints is None:
            raise NotFound.of(self.services.group_resource, target.name)
        if not endpoints.get("subsets"):
            raise ServiceUnavailable.of(f"no endpoints available for service {quote(target.name)}")
        places = list(self._places(endpoints, namespace, port))
        if not places:
            raise ServiceUnavailable.of(f"no endpoints available for service {quote(context.route.name)}")
        address, number, pod = places[self._world.rng.randrange(len(places))]
        return await self._forward(context, target.scheme, self._checked(address, str(number), pod), str(number))

    def _places(self, endpoints: Json, namespace: str, port: str) -> Iterator[tuple[str, int, Json]]:
        """The addresses that serve a port; an endpoint must have the address of the Pod that it refers to."""
        for subset in endpoints["subsets"]:
            numbers = [each["port"] for each in subset.get("ports") or () if each.get("name", "") == port]
            for address in subset.get("addresses") or () if numbers else ():
                target = address.get("targetRef") or {}
                pod = _object(self.pods, namespace, target.get("name", ""))
                if pod is None or target.get("namespace") != namespace:
                    continue
                if any(each.get("ip") == address["ip"] for each in (pod.get("status") or {}).get("podIPs") or ()):
                    yield address["ip"], numbers[0], pod

    async def to_node(self, context: Context, target: _Target) -> Answer:
        node = _object(self.nodes, "", target.name)
        if node is None:
            raise NotFound.of(self.nodes.group_resource, target.name)
        if is_upgrade(context.request):
            await check_create(context, self._passage.authorizer)
        if self._agents.is_local(target.name):
            path = _rest(context)
            if not path and context.request.method in _REDIRECTED:
                return _with_slash(context.request)
            return await self._agents.forward(target.name, context.request, path or "/")
        host, agent = _preferred(node)
        port = target.port or str(agent)
        try:
            addresses = await self._guard.resolve(host, int(port) if port.isdecimal() else 0)
        except AddressError as error:
            raise BadRequest.of(str(error)) from None
        if port != str(agent):
            return await self._forward(context, target.scheme, addresses[0], port)
        if self._agents.remote is None:
            raise ServiceUnavailable.of(f"error trying to reach service: no node agent answers for node {target.name}")
        backend = Backend(addresses, agent, host, self._agents.remote.tls(), target.name)
        return await self._send(context, backend)

    async def _forward(self, context: Context, scheme: str, address: str, port: str) -> Answer:
        if not port.isdecimal() or int(port) > 65535:
            what = "invalid port" if port.isdecimal() else f"lookup tcp/{port}: unknown port"
            raise ServiceUnavailable.of(f"error trying to reach service: dial tcp: {what}")
        tls = unverifying() if scheme == "https" else None
        return await self._send(context, Backend([address], int(port), address, tls))

    async def _send(self, context: Context, backend: Backend) -> Answer:
        path, request = _rest(context), context.request
        if not path and not is_upgrade(request) and request.method in _REDIRECTED:
            return _with_slash(request)
        return await forward(request, backend, path or "/", self._world.clock, Passage(self._passage.identity))


def _rest(context: Context) -> str:
    """The quoted path after `proxy`, with its trailing slash; "" if there is none."""
    parts = context.route.path
    if unquote(context.request.path).endswith("/"):
        parts = (*parts, "")
    return "/" + quote_path("/".join(parts), safe="/$&+,:;=@~") if parts else ""


def _with_slash(request: Request) -> Response:
    """Redirect to the root: relative links need the trailing slash."""
    query = f"?{request.query_string}" if request.query_string else ""
    return Response(301, b"", "", [("Location", f"{request.path}/{query}")])


def _preferred(node: Json) -> tuple[str, int]:
    """The preferred address of a node, and the port of its agent."""
    status = node.get("status") or {}
    addresses = {each.get("type"): each.get("address", "") for each in reversed(status.get("addresses") or ())}
    host = next((addresses[kind] for kind in AGENT_ADDRESSES if addresses.get(kind)), None)
    if host is None:
        known = " ".join(f"{{{each.get('type')} {each.get('address')}}}" for each in status.get("addresses") or ())
        raise Unknown.of(f"no preferred addresses found; known addresses: [{known}]")
    return host, ((status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}).get("Port") or _KUBELET


def _object(resource: Resource, namespace: str, name: str) -> Json | None:
    assert resource.collection is not None
    entry = resource.collection.entries.get(resource.key(namespace, name))
    return None if entry is None else resource.object(entry.data)


def _resource(registry: Registry, name: str) -> Resource:
    found = registry.get("", "v1", name)
    assert found is not None
    return found
