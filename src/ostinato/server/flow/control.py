"""Flow control: classifies requests into flows, and admits, queues or rejects them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from ostinato.server.access.attributes import RequestAttributes, attributes_of
from ostinato.server.flow.estimate import ONE, estimate
from ostinato.server.flow.flow import Flow
from ostinato.server.flow.levels import PERIOD, Level, Levels
from ostinato.server.flow.queue_set import SeatedRequest
from ostinato.server.flow.retry_after import RejectionHistory
from ostinato.server.flow.schemas import CATCH_ALL, EXEMPT, FlowSchema, in_order
from ostinato.server.flow.shards import deal, flow_hash
from ostinato.server.flow.turns import Turns
from ostinato.server.request import Request, Response, User, text_response
from ostinato.server.request.route import Route
from ostinato.server.resources.registry import Registry
from ostinato.server.resources.resource import Resource
from ostinato.world import Timer, World

Json = dict[str, Any]

GROUP = "flowcontrol.apiserver.k8s.io"
LONG_RUNNING = frozenset({"attach", "exec", "log", "portforward", "proxy"})  # subresources without limits
WAIT_SECONDS = 15.0  # queue wait limit of a request without a timeout
MOST_WAIT_SECONDS = 60.0
_EXEMPT_SHARES = 100  # of the event loop; its seats are not limited
_REMEMBERED = 8192  # cached classifications
_READING = frozenset({"get", "list", "watch"})


class FlowSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of priority and fairness."""

    enabled: bool = True  # --enable-priority-and-fairness
    most: int = 400  # --max-requests-inflight
    most_mutating: int = 200  # --max-mutating-requests-inflight


class TooManyRequests(Exception):  # noqa: N818
    """The request is rejected: no seat is free."""

    def __init__(self, seconds: int) -> None:
        super().__init__("too many requests")
        self.seconds = seconds

    def answer(self) -> Response:
        answer = text_response(429, "Too many requests, please try again later.\n")
        answer.headers = [*answer.headers, ("Retry-After", str(self.seconds))]
        return answer


