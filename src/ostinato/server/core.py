"""Core of the server: from a request to its response, without I/O.

Stages of a request: deadline, authentication, impersonation, authorization, flow control, verb. Every rejection is an
APIError, returned as a Status. The caller of `Server.handle` provides the transport.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING
from urllib.parse import unquote

from ostinato.api.errors import APIError, BadRequest, Timeout
from ostinato.api.gvk import GroupResource
from ostinato.api.time import Duration, TimeError
from ostinato.server.access.authentication.assembly import Authentication
from ostinato.server.access.authentication.settings import AuthenticationSettings
from ostinato.server.access.authorization.modes import Authorization, AuthorizationSettings
from ostinato.server.admission import AdmissionChain
from ostinato.server.admission.dependencies import PluginDependencies
from ostinato.server.admission.plugins import plugins
from ostinato.server.admission.settings import AdmissionSettings
from ostinato.server.admission.webhooks.metrics import WebhookMetrics
from ostinato.server.aggregation.aggregator import Aggregator
from ostinato.server.aggregation.front_proxy import FrontProxy
from ostinato.server.audit.settings import AuditSettings
from ostinato.server.authorize import RequestAuthorization
from ostinato.server.backends.addresses import AddressGuard
from ostinato.server.backends.headers import IdentityHeaders
from ostinato.server.controllers import flow_schemas
from ostinato.server.controllers.api_registration import ApiRegistration
from ostinato.server.controllers.bootstrap import ServerFacts, bootstrap, rules_of
from ostinato.server.controllers.expiry import Expiry
from ostinato.server.controllers.server_endpoints import ServerEndpoints
from ostinato.server.controllers.service_repair import ServiceRepair
from ostinato.server.derived_state import DerivedState
from ostinato.server.dispatch import Dispatcher, not_found
from ostinato.server.flow.control import LONG_RUNNING, FlowControl, FlowSettings
from ostinato.server.flow.flow import Flow
from ostinato.server.flow.heavy import HeavyLane
from ostinato.server.flow.queue_set import SeatedRequest
from ostinato.server.flow.report import FlowReport
from ostinato.server.flow.turns import Turns
from ostinato.server.node_agents.endpoint import NodeAgents
from ostinato.server.publish import PROFILES, Health, Issuer, Metrics, Publisher, ZPages
from ostinato.server.refusal import TIMED_OUT, refusal
from ostinato.server.request import Answer, Later, Request, Response, text_response
from ostinato.server.request.context import Context, Handler
from ostinato.server.request.known_applies import KnownApplies
from ostinato.server.request.list_body import ListCache
from ostinato.server.request.options import boolean
from ostinato.server.request.route import Route, parse
from ostinato.server.request.warning import warning_headers
from ostinato.server.resources.core.services.addresses import RANGE, USED_BY_NAME, Network
from ostinato.server.resources.core.services.locator import ServiceLocator
from ostinato.server.resources.registry import Registry
from ostinato.server.resources.resource import Resource
from ostinato.server.store.index import Index
from ostinato.server.store.local import LocalIndex
from ostinato.server.store.records import Log
from ostinato.server.verbs.get import get, get_now
from ostinato.server.verbs.subresources.pod_handlers import pod_handlers
from ostinato.server.verbs.subresources.proxy import ProxyAccess, api_servers, proxy_handlers
from ostinato.server.verbs.subresources.token_request import token_handlers
from ostinato.server.verbs.unstored import component_status
from ostinato.server.verbs.unstored.review import review_handlers
from ostinato.server.webhooks import Webhooks
from ostinato.world import World

if TYPE_CHECKING:
    from ostinato.server.audit.auditor import Auditor
    from ostinato.server.controllers.custom_resources import CustomResources

EVENT_TTL = 3600.0  # default retention time of Events, in seconds
MAX_REQUEST_SECONDS = 60.0  # maximum duration of a request in seconds, except for streams

_READING = frozenset({"get", "list", "watch"})
_DERIVED = ("/api", "/openapi")  # paths of discovery documents


class Server:
    """An API server. `start` it, let it `handle` requests, `close` it."""

    def __init__(
        self,
        world: World,
        store: Log | Index,
        *,
        admission: AdmissionSettings = AdmissionSettings(),  # noqa: B008 - frozen
        authentication: AuthenticationSettings = AuthenticationSettings(),  # noqa: B008 - frozen
        authorization: AuthorizationSettings = AuthorizationSettings(),  # noqa: B008 - frozen
        audit: AuditSettings = AuditSettings(),  # noqa: B008 - frozen
        flow: FlowSettings = FlowSettings(),  # noqa: B008 - frozen
        front_proxy: FrontProxy = FrontProxy(),  # noqa: B008 - frozen
        event_ttl: float = EVENT_TTL,
        flags: Mapping[str, str] = MappingProxyType({}),
        applies: KnownApplies | None = None,
    ) -> None:
        """`flags`: the command line, for /flagz. `applies`: results that servers in the same situations share."""
        self.world = world
        self.turns = Turns(world.clock.monotonic)
        self.lane = HeavyLane(world, self.turns)
        self.lists = ListCache()
        self._applies = applies
        self.index = store if isinstance(store, Index) else LocalIndex(store, world.clock)
        self.registry = Registry(self.index, world)
        locate = ServiceLocator(self.registry).locate
        self.webhooks = Webhooks(world.clock, locate)
        self.authentication = Authentication(authentication, self.registry, world, self.webhooks, self.handle)
        self.authenticator = self.authentication.authenticator
        self._authorization = Authorization(self.registry, world, authorization, partial(rules_of, "system:node"))
        self.authorizer = self._authorization.authorizer
        self.health = Health(self._store_fault)
        self.auditor = _auditor(audit, world, self.webhooks)
        webhook_metrics = WebhookMetrics()
        audited = () if self.auditor is None else (self.auditor.counters.families,)
        self.metrics = Metrics(world.clock.wall(), webhook_metrics.families, *audited)
        self.flow = FlowControl(world, self.registry, self.turns, flow, self.metrics.inflight)
        self.guard = AddressGuard(lambda: api_servers(self.registry), world.clock)
        identity = IdentityHeaders.of(authentication.front_proxy)
        self.aggregator = Aggregator(world, self.registry, self.index, locate, self.guard, identity, front_proxy)
        report, issuer = FlowReport(self.flow, world.clock), Issuer(self.authentication)
        pages = ZPages(world.clock, flags)
        self.publisher = Publisher(
            self.registry, self.health, self.metrics, issuer, report, pages, world, self.aggregator
        )
        self.admission = AdmissionChain(
            plugins(
                PluginDependencies(world, self.registry, self.authorizer, self.webhooks, webhook_metrics, admission)
            )
        )
        self.nodes = NodeAgents()
        passage = ProxyAccess(self.guard, identity, self.authorizer)
        self.dispatcher = Dispatcher(
            {
                **pod_handlers(self.registry, self.nodes, self.authorizer),
                **proxy_handlers(self.registry, self.nodes, passage, world),
                **review_handlers(self.authenticator, self.authorizer),
                **token_handlers(self.authentication),
                **component_status.HANDLERS,
            }
        )
        events = self.registry.get("", "v1", "events")
        assert events is not None
        assert events.collection is not None
        # A shared store has leases of its own.
        self._expiry = None if self.index.is_shared else Expiry(self.index, events.collection, world.clock, event_ttl)
        for group, name in USED_BY_NAME:  # so that the index has them
            self.registry.get(group, "v1", name)
        self._service_repair = ServiceRepair(self.index, world)
        self._endpoints = ServerEndpoints(world, self.index, self.registry)
        self._definitions = self.registry.get("apiextensions.k8s.io", "v1", "customresourcedefinitions")
        assert self._definitions is not None
        self._registration = ApiRegistration(
            world, self.index, self.aggregator.services, self.aggregator.availability, self._custom_versions
        )
        # By resource: called after a write and before its response, to make dependent writes.
        self._settles: dict[GroupResource, Callable[[], Awaitable[None]]] = {
            **flow_schemas.reconciles_after_write(self.registry, self.index, world, self.flow.reload),
            self._definitions.group_resource: self._settle_definitions,
            self.aggregator.services.resource.group_resource: self._registration.reconcile,
        }
        self._derived = DerivedState(
            self.index,
            (
                (resource.collection, settle)
                for name, settle in self._settles.items()
                for resource in self.registry.of_any_version(name)
                if resource.collection is not None
            ),
        )
        self._access = RequestAuthorization(self.authenticator, self.authorizer, self.flow, self._derived, self.auditor)
        self._custom_resources: CustomResources | None = None  # loaded with the first definition
        self._builtin_groups = self.registry.groups

    async def start(
        self,
        address: str = "127.0.0.1",
        port: int = 6443,
        *,
        tracks_tokens: bool = False,
        asks_kubelets: bool = False,
        service_ranges: Sequence[Network] = (RANGE,),
        bootstrapped: bool = False,
        shares_address: bool = False,
    ) -> None:
        """Create the bootstrap objects and start. `address` and `port` are where clients reach the server.

        `tracks_tokens`: record in a ConfigMap since when the use of Secret-based tokens is tracked, for
        kube-controller-manager.
        `asks_kubelets`: grant this server's own user access to the agents of nodes.
        `service_ranges`: ranges of the cluster IPs, if the store has none yet: one of each IP family, that of the
        default family first. A store with a range of one family gets that of the other.
        `shares_address`: other processes serve there as well, and stay when this one stops.
        `bootstrapped`: the store has all bootstrap objects, unchanged, of a server with the same arguments.
        """
        self.guard.serve(port)
        if not bootstrapped:
            about = ServerFacts(address, port, tracks_tokens, asks_kubelets, service_ranges)
            await bootstrap(self.world, self.index, self.registry, about)
            self.flow.reload()
        await self._service_repair.start()
        if self.index.is_shared:
            await self._endpoints.start(address, port, releases=not shares_address)
        self.aggregator.start()
        await self._settle_definitions()
        if self._expiry is not None:
            self._expiry.start()
        self.flow.start()
        self.authentication.start()
        self._authorization.start()
        self.index.drop_history()  # no client can resume a watch from a bootstrap write

    def serve_usage(self) -> None:
        """Serve metrics.k8s.io from the measurements of node agents."""
        from ostinato.server.verbs.unstored import resource_usage  # noqa: PLC0415 - loads only where it is needed

        if self.registry.has_group(resource_usage.GROUP):
            return
        for resource, handlers in resource_usage.usage_resources(self.registry, self.nodes):
            self.dispatcher.add(handlers)
            self.registry.add(resource)

    def handle_now(self, request: Request) -> Response | Later | None:
        """Handle a get of one object without a task; None if that is not possible, and for all other requests.

        The stages and the response are those of `handle`, without a task and a seat. Before it returns None it changes
        nothing but the request's own attributes, so that `handle` can start over. With a store that has other writers
        the response comes later, once everything acknowledged is effective here.
        """
        if self.auditor is not None or (route := _route_of_get(request)) is None:
            return None
        if self.index.is_shared:
            return partial(self._get_later, request, route)
        return self._get_now(request, route, self.turns.began)

    def _get_later(self, request: Request, route: Route, answered: Callable[[Response | None], None]) -> None:
        self.index.when_current(partial(self._get_current, request, route, self.turns.began, answered))

    def _get_current(
        self,
        request: Request,
        route: Route,
        began: float,
        answered: Callable[[Response | None], None],
        problem: str | None,
    ) -> None:
        """Answer a get. `handle` reports a problem, to those who may know."""
        response = None
        if problem is None and not self._derived.is_reconciling:
            response = self._get_now(request, route, began)
        request.was_tried = response is None
        answered(response)

    async def _get_fresh(self, request: Request) -> Response | None:
        """Like `handle_now`, for a store with other writers, once everything acknowledged is effective here."""
        route = _route_of_get(request)
        if route is None:
            return None
        began = self.world.clock.monotonic()
        try:
            await self._derived.catch_up()
        except APIError:
            return None  # reported by `handle`, to those who may know
        return self._get_now(request, route, began)

    def _get_now(self, request: Request, route: Route, began: float) -> Response | None:
        if self.aggregator.claim(route.group, route.version) is not None:
            return None
        flow = None
        try:
            flow = self._access.authorize_now(request, route)
            if flow is None or not self.flow.is_open(flow):
                return None
            found = self._find(request, route)
            if found is None or found[0] is not get or found[1].conversion is not None:
                return None
            response = get_now(self._context(request, route, found[1]))
            if response is None:
                return None
        except Exception as error:  # noqa: BLE001 - reported to the client
            response = refusal(request, error)
        if flow is not None:
            flow.count.dispatched += 1
        self.metrics.count("GET", request.route, response.status, self.world.clock.monotonic() - began)
        headers = _headers(request)
        response.headers = [*response.headers, *headers] if response.headers else headers  # it is not shared
        return response

    async def handle(self, request: Request) -> Answer:
        """Answer a request. Raises nothing but cancellation."""
        if self.index.is_shared and self.auditor is None and not request.was_tried:
            response = await self._get_fresh(request)
            if response is not None:
                return response
        began = self.world.clock.monotonic()
        self.metrics.begin(request.method)
        code = _GONE
        seated: SeatedRequest | Flow | None = None
        try:
            known = request.line
            route = parse(request.method, request.path, watch=bool(request.query_string) and _watches(request))
            seconds = _deadline(request, route) if "timeout=" in request.query_string else None
            flow = await self._access.authorize(request, route)
            if self.turns.busy and known is not (line := request.line) and line and not self.turns.may_run(line):
                await self.world.clock.sleep(0)  # the flow was not known earlier
            is_limited = route.subresource not in LONG_RUNNING if route else not request.path.startswith(PROFILES)
            if is_limited:
                seated = self.flow.enter(flow, request, route)
                if isinstance(seated, SeatedRequest) and seated.gate is not None:
                    await self.flow.wait(seated, seconds)
            else:
                request.flow_headers = ()  # not limited
            if route is None:
                answer: Answer = await self._answer_page(request)
            elif seconds is None:
                answer = await self._answer(request, route)
            else:
                answer = await self._answer_within(seconds, request, route)
            code = answer.status
        except Exception as error:  # noqa: BLE001 - reported to the client
            answer = refusal(request, error)
            code = answer.status
        finally:
            if seated is not None:
                self.flow.leave(seated)
            self.metrics.end(request.method, request.route, code, self.world.clock.monotonic() - began)
            if code == _GONE and self.auditor is not None and request.audit is not None:
                await self.auditor.abandoned(request.audit)
        headers = _headers(request)
        if headers:
            answer = answer.with_headers(headers)
        if self.auditor is not None and request.audit is not None:
            return await self.auditor.answered(request, answer)
        return answer

    async def _answer_page(self, request: Request) -> Answer:
        """Answer a request for a non-resource path."""
        if self.index.is_shared and request.path.startswith(_DERIVED):
            await self._derived.catch_up()
        claim = self.aggregator.claim_document(unquote(request.path))
        if claim is not None:
            return await self.aggregator.forward(claim, request)
        return self.publisher.answer(request) or await self.publisher.profile(request)

    async def _answer_within(self, seconds: float, request: Request, route: Route) -> Answer:
        try:
            async with self.world.clock.timeout(seconds):
                return await self._answer(request, route)
        except TimeoutError:
            raise Timeout.of(TIMED_OUT, 0) from None

    async def _answer(self, request: Request, route: Route) -> Answer:
        age, warned = self._derived.age, len(request.warnings)
        try:
            answer = await self._attempt(request, route)
            if answer is not None or not await self._derived.was_behind(age, 404):
                return answer or text_response(404, "404 page not found\n")
        except APIError as error:
            if not await self._derived.was_behind(age, error.code):
                raise
        del request.warnings[warned:]
        return await self._attempt(request, route) or text_response(404, "404 page not found\n")

    async def _attempt(self, request: Request, route: Route) -> Answer | None:
        """Run the verb of a route, here or on an extension server; None if there is no such page."""
        claim = self.aggregator.claim(route.group, route.version)
        if claim is not None and not route.unserved:
            request.route = route
            return await self.aggregator.forward(claim, request)
        found = self._find(request, route)
        if found is None:
            return None
        verb, resource = found
        context = self._context(request, route, resource)
        try:
            answer: Answer = await verb(context)
        except APIError:
            if route.verb not in _READING:  # the error may depend on a write that is not durable yet
                await self.index.wait_pending()
            raise
        if route.verb not in _READING:
            # A terminating definition is removed with its last object.
            settle = self._settle_definitions if resource.terminating else self._settles.get(resource.group_resource)
            if settle is not None:
                await settle()
        return answer

    def _find(self, request: Request, route: Route) -> tuple[Handler, Resource] | None:
        """Find the verb and the resource of a route; None if there is no such page."""
        resource = self.registry.get(route.group, route.version, route.resource)
        if resource is None:
            if route.group in self._builtin_groups:
                raise not_found()
            return None
        verb = self.dispatcher.verb_of(resource, request.method, route)
        return None if verb is None else (verb, resource)

    def _context(self, request: Request, route: Route, resource: Resource) -> Context:
        request.route = route
        if resource.warnings:
            request.warnings.extend(resource.warnings)
            request.annotate("k8s.io/deprecated", "true")
        return Context(
            self.world, self.index, request, route, resource, self.admission, self.lane, self.lists, self._applies
        )

    async def _settle_definitions(self) -> None:
        """Reconcile the served custom resources; the controller is loaded with the first definition."""
        assert self._definitions is not None
        assert self._definitions.collection is not None
        if self._custom_resources is None:
            if not self._definitions.collection.entries:
                await self._registration.reconcile()
                return
            from ostinato.server.controllers.custom_resources import CustomResources  # noqa: PLC0415

            ask = self.webhooks.post_review
            self._custom_resources = CustomResources(self.world, self.index, self.registry, ask, self.lane)
        await self._custom_resources.reconcile()
        await self._registration.reconcile()

    def _custom_versions(self) -> Collection[tuple[str, str]]:
        return () if self._custom_resources is None else self._custom_resources.group_versions

    def _store_fault(self) -> str | None:
        """The failure of the store, for health checks; None if it is healthy.

        A full disk is not reported, as with etcd: reads still work, and a restart by a liveness probe frees no space.
        """
        return None if self.index.is_full else self.index.failure

    async def close(self) -> None:
        """Finish pending writes, end the watches, close the store."""
        self.health.stop()
        self.aggregator.close()
        self.authentication.close()
        if self._expiry is not None:
            self._expiry.close()
        self._service_repair.close()
        await self._endpoints.close()
        self._derived.close()
        await self._authorization.close()
        self.lane.close()
        self.flow.close()
        await self.index.close()
        if self.auditor is not None:
            await self.auditor.close()  # after the watches, whose end is an event
        self.webhooks.close()


def _auditor(settings: AuditSettings, world: World, webhooks: Webhooks) -> Auditor | None:
    """Create the auditor; None, without loading it, if auditing is disabled."""
    if not settings.enabled:
        return None
    from ostinato.server.audit.auditor import Auditor  # noqa: PLC0415 - see above

    return Auditor(settings, world, webhooks.call)


_GONE = 499  # status code in metrics for requests whose client disconnected


def _headers(request: Request) -> Sequence[tuple[str, str]]:
    """The headers of flow control, and the warnings."""
    headers = request.flow_headers
    return [*headers, *warning_headers(request.warnings)] if request.warnings else headers


def _route_of_get(request: Request) -> Route | None:
    """Return the route of a get of one object without options; None for other requests."""
    if request.method != "GET" or request.query_string:
        return None
    route = parse("GET", request.path, watch=False)
    return None if route is None or route.verb != "get" or route.subresource in LONG_RUNNING else route


def _watches(request: Request) -> bool:
    if "watch" not in request.query_string and "%" not in request.query_string:
        return False
    values = request.query.get("watch")
    return values is not None and boolean(values[0])


def _deadline(request: Request, route: Route | None) -> float | None:
    """The timeout that the client requests, in seconds; None for streams. BadRequest if it cannot be parsed."""
    text = request.parameter("timeout")
    if not text or (route is not None and (route.verb == "watch" or route.subresource in LONG_RUNNING)):
        return None
    try:
        seconds = Duration.parse(text).seconds
    except TimeError as error:
        raise BadRequest.of(f"invalid timeout specified in the request URL - {error}") from error
    return seconds if 0 < seconds < MAX_REQUEST_SECONDS else None
