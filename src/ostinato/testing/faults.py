"""Faults: responses, delays and lost connections that a test injects into requests.

    cluster.fail(next=Conflict, on=Deployment)                       # the next write of a Deployment
    cluster.fail(next=ServiceUnavailable, verb="list", times=3)
    cluster.fail(next=ConnectionLost, on=Deployment, processed=True) # the server has done it, the response is lost
    cluster.delay(2.0, on=Pod, verb="watch")
    cluster.lose_watches(on=Pod)

- A fault matches by kind, verb, name and namespace; each match uses it up once.
- A fault that no request has matched by the end of the test fails the test.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from ostinato.api.errors import AlreadyExists, APIError, Conflict, Invalid
from ostinato.api.gvk import GroupResource
from ostinato.api.object import plural_of
from ostinato.api.status import StatusDetails
from ostinato.client.transport.protocol import ConnectionLost, Request, Response
from ostinato.client.views import view_of
from ostinato.server.request.route import Route, parse
from ostinato.testing.transport import Whole
from ostinato.world import World

_WRITES: Final = ("create", "update", "patch", "delete", "deletecollection", "apply")
_VERBS: Final = ("get", "list", "watch", *_WRITES)
_OF_WRITES: Final = (Conflict, AlreadyExists, Invalid)  # errors that only writes have
_APPLY: Final = "application/apply-patch"

AnyError = type[Exception] | Exception
Send = Callable[[Request], Awaitable[Response]]


class Match(msgspec.Struct, frozen=True, kw_only=True):
    """What a fault applies to; what is not set matches everything. `on`: a kind, or "pods", "pods/status"."""

    on: Any = None  # Any: a class, a view or a GroupVersionKind
    verb: str = ""
    name: str = ""
    namespace: str = ""
    subresource: str | None = None

    def __post_init__(self) -> None:
        if self.verb and self.verb not in _VERBS:
            raise ValueError(f"verb {self.verb!r} does not exist; choose from {', '.join(_VERBS)}")

    @property
    def resource(self) -> tuple[GroupResource | str, str | None]:
        """Group and resource, or the resource alone; and the subresource."""
        if isinstance(self.on, str):
            resource, _, subresource = self.on.partition("/")
            return resource, subresource or self.subresource
        view = view_of(self.on)
        plural = plural_of(view.gvk.kind) if view.info is None else view.info.plural
        return GroupResource(view.gvk.group, plural), self.subresource

    def matches(self, route: Route, *, applies: bool) -> bool:
        if self.on is not None:
            resource, subresource = self.resource
            if isinstance(resource, str):
                if route.resource != resource:
                    return False
            elif (route.group, route.resource) != (resource.group, resource.resource):
                return False
            if subresource is not None and route.subresource != subresource:
                return False
        if self.verb and self.verb != route.verb and not (self.verb == "apply" and applies):
            return False
        return self.name in ("", route.name) and self.namespace in ("", route.namespace)


class Fault(ABC):
    """An injected fault. `hits`: the requests that it has met, as `verb resource namespace/name`."""

    def __init__(self, text: str, match: Match, times: int | None) -> None:
        if times is not None and times < 1:
            raise ValueError(f"times is {times}; it must be at least 1, or None for every request")
        self.hits: list[str] = []
        self._text = text
        self._match = match
        self._left = times
        self._removed = False

    def __repr__(self) -> str:
        return self._text

    @property
    def is_unused(self) -> bool:
        return not self.hits and not self._removed and self._left is not None

    def remove(self) -> None:
        """End the fault: further requests are not affected."""
        self._removed = True

    def meets(self, route: Route, *, applies: bool) -> bool:
        """Return whether the fault applies to a request, and count it."""
        if self._removed or self._left == len(self.hits) or not self._match.matches(route, applies=applies):
            return False
        key = f"{route.namespace}/{route.name}" if route.namespace else route.name
        resource = f"{route.resource}/{route.subresource}" if route.subresource else route.resource
        self.hits.append(f"{route.verb} {resource} {key}".rstrip())
        return True

    @abstractmethod
    async def before(self, route: Route) -> Response | None:
        """Called before the request is sent: returns a response in place of the server's, raises, or waits."""

    async def after(self, route: Route, answer: Response) -> Response:  # noqa: ARG002 - for subclasses
        return answer