class FlowControl:
    """Flow control of one server."""

    def __init__(
        self,
        world: World,
        registry: Registry,
        turns: Turns,
        settings: FlowSettings,
        inflight: Callable[[bool], int],
    ) -> None:
        """`inflight`: returns the number of executing requests that read (True) or write (False)."""
        self._clock = world.clock
        self._registry = registry
        self._turns = turns
        self._settings = settings
        self._resources = {name: _resource(registry, name) for name in ("flowschemas", "prioritylevelconfigurations")}
        self.levels = Levels(world.clock, settings.most + settings.most_mutating, queues=settings.enabled)
        self._schemas: list[FlowSchema] = []
        self._flows: dict[Any, Flow] = {}  # by user and request attributes
        self._rejections: dict[str, RejectionHistory] = {}  # by level
        self._inflight = inflight
        self._timer: Timer | None = None
        self.reload()

    # Configuration

    def reload(self) -> None:
        """Reload FlowSchemas and PriorityLevelConfigurations from the store; without fairness they have no effect."""
        self.levels.read(self._objects("prioritylevelconfigurations"), MANDATORY_LEVELS)
        known = {schema.name: schema for schema in map(FlowSchema, self._objects("flowschemas"))}
        schemas = [schema for schema in known.values() if self._is_level(schema.level)]
        named = {schema.name for schema in schemas}
        schemas = in_order(schemas)
        if EXEMPT not in named:
            schemas.insert(0, FlowSchema(MANDATORY_SCHEMAS[EXEMPT]))
        if CATCH_ALL not in named:
            schemas.append(FlowSchema(MANDATORY_SCHEMAS[CATCH_ALL]))
        self._schemas = schemas
        self._flows.clear()

    def _is_level(self, name: str) -> bool:
        level = self.levels.by_name.get(name)
        return level is not None and not level.removed

    def _objects(self, name: str) -> Iterator[Json]:
        resource = self._resources[name]
        assert resource.collection is not None
        if not self._settings.enabled:
            return
        for entry in resource.collection.entries.values():
            yield resource.object(entry.data)

    def start(self) -> None:
        """Start the periodic computation of limits."""
        if self._settings.enabled:
            self._timer = self._clock.timer(PERIOD, self._divide)

    def _divide(self) -> None:
        self.levels.borrow()
        self._timer = self._clock.timer(PERIOD, self._divide)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    # Requests

    def classify(self, request: Request, user: User, route: Route | None) -> Flow:
        """Determine the flow of an authenticated request."""
        if not self._settings.enabled:  # the mandatory schemas, which depend on the user alone
            key: Any = (user.name, user.groups)
        elif route is None:
            key = (user.name, user.groups, request.method, request.path)
        else:
            key = (user.name, user.groups, route.namespace, route.endpoint)
        flow = self._flows.get(key)
        if flow is None:
            if len(self._flows) >= _REMEMBERED:
                self._flows.clear()
            flow = self._flows[key] = self._find(user, attributes_of(request, route))
        request.flow_headers = flow.headers
        request.line = flow.line
        return flow

    def _find(self, user: User, asked: RequestAttributes) -> Flow:
        schema = next((each for each in self._schemas if each.matches(user, asked)), None)
        if schema is None:
            schema = next(each for each in self._schemas if each.name == CATCH_ALL)
        level = self.levels.by_name[schema.level]
        distinguisher = schema.distinguish(user, asked) if level.queues > 1 else ""
        hand = deal(flow_hash(schema.name, distinguisher), level.queues, level.hand_size) if level.queues else []
        shares = _EXEMPT_SHARES if level.exempt else level.shares
        # On the event loop, users of a level without flow distinguishers have lines of their own.
        key = (schema.name, distinguisher if schema.distinguisher and not level.exempt else user.name)
        line = self._turns.queue.line(level.name, shares, key, exempt=level.exempt)
        return Flow(schema, level, distinguisher, hand, line, level.count(schema.name))

    def is_open(self, flow: Flow) -> bool:
        """Whether a request with one seat would be executed without waiting."""
        found = flow.level.set
        if found.exempt or (not found.waiting and found.seats < found.limit) or not self._settings.enabled:
            return True
        return not flow.line.seated and found.seats < 2 * found.limit

    def enter(self, flow: Flow, request: Request, route: Route | None) -> SeatedRequest | Flow | None:
        """Take seats for a request or enqueue it; None if it needs none. TooManyRequests if it is rejected.

        The caller waits for a queued request (`wait`), and releases any result but None at the end (`leave`).
        """
        if not self._settings.enabled:
            self._enter_unfairly(request, route)
            return None
        level = flow.level
        if level.exempt:
            flow.count.dispatched += 1
            return None
        resource = None if route is None else self._registry.get(route.group, route.version, route.resource)
        estimated = estimate(request, route, resource, level.most_seats)
        if estimated is ONE and level.set.take_one(flow, self._turns.began):
            return flow
        seated = level.set.start(flow, estimated, request)
        if seated is None:
            raise self._rejection(level)
        return seated

    async def wait(self, seated: SeatedRequest, seconds: float | None) -> None:
        """Wait until a queued request is dispatched. `seconds`: the client's timeout, if any."""
        assert seated.gate is not None
        limit = min(WAIT_SECONDS if seconds is None else seconds / 4, MOST_WAIT_SECONDS)
        level = seated.flow.level
        try:
            async with self._clock.timeout(limit):
                await seated.gate
        except TimeoutError:
            if seated.started < 0:
                level.set.leave(seated, timed_out=True)
                raise self._rejection(level) from None

    def leave(self, seated: SeatedRequest | Flow) -> None:
        """Release the seats of a request that finished or was cancelled while it waited."""
        if isinstance(seated, Flow):
            seated.level.set.give_one(seated)
            if seated.level.removed and seated.level.set.idle:
                self.reload()
            return
        level = seated.flow.level
        if seated.started >= 0:
            level.set.finish(seated)
        elif seated.waits:
            level.set.leave(seated, timed_out=False)
        if level.removed and level.set.idle:
            self.reload()

    def _rejection(self, level: Level) -> TooManyRequests:
        rejections = self._rejections.setdefault(level.name, RejectionHistory())
        rejections.add(int(self._clock.wall()))
        return TooManyRequests(rejections.seconds)

    def _enter_unfairly(self, request: Request, route: Route | None) -> None:
        """Without priority and fairness, limit the number of requests only."""
        reads = request.method in ("GET", "HEAD") if route is None else route.verb in _READING
        if route is not None and route.verb == "watch":
            return
        most = self._settings.most if reads else self._settings.most_mutating
        assert request.user is not None
        if most and self._inflight(reads) > most and "system:masters" not in request.user.groups:
            raise TooManyRequests(1)


def _resource(registry: Registry, name: str) -> Resource:
    found = registry.get(GROUP, "v1", name)
    assert found is not None
    return found


_ALL = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True, "namespaces": ["*"]}]
_ALL_PATHS = [{"verbs": ["*"], "nonResourceURLs": ["*"]}]


def _schema(name: str, precedence: int, groups: list[str], method: str) -> Json:
    subjects = [{"kind": "Group", "group": {"name": group}} for group in groups]
    spec: Json = {
        "priorityLevelConfiguration": {"name": name},
        "matchingPrecedence": precedence,
        "rules": [{"subjects": subjects, "resourceRules": _ALL, "nonResourceRules": _ALL_PATHS}],
    }
    if method:
        spec["distinguisherMethod"] = {"type": method}
    return {"metadata": {"name": name}, "spec": spec}


# Mandatory objects, implied if they were deleted.
MANDATORY_SCHEMAS: Mapping[str, Json] = {
    EXEMPT: _schema(EXEMPT, 1, ["system:masters"], ""),
    CATCH_ALL: _schema(CATCH_ALL, 10000, ["system:unauthenticated", "system:authenticated"], "ByUser"),
}
MANDATORY_LEVELS: Mapping[str, Json] = {
    EXEMPT: {"metadata": {"name": EXEMPT}, "spec": {"type": "Exempt", "exempt": {}}},
    CATCH_ALL: {
        "metadata": {"name": CATCH_ALL},
        "spec": {
            "type": "Limited",
            "limited": {"nominalConcurrencyShares": 5, "lendablePercent": 0, "limitResponse": {"type": "Reject"}},
        },
    },
}
