"""Serving: the webhook server of hooks, registered with the cluster."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from ostinato.api.errors import APIError
from ostinato.certificates.certificate import CertificateSource
from ostinato.certificates.files import CertificateFiles
from ostinato.certificates.object_access import LiveObjectAccess
from ostinato.certificates.self_signed import (
    CertificateStore,
    MemoryCertificateStore,
    SecretCertificateStore,
    SelfSignedCertificates,
)
from ostinato.client.transport.protocol import TransportError
from ostinato.controllers.runnable import Dependencies
from ostinato.frontends.hooks.hook import Hook
from ostinato.frontends.hooks.webhooks.dispatcher import Execute, HookDispatcher
from ostinato.frontends.hooks.webhooks.registration import configurations, convert_by, register, targets
from ostinato.webhook.ca_injector import CaInjector
from ostinato.webhook.configuration import Endpoint, ServiceEndpoint, UrlEndpoint
from ostinato.webhook.server import WebhookServer
from ostinato.world import World
from ostinato.world.supervision import supervised

PORT: Final = 9680
_RETRY_SECONDS: Final = 5.0
_logger = logging.getLogger("ostinato.frontends")


class WebhookOptions(msgspec.Struct, frozen=True, kw_only=True):
    """
    - `endpoint`: how API servers reach the webhooks. Defaults to None: at the loopback address, for an API server on
      the same machine.
    - `host`, `port`: the address to listen on. Default to all addresses, or loopback without an endpoint, and 9680.
    - `certificates`: directory with tls.crt and tls.key; its provider injects the CA bundle. Defaults to "":
      self-signed certificates, in a Secret beside the Service of the endpoint.
    - `name`: of the webhook configurations. Defaults to "ostinato-hooks".
    """

    endpoint: Endpoint | None = None
    host: str = ""
    port: int = PORT
    certificates: str = ""
    name: str = "ostinato-hooks"

    @property
    def address(self) -> tuple[str, int]:
        return self.host or ("127.0.0.1" if self.endpoint is None else ""), self.port

    @property
    def reached_at(self) -> Endpoint:
        return self.endpoint or UrlEndpoint(f"https://127.0.0.1:{self.port}")


class HookWebhooks:
    def __init__(self, dependencies: Dependencies, options: WebhookOptions, execute: Execute) -> None:
        self._dependencies = dependencies
        self._options = options
        self._dispatcher = HookDispatcher(dependencies.world, execute)
        self._server: WebhookServer | None = None
        self._certificates: CertificateSource | None = None
        self._injector: CaInjector | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def serve(self, hooks: Iterable[Hook]) -> None:
        """Serve the webhooks of these hooks from now on; register them. No effect if there are none."""
        used = [each for each in hooks if each.config.has_webhooks]
        self._dispatcher.use(used)
        if not used and self._server is None:
            return
        options, client = self._options, self._dependencies.client.live
        wanted = configurations(used, options.name, options.reached_at)
        await register(client, wanted, {})
        await self._stop_tasks()
        missing = [each for each in self._dispatcher.definitions if not await self._convert(each)]
        if self._server is not None:
            await self._server.stop()
        self._server = self._new_server(wanted)
        await self._server.start()
        loop = asyncio.get_running_loop()
        clock = self._dependencies.world.clock
        watch = supervised("webhook certificates of hooks", self._server.watch_certificates, clock)
        self._tasks = [loop.create_task(watch, name="hooks: certificates")]
        if missing:
            convert = supervised("conversions of hooks", partial(self._convert_later, missing), clock)
            self._tasks.append(loop.create_task(convert, name="hooks: conversions"))

    async def stop(self) -> None:
        await self._stop_tasks()
        if self._server is not None:
            server, self._server = self._server, None
            await server.stop()

    def _new_server(self, wanted: list[dict[str, object]]) -> WebhookServer:
        options, world = self._options, self._dependencies.world
        objects = LiveObjectAccess(self._dependencies.client.live)
        injector = CaInjector(objects, targets(wanted, self._dispatcher.definitions))
        self._injector = None if options.certificates else injector
        self._certificates = self._certificates or self._source(world, objects)
        host, port = options.address
        return WebhookServer(
            world,
            self._certificates,
            dispatcher=self._dispatcher,
            ca_injector=self._injector,
            host=host,
            port=port,
        )

    def _source(self, world: World, objects: LiveObjectAccess) -> CertificateSource:
        options = self._options
        if options.certificates:
            return CertificateFiles(world, Path(options.certificates))
        endpoint = options.reached_at
        store: CertificateStore = MemoryCertificateStore()
        if isinstance(endpoint, ServiceEndpoint):
            store = SecretCertificateStore(objects, endpoint.namespace, f"{options.name}-certificates")
        return SelfSignedCertificates(world, endpoint.hosts, store)

    async def _convert(self, definition: str) -> bool:
        return await convert_by(self._dependencies.client.live, definition, self._options.reached_at)

    async def _convert_later(self, missing: list[str]) -> None:
        """Wait for definitions that do not exist yet."""
        _logger.warning("waiting for CustomResourceDefinitions with conversions names=%s", ",".join(missing))
        while missing:
            await self._dependencies.world.clock.sleep(_RETRY_SECONDS)
            with suppress(APIError, TransportError):
                missing = [each for each in missing if not await self._convert(each)]
                await self._inject()

    async def _inject(self) -> None:
        """Write the CA bundle into definitions that have got their conversion."""
        if self._injector is not None and self._certificates is not None:
            await self._injector.inject((await self._certificates.current()).authorities)

    async def _stop_tasks(self) -> None:
        tasks, self._tasks = self._tasks, []
        for each in tasks:
            each.cancel()
        if tasks:
            await asyncio.wait(tasks)