class _Failure(Fault):
    def __init__(self, error: AnyError, match: Match, times: int | None, *, processed: bool) -> None:
        if match.verb == "" and _is_of_writes(error):
            self._verbs: tuple[str, ...] = _WRITES
        else:
            self._verbs = ()
        super().__init__(f"fail(next={_name(error)}, {_shown(match)})", match, times)
        self._error = error
        self._processed = processed

    def meets(self, route: Route, *, applies: bool) -> bool:
        return (not self._verbs or route.verb in self._verbs) and super().meets(route, applies=applies)

    async def before(self, route: Route) -> Response | None:
        return None if self._processed else self._answer(route)

    async def after(self, route: Route, answer: Response) -> Response:
        if not self._processed:
            return answer
        answer.close()
        return self._answer(route)

    def _answer(self, route: Route) -> Response:
        error = self._error if isinstance(self._error, Exception) else _made(self._error, route)
        if isinstance(error, APIError):
            return Whole(error.code, msgspec.json.encode(error.to_dict()))
        raise error


class _Delay(Fault):
    def __init__(self, seconds: float, match: Match, times: int | None, world: World) -> None:
        super().__init__(f"delay({seconds:g}, {_shown(match)})", match, times)
        self._seconds = seconds
        self._clock = world.clock

    async def before(self, route: Route) -> Response | None:  # noqa: ARG002 - of the base class
        await self._clock.sleep(self._seconds)
        return None


class Faults:
    """The faults of one cluster, and the watches that they can end."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._all: list[Fault] = []
        self._watches: dict[_Watch, Route] = {}

    def fail(self, error: AnyError, match: Match, times: int | None, *, processed: bool) -> Fault:
        if not isinstance(error, Exception) and not (isinstance(error, type) and issubclass(error, Exception)):
            raise TypeError(f"fail() next is {error!r}; pass an error, e.g. next=Conflict")
        return self._added(_Failure(error, match, times, processed=processed))

    def delay(self, seconds: float, match: Match, times: int | None) -> Fault:
        return self._added(_Delay(seconds, match, times, self._world))

    def lose_watches(self, match: Match) -> int:
        """End the open watches that match, as a lost connection does; return their number."""
        lost = [watch for watch, route in self._watches.items() if match.matches(route, applies=False)]
        for watch in lost:
            watch.lose()
        return len(lost)

    @property
    def unused(self) -> list[Fault]:
        return [each for each in self._all if each.is_unused]

    async def send(self, request: Request, send: Send) -> Response:
        route = parse(request.method, request.path, watch=request.stream)
        if route is None:
            return await send(request)
        applies = any(value.startswith(_APPLY) for name, value in request.headers if name.lower() == "content-type")
        met = [fault for fault in self._all if fault.meets(route, applies=applies)]
        for fault in met:
            if (answer := await fault.before(route)) is not None:
                return answer
        answer = await send(request)
        for fault in met:
            answer = await fault.after(route, answer)
        if route.verb == "watch" and answer.status == 200:
            watch = _Watch(answer, self._watches)
            self._watches[watch] = route
            return watch
        return answer

    def _added(self, fault: Fault) -> Fault:
        self._all.append(fault)
        return fault


class _Watch:
    """The response of a watch, which can be lost."""

    def __init__(self, inner: Response, open_: dict[_Watch, Route]) -> None:
        self.status, self.headers, self.warnings = inner.status, inner.headers, inner.warnings
        self._inner = inner
        self._open = open_
        self._lost = False

    def lose(self) -> None:
        self._lost = True
        self.close()

    async def read(self) -> bytes:
        return b"".join([chunk async for chunk in self.chunks()])

    async def chunks(self) -> AsyncIterator[bytes]:
        async for chunk in self._inner.chunks():
            yield chunk
        if self._lost:
            raise ConnectionLost("watch: connection lost by lose_watches()")

    def close(self) -> None:
        self._open.pop(self, None)
        self._inner.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _is_of_writes(error: AnyError) -> bool:
    return issubclass(error if isinstance(error, type) else type(error), _OF_WRITES)


def _made(error: type[Exception], route: Route) -> Exception:
    """Return an error of a class about a request."""
    message = f"{route.verb} {route.resource} {route.name!r}: injected by the test"
    if not issubclass(error, APIError):
        return error(message)
    return error._make(message, StatusDetails(name=route.name, group=route.group, kind=route.resource))


def _name(error: AnyError) -> str:
    return error.__name__ if isinstance(error, type) else repr(error)


def _shown(match: Match) -> str:
    values = {field: getattr(match, field) for field in match.__struct_fields__}
    texts = (f"{field}={getattr(value, '__name__', repr(value))}" for field, value in values.items() if value)
    return ", ".join(texts) or "every request"
