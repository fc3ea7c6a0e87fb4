"""Proxy: the API server as a playbook sees it, on a loopback port of this process.

- Every request needs the token of a current run, which only the private kubeconfig of the run has. Other users of the
  machine can connect, and get 401.
- Created objects get an owner reference to the object that is reconciled, or operator-sdk's annotations where a
  reference cannot reach. So do objects of a server-side apply. Requests of kinds that cannot be watched, such as access
  reviews, pass unchanged.
- Kinds of dependents are watched from then on, so that their changes enqueue the owner. After a restart, the first read
  or write of a dependent starts its watch again.
- Reads are served from the cache where the kind is watched (`cached`), with the header `X-Cache: HIT`.
- Watches, exec, attach and port-forward are refused: modules of Ansible poll.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote

import msgspec

from ostinato.api import accessors as access
from ostinato.api.errors import APIError
from ostinato.api.gvk import NamespacedName
from ostinato.api.object import KindInfo
from ostinato.api.owners import set_owner_reference
from ostinato.api.status import Status
from ostinato.api.wire import DecodeError, decode_json
from ostinato.api.wire.yaml import decode_yaml
from ostinato.client.client import Client
from ostinato.client.discovery.discovery import ApiResource
from ostinato.client.transport.protocol import Request, TransportError
from ostinato.frontends.roles.proxy.cached import CachedReads
from ostinato.frontends.roles.proxy.route import Route, parse_route
from ostinato.frontends.roles.proxy.session import Session, Sessions
from ostinato.frontends.watches.dependents import belongs_to, owner_annotations, supports_reference
from ostinato.http.server import BodyTooLarge, HttpRequest, HttpResponse, SmallHttpServer

Json = dict[str, Any]
WatchDependent = Callable[[Session, KindInfo], None]

_MAX_BODY: Final = 32 * 1024 * 1024
_STOP_SECONDS: Final = 1.0
_JSON: Final = "application/json"
_APPLY: Final = "application/apply-patch+yaml"
_WATCHABLE: Final = frozenset({"get", "list", "watch"})
_FORWARDED: Final = ("accept", "content-type")
_logger = logging.getLogger("ostinato.frontends.roles")


class Proxy:
    def __init__(self, client: Client, reads: CachedReads, watch: WatchDependent) -> None:
        """
        - `client`: whose credentials proxied requests have.
        - `watch`: called for each kind of which a run has a dependent.
        """
        self._client = client
        self._reads = reads
        self._watch = watch
        self.sessions = Sessions(client.world.ids)
        self._server = SmallHttpServer(self._handle, client.world.clock)

    async def start(self) -> None:
        await self._server.start("127.0.0.1", 0)

    async def stop(self) -> None:
        await self._server.stop(_STOP_SECONDS)

    @property
    def url(self) -> str:
        host, port = self._server.address
        return f"http://{host}:{port}"

    async def _handle(self, request: HttpRequest) -> HttpResponse:
        session = self.sessions.find(request.headers.get("authorization", ""))
        if session is None:
            return _failure(401, "Unauthorized", "Unauthorized")
        if "upgrade" in request.headers or request.query.get("watch", ["false"])[0] in ("true", "1", "True"):
            return _failure(501, "NotImplemented", "the proxy of roles does not support watches and streams; poll")
        try:
            body = await request.read(_MAX_BODY)
            return await self._answer(session, request, body)
        except BodyTooLarge:
            return _failure(413, "RequestEntityTooLarge", f"the body is larger than {_MAX_BODY} bytes")
        except APIError as error:
            return _failure(error.code, error.reason, error.message)
        except TransportError as error:
            return _failure(502, "BadGateway", str(error))

    async def _answer(self, session: Session, request: HttpRequest, body: bytes) -> HttpResponse:
        route = parse_route(request.path)
        resource = None if route is None else await self._resource(route)
        if route is None or resource is None:
            return await self._forwarded(request, body)
        if request.method == "GET" and _accepts_json(request):
            found = self._reads.read(resource.info, route, request.query)
            if found is not None:
                self._notice(session, resource, found)
                return HttpResponse(200, msgspec.json.encode(found), _JSON, (("X-Cache", "HIT"),))
        if _WATCHABLE.issubset(resource.verbs) and not route.subresource:
            body = self._injected(session, request, resource.info, route, body)
        answer = await self._forwarded(request, body)
        self._observe(session, request.method, route, resource, answer)
        return answer

    async def _resource(self, route: Route) -> ApiResource | None:
        """Return the resource of a path, from discovery; read again if it is not known: a definition may be new."""
        mapper = self._client.mapper
        for is_last in (False, True):
            for version in (await mapper.catalogue()).versions:
                if version.version == route.version:
                    found = next((each for each in version.resources if each.info.plural == route.plural), None)
                    if found is not None:
                        return found
            if not is_last:
                await mapper.refresh()
        return None

    async def _forwarded(self, request: HttpRequest, body: bytes) -> HttpResponse:
        headers = [(name, request.headers[name]) for name in _FORWARDED if name in request.headers]
        query = [(name, value) for name, values in request.query.items() for value in values]
        path = quote(request.path, safe="/:@!$&'()*+,;=~")
        async with await self._client.transport.request(
            Request(request.method, path, query=query, headers=headers, body=body)
        ) as response:
            content = await response.read()
            warnings = [("Warning", f'299 - "{text}"') for text in response.warnings]
            return HttpResponse(response.status, content, response.headers.get("content-type", _JSON), warnings)

    def _injected(self, session: Session, request: HttpRequest, kind: KindInfo, route: Route, body: bytes) -> bytes:
        """Return the body of a request that may create an object, with the owner in it."""
        content_type = request.headers.get("content-type", _JSON).partition(";")[0].strip()
        is_apply = request.method == "PATCH" and content_type == _APPLY
        if not is_apply and (request.method != "POST" or route.name):
            return body
        try:
            dependent = decode_yaml(body) if content_type in (_APPLY, "application/yaml") else decode_json(body)
        except DecodeError:
            return body  # the server explains it; or it is protobuf
        if not isinstance(dependent, dict) or access.uid(session.owner) == "":
            return body
        if _is_same(dependent, session.owner, kind, route):
            return body
        metadata = access.writable_metadata(dependent)
        if route.namespace:
            metadata.setdefault("namespace", route.namespace)
        if supports_reference(session.kind, access.namespace(session.owner), kind, route.namespace):
            set_owner_reference(session.owner, dependent)
        else:
            metadata["annotations"] = {**(metadata.get("annotations") or {}), **owner_annotations(session.owner)}
        return msgspec.json.encode(dependent)

    def _observe(
        self, session: Session, method: str, route: Route, resource: ApiResource, answer: HttpResponse
    ) -> None:
        """Record a write, and watch the kind of a dependent."""
        if method == "DELETE" and answer.status < 300:
            self._reads.deleted(resource.info, NamespacedName(route.namespace, route.name))
            return
        if answer.status >= 300 or not answer.content_type.startswith(_JSON):
            return
        try:
            found = decode_json(answer.body)
        except DecodeError:
            return
        if isinstance(found, dict) and not route.subresource:
            if method != "GET":
                self._reads.wrote(resource.info, found)
            self._notice(session, resource, found)

    def _notice(self, session: Session, resource: ApiResource, found: Json) -> None:
        """Watch the kind of a dependent, or of one in a list."""
        items = found.get("items")
        each = items if isinstance(items, list) else [found]
        if _WATCHABLE.issubset(resource.verbs) and any(
            belongs_to(one, session.owner) for one in each if isinstance(one, dict)
        ):
            self._watch(session, resource.info)


def _is_same(dependent: Json, owner: Json, kind: KindInfo, route: Route) -> bool:
    """Whether a request is about the owner itself."""
    name = route.name or access.name(dependent)
    return kind.gvk.group_kind == access.gvk(owner).group_kind and access.key(owner) == NamespacedName(
        route.namespace, name
    )


def _accepts_json(request: HttpRequest) -> bool:
    accept = request.headers.get("accept", "*/*")
    return "as=" not in accept and ("json" in accept or "*/*" in accept)


def _failure(code: int, reason: str, message: str) -> HttpResponse:
    status = Status(message=message, reason=reason, code=code)
    return HttpResponse(code, msgspec.json.encode(status.to_dict()), _JSON)
