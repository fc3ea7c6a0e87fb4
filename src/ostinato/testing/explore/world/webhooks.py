"""Webhooks of the operator in a world: the API server calls them in its process, without sockets and certificates.

- Every call is a point: `webhook CREATE /validate-example-dev-v1-widget default/a #1`.
- Calls go to the processes that serve, in turn. While there is none, or it has crashed, they fail as a connection does.
- Hooks run in tasks of their process, and end with it.
"""

from __future__ import annotations

import asyncio
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ostinato.client.transport.protocol import ConnectionLost
from ostinato.controllers.runnable import Dependencies
from ostinato.server.webhooks.target import CallError, Target, target_of
from ostinato.testing.explore.points import PointKind
from ostinato.webhook.dispatch import Dispatcher, WebhookRequest, WebhookResponse
from ostinato.webhook.server import NotServing
from ostinato.webhook.webhooks import Webhooks

if TYPE_CHECKING:
    from ostinato.testing.explore.world.replica import Replica
    from ostinato.testing.explore.world.run import Run


class _Request(msgspec.Struct):
    operation: str = ""
    namespace: str = ""
    name: str = ""


class _Review(msgspec.Struct):
    request: _Request = msgspec.field(default_factory=_Request)


_decoder: Final = msgspec.json.Decoder(_Review)


class ServedWebhooks:
    """The runnable that takes the place of `Webhooks` in a process of a world."""

    needs_leader_election = False

    def __init__(self, webhooks: Webhooks, replica: Replica, calls: WebhookCalls) -> None:
        self.name = webhooks.name
        self.definitions = webhooks.definitions
        self.replica = replica
        self._webhooks = webhooks
        self._calls = calls
        self._dispatcher: Dispatcher | None = None  # while it serves
        self._tasks: set[asyncio.Task[WebhookResponse]] = set()

    def serves(self, target: Target) -> bool:
        return target_of(self._webhooks.endpoint.client_config(target.path)).authority == target.authority

    async def run(self, dependencies: Dependencies) -> None:
        """Serve until cancelled."""
        self._dispatcher = self._webhooks.dispatcher(dependencies.world)
        self._context = copy_context()
        self._calls.serving.append(self)
        try:
            await asyncio.Event().wait()
        finally:
            self._calls.serving.remove(self)
            self._dispatcher = None
            for task in self._tasks:
                task.cancel()

    async def check(self) -> None:
        if self._dispatcher is None:
            raise NotServing("webhook server has not been started yet")

    async def handle(self, request: WebhookRequest) -> WebhookResponse:
        """Handle a request; ConnectionLost if the process ends first."""
        if self._dispatcher is None:
            raise ConnectionLost("the process was killed")
        loop = asyncio.get_running_loop()
        task = loop.create_task(self._dispatcher.handle(request), context=self._context)
        self._tasks.add(task)
        try:
            await asyncio.wait([task])
        finally:
            task.cancel()  # no effect if it is done
            self._tasks.discard(task)
        if task.cancelled():
            raise ConnectionLost("the process was killed")
        return task.result()


class WebhookCalls:
    """Calls of the API server. `failed`: how many had no answer."""

    def __init__(self, run: Run) -> None:
        self.serving: list[ServedWebhooks] = []
        self.failed = 0
        self._run = run
        self._turns = 0

    async def post(self, client: dict[str, Any], review: bytes, seconds: int) -> bytes:
        """See `PostReview`."""
        target = target_of(client)
        url = target.url(seconds)
        try:
            async with self._run.clock.timeout(seconds):
                response = await self._call(target, review, seconds)
        except TimeoutError:
            self.failed += 1
            raise CallError(f'Post "{url}": context deadline exceeded') from None
        except (CallError, ConnectionLost) as error:
            self.failed += 1
            raise CallError(f'Post "{url}": {"EOF" if isinstance(error, ConnectionLost) else error}') from None
        if response.status != 200:
            self.failed += 1
            raise CallError(response.body.decode(errors="replace").strip())
        return response.body

    async def _call(self, target: Target, review: bytes, seconds: int) -> WebhookResponse:
        run = self._run
        served = self._next(target)
        replica = served.replica
        point = run.arrive(PointKind.WEBHOOK, _text(target, review))
        faults = run.due(point)
        for fault in faults:
            await fault.before_review(run, replica, seconds)
        await replica.gate()

        async def read(_: int) -> bytes:
            return review

        response = await served.handle(WebhookRequest(target.path, "application/json", read, float(seconds)))
        await replica.gate()
        run.note(replica.name, "webhook", point.text.removeprefix("webhook "), str(response.status))
        for fault in faults:
            if fault.late:
                run.show(fault)
            await fault.after_review(run, replica)
        return response

    def _next(self, target: Target) -> ServedWebhooks:
        found = [each for each in self.serving if each.serves(target) and not each.replica.dead]
        if not found:
            raise CallError(f"dial tcp {target.authority}: connect: connection refused")
        self._turns += 1
        return found[self._turns % len(found)]


def _text(target: Target, review: bytes) -> str:
    request = _decoder.decode(review).request
    key = f"{request.namespace}/{request.name}" if request.namespace else request.name
    return " ".join(each for each in ("webhook", request.operation, target.path, key) if each)
