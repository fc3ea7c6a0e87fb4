"""Monitor of one APIService: tasks that check its availability and fetch its documents.

- Availability is checked after each change of the APIService, its Service and its endpoints, and every 30 seconds;
  sooner, with growing delays, while the server does not answer.
- Documents are fetched after each change of the APIService, its condition included, and every minute.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Final

from ostinato.server.aggregation.api_services import ApiService, ApiServices
from ostinato.server.aggregation.availability import Availability
from ostinato.server.aggregation.fetch import FetchError
from ostinato.server.aggregation.remote_discovery import RemoteDiscovery
from ostinato.server.aggregation.remote_openapi import RemoteOpenAPI
from ostinato.world import Clock
from ostinato.world.supervision import supervised

_CHECK_SECONDS: Final = 30.0
_DOCUMENT_SECONDS: Final = 60.0
_FIRST_RETRY: Final = 0.1  # seconds; doubled with each failure
_LONGEST_PAUSE: Final = 1.0  # seconds after a failure in which changes, such as that of the condition, have to wait
_logger = logging.getLogger(__name__)


class Monitor:
    """Call `start` once, then `stop`."""

    def __init__(
        self,
        name: str,
        services: ApiServices,
        availability: Availability,
        discovery: RemoteDiscovery,
        openapi: RemoteOpenAPI,
        clock: Clock,
    ) -> None:
        self._name = name
        self._services = services
        self._availability = availability
        self._discovery = discovery
        self._openapi = openapi
        self._clock = clock
        self._check = asyncio.Event()
        self._documents = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        for what, work in (("availability", self._check_forever), ("documents", self._fetch_forever)):
            name = f"{what} of {self._name}"
            self._tasks.append(loop.create_task(supervised(name, work, self._clock), name=name))

    def check(self) -> None:
        """Check the availability now."""
        self._check.set()

    def changed(self) -> None:
        """The APIService has changed."""
        self._check.set()
        self._documents.set()

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._tasks.clear()

    async def _check_forever(self) -> None:
        async def check(service: ApiService) -> bool:
            return not (await self._availability.reconcile(service)).is_retried

        await self._repeat(check, self._check, _CHECK_SECONDS)

    async def _fetch_forever(self) -> None:
        async def fetch(service: ApiService) -> bool:
            try:
                await self._discovery.refresh(service)
                if service.available:
                    await self._openapi.refresh(service)
            except FetchError as error:
                _logger.warning("documents not fetched, retrying apiservice=%s error=%s", self._name, error)
                return False
            return True

        await self._repeat(fetch, self._documents, _DOCUMENT_SECONDS)

    async def _repeat(self, work: Callable[[ApiService], Awaitable[bool]], due: asyncio.Event, seconds: float) -> None:
        """Do the work now, when it is due and at intervals; after a failure sooner."""
        failures = 0
        while (service := self._services.get(self._name)) is not None:
            due.clear()
            succeeded = await work(service)
            failures = 0 if succeeded else failures + 1
            delay = seconds if succeeded else min(_FIRST_RETRY * 2 ** min(failures - 1, 16), seconds)
            if not succeeded:
                await self._clock.sleep(min(delay, _LONGEST_PAUSE))
            with suppress(TimeoutError):
                async with self._clock.timeout(delay):
                    await due.wait()


MakeMonitor = Callable[[str], Monitor]
"""Creates the monitor of an APIService."""


def monitors(
    services: ApiServices, availability: Availability, discovery: RemoteDiscovery, openapi: RemoteOpenAPI, clock: Clock
) -> MakeMonitor:
    return partial(
        Monitor, services=services, availability=availability, discovery=discovery, openapi=openapi, clock=clock
    )
