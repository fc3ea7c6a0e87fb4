"""Users of a world: their connection to the server that is running now, and what they see of the operator's work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec

from ostinato.api.errors import APIError
from ostinato.client.transport.protocol import Request, Response, WebSocket
from ostinato.server.core import Server
from ostinato.server.in_process.transport import InProcessTransport
from ostinato.testing.explore.scenario import ObjectStep
from ostinato.testing.explore.world.disk import Place
from ostinato.testing.explore.world.objects import Metadata
from ostinato.testing.explore.world.webhooks import WebhookCalls
from ostinato.world import Clock

if TYPE_CHECKING:
    from ostinato.testing.explore.world.run import Run


_TRIES: Final = 60
_PAUSE: Final = 1.0  # seconds between them


class UserTransport:
    """The connection of users. They try again while a webhook of the operator does not answer, and on a new server."""

    host = "server"

    def __init__(self, server: Callable[[], Server], calls: WebhookCalls, clock: Clock) -> None:
        self._server = server
        self._calls = calls
        self._clock = clock
        self._inner: tuple[Server, InProcessTransport] | None = None

    async def request(self, request: Request) -> Response:
        for _ in range(_TRIES):
            failed, server = self._calls.failed, self._server()
            response = await self._current().request(request)
            if response.status < 500 or (failed == self._calls.failed and server is self._server()):
                break
            response.close()
            await self._clock.sleep(_PAUSE)
        return response

    async def websocket(self, request: Request, protocols: Sequence[str]) -> WebSocket:
        return await self._current().websocket(request, protocols)

    async def close(self) -> None:
        if self._inner is not None:
            await self._inner[1].close()

    def _current(self) -> InProcessTransport:
        server = self._server()
        if self._inner is None or self._inner[0] is not server:
            self._inner = (server, InProcessTransport(server, user_agent="kubectl"))
        return self._inner[1]


def scenario_objects(run: Run) -> list[tuple[Place, Metadata]]:
    """Return the objects that the scenario has created, as far as they exist."""
    names = {(each.gvk, each.name) for each in run.subject.scenario if isinstance(each, ObjectStep)}
    kinds = run.objects.kinds
    return [
        (place, metadata)
        for place, metadata in run.objects.metadata.items()
        if place[0] in kinds and (kinds[place[0]], metadata.name) in names
    ]


def stale_statuses(run: Run) -> list[str]:
    """Return the objects of the scenario whose status is about an earlier generation."""
    found = []
    for place, metadata in scenario_objects(run):
        status = msgspec.json.decode(run.disk.objects[place][1]).get("status") or {}
        observed = status.get("observedGeneration")
        if observed and observed != metadata.generation and not metadata.deletion_timestamp:
            found.append(f"{place[0]} {place[1]}: observedGeneration {observed}, generation {metadata.generation}")
    return found


def owned(run: Run) -> list[Place]:
    """Return the objects with an owner, as far as they exist."""
    return [
        place
        for place, metadata in run.objects.metadata.items()
        if metadata.owner_references and not metadata.deletion_timestamp and place[0] in run.objects.kinds
    ]


async def delete(run: Run, place: Place) -> None:
    """Delete an object."""
    metadata = run.objects.metadata.get(place)
    if metadata is not None:
        client = run.client.in_namespace(metadata.namespace) if metadata.namespace else run.client
        with suppress(APIError):
            await client.delete(run.view(run.objects.kinds[place[0]]), metadata.name, missing_ok=True)
