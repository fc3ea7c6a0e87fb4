"""Publisher: dispatches non-resource paths to the endpoints of this package.

Documents are built on first request, and again after the registry has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING
from urllib.parse import unquote

import msgspec

from ostinato.metrics import CONTENT_TYPE
from ostinato.server.aggregation.aggregator import Aggregator
from ostinato.server.dispatch import not_allowed, not_found
from ostinato.server.flow.report import FlowReport
from ostinato.server.publish import issuer
from ostinato.server.publish.discovery import Discovery, Json
from ostinato.server.publish.document import Document
from ostinato.server.publish.health import Health
from ostinato.server.publish.issuer import Issuer
from ostinato.server.publish.metrics import Metrics
from ostinato.server.publish.version import GIT_VERSION, version_answer
from ostinato.server.publish.zpages import ZPages
from ostinato.server.request import Request, Response, text_response
from ostinato.server.request.negotiate import JSON, YAML, Form, document_form
from ostinato.server.request.present import encode, value_response
from ostinato.server.resources.registry import Registry
from ostinato.server.resources.resource import Resource
from ostinato.world import World

if TYPE_CHECKING:
    from ostinato.server.publish.openapi import OpenAPIHandler
    from ostinato.server.publish.profiles import Profiles

PROFILES = "/debug/pprof"  # prefix of the paths of profiles

_VERSIONS = ("v2", "v2beta1")  # of aggregated discovery; v2beta1 for kubectl before 1.30
_PATHS = (
    *("/api", "/apis", "/apis/", "/flagz", "/metrics", "/metrics/slis", "/openapi/v2", "/openapi/v3", "/openapi/v3/"),
    *("/statusz", "/version"),
)


class Publisher:
    """Serves the non-resource paths."""

    def __init__(
        self,
        registry: Registry,
        health: Health,
        counted: Metrics,
        signer: Issuer,
        flow: FlowReport,
        pages: ZPages,
        world: World,
        aggregator: Aggregator,
    ) -> None:
        self._registry = registry
        self._flow = flow
        self._health = health
        self._metrics = counted
        self._issuer = signer
        self._aggregator = aggregator
        self._generation: tuple[object, ...] = ()  # of what the documents were built from
        self._discovery = Discovery(iter(()))
        self._aggregated: dict[tuple[bool, str, Form], Document] = {}
        self._pages = pages
        self._world = world
        self._profiles: Profiles | None = None  # loaded on first request
        self._openapi: OpenAPIHandler | None = None  # loaded on first request, to keep the start fast

    def answer(self, request: Request) -> Response | None:
        """Return the response; None for profiles, which take time."""
        path = unquote(request.path)
        if path.startswith(PROFILES):
            return None
        generation = (self._registry.generation, *self._aggregator.generation)
        if self._generation != generation:
            self._generation = generation
            remote = self._aggregator.versions
            self._discovery = Discovery(iter(self._registry), self._aggregator.priorities, remote)
            self._aggregated.clear()
            if self._openapi is not None:
                self._openapi.changed(self._discovery)
        answer = self._health.answer(path, request) or self._pages.answer(path, request) or self._find(path)(request)
        return answer if answer is not None else text_response(404, "404 page not found\n")

    async def profile(self, request: Request) -> Response:
        """Return the response for a path below /debug/pprof."""
        if self._profiles is None:
            from ostinato.server.publish.profiles import Profiles  # noqa: PLC0415 - seldom needed

            self._profiles = Profiles(self._world)
        return await self._profiles.answer(unquote(request.path), request)

    def _find(self, path: str) -> Callable[[Request], Response | None]:
        """Find the response for a path."""
        if path in ("/", "/index.html"):
            return self._root
        if path == "/metrics":
            return self._counted
        if path == "/metrics/slis":
            return lambda _: Response(200, self._health.slis().encode(), CONTENT_TYPE)
        if (page := self._flow.page(path)) is not None:
            return page
        if path == issuer.CONFIGURATION and self._issuer.is_published:
            return lambda request: self._issuer.configuration(request) if _only_get(request) else None
        if path == issuer.KEYS and self._issuer.is_published:
            return lambda request: self._issuer.keys() if _only_get(request) else None
        if path.startswith("/openapi/"):
            return lambda request: self._described(path, request)
        parts = path.removesuffix("/").split("/")[1:]
        match parts:
            case ["version", *rest]:
                return lambda request: version_answer(request) if _only_get(request, found=not rest) else None
            case ["api"]:
                return lambda request: self._core(request) if _only_get(request) else None
            case ["apis"]:
                return lambda request: self._aggregate(request, core=False) or self._document(request, self._groups)
            case ["api", version]:
                return lambda request: self._resources(request, "", version)
            case ["apis", group]:
                return lambda request: self._document(request, lambda: self._discovery.group(group))
            case ["apis", group, version]:
                return lambda request: self._resources(request, group, version)
            case _:
                return lambda _: None

    def _root(self, request: Request) -> Response:
        """All served paths, the response of /."""
        paths = [*_PATHS, *self._issuer.paths, *self._health.paths]
        for group, versions in self._discovery.versions.items():
            if group:
                paths.append(f"/apis/{group}")
            paths += [f"/apis/{group}/{version}" if group else f"/api/{version}" for version in versions]
        return Response(200, msgspec.json.format(msgspec.json.encode({"paths": sorted(paths)}), indent=2))

    def _counted(self, request: Request) -> Response:
        """The metrics; with `name[]`, as in Prometheus' client libraries, those of these names."""
        names = request.query.get("name[]", ())
        text = self._metrics.text(self._registry, GIT_VERSION, names) + self._flow.metrics(names)
        return Response(200, text.encode(), CONTENT_TYPE)

    def _described(self, path: str, request: Request) -> Response | None:
        if self._openapi is None:
            from ostinato.server.publish.openapi import OpenAPIHandler  # noqa: PLC0415

            self._openapi = OpenAPIHandler(self._world.clock, self._aggregator)
            self._openapi.changed(self._discovery)
        return self._openapi.answer(path, request)

    # Discovery.

    def _groups(self) -> Json:
        return self._discovery.group_list()

    def _core(self, request: Request) -> Response | None:
        aggregated = self._aggregate(request, core=True)
        address = request.headers.get("host", "")
        return aggregated or self._document(request, lambda: self._discovery.core_versions(address))

    def _resources(self, request: Request, group: str, version: str) -> Response | None:
        versions = self._discovery.groups.get(group)
        builtin = not group or (versions is not None and not _custom(versions))
        if builtin:
            _only_get(request, found=versions is not None and version in versions)
        return self._document(request, lambda: self._discovery.resource_list(group, version), routed=builtin)

    def _document(self, request: Request, build: Callable[[], Json | None], *, routed: bool = False) -> Response | None:
        document = build()
        return None if document is None else value_response(document, document_form(request, routed=routed))

    def _aggregate(self, request: Request, *, core: bool) -> Response | None:
        """The aggregated document, if the client prefers it."""
        wanted = _aggregated_form(request)
        if wanted is None:
            return None
        version, form = wanted
        document = self._aggregated.get((core, version, form))
        if document is None:
            parameters = f";g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
            body = encode(self._discovery.aggregated(core=core, version=version), form)
            document = Document(body, form.content_type + parameters)
            self._aggregated[core, version, form] = document
        return document.response(request, (("Cache-Control", "public"), ("Vary", "Accept")))


def _custom(versions: Mapping[str, list[Resource]]) -> bool:
    return all(resource.custom for resources in versions.values() for resource in resources)


def _only_get(request: Request, *, found: bool = True) -> bool:
    """Return True for a GET of an existing page; raise otherwise."""
    if not found:
        raise not_found()
    if request.method != "GET":
        raise not_allowed()
    return True


def _aggregated_form(request: Request) -> tuple[str, Form] | None:
    """Version and form of aggregated discovery, if it is the client's first preference; else None."""
    for clause in request.headers.get("accept", "").split(","):
        media, *rest = (part.strip() for part in clause.split(";"))
        parameters = dict(part.split("=", 1) for part in rest if "=" in part)
        if not parameters.keys() & {"g", "v", "as"}:
            return None  # it prefers unaggregated discovery
        if (
            media in (JSON, YAML, "application/*", "*/*")
            and parameters.get("g") == "apidiscovery.k8s.io"
            and parameters.get("as") == "APIGroupDiscoveryList"
            and parameters.get("v") in _VERSIONS
        ):
            return parameters["v"], Form("yaml" if media == YAML else "json")
    return None
