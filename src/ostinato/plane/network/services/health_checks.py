"""Health checks of load balancers: the `healthCheckNodePort` of Services with `externalTrafficPolicy: Local`.

A port answers 200 if this machine has ready endpoints of the Service, 503 if it has none, and says how many.
"""

from __future__ import annotations

import logging

import msgspec

from ostinato.api.gvk import NamespacedName
from ostinato.http.server import HttpRequest, HttpResponse, SmallHttpServer
from ostinato.kinds.core_v1 import Service
from ostinato.world import Clock

_logger = logging.getLogger("ostinato.plane.services")


class HealthChecks:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._checks: dict[NamespacedName, _Check] = {}

    async def update(self, key: NamespacedName, port: int, local: int) -> None:
        """Serve the health check of a Service. `port`: 0 for none. `local`: number of endpoints on this machine."""
        known = self._checks.get(key)
        if known is not None and known.port != port:
            del self._checks[key]
            await known.stop()
            known = None
        if known is None and port:
            known = _Check(key, port, self._clock)
            try:
                await known.start()
            except OSError as error:
                _logger.warning("cannot serve health check service=%s port=%s error=%s", key, port, error.strerror)
                return
            self._checks[key] = known
        if known is not None:
            known.local = local

    async def close(self) -> None:
        while self._checks:
            await self._checks.popitem()[1].stop()


def health_check_port(service: Service) -> int:
    """The port of a Service's health check; 0 if it has none."""
    spec = service.spec
    is_checked = spec.type == "LoadBalancer" and spec.external_traffic_policy == "Local"
    return spec.health_check_node_port or 0 if is_checked else 0


class _Check:
    def __init__(self, service: NamespacedName, port: int, clock: Clock) -> None:
        self.port = port
        self.local = 0
        self._service = service
        self._server = SmallHttpServer(self._answer, clock)

    async def start(self) -> None:
        await self._server.start("", self.port)  # on all addresses: load balancers are on other machines

    async def stop(self) -> None:
        await self._server.stop(0)

    async def _answer(self, request: HttpRequest) -> HttpResponse:  # noqa: ARG002
        content = {
            "service": {"namespace": self._service.namespace, "name": self._service.name},
            "localEndpoints": self.local,
            "serviceProxyHealthy": True,
        }
        headers = [("X-Content-Type-Options", "nosniff"), ("X-Load-Balancing-Endpoint-Weight", str(self.local))]
        status = 200 if self.local else 503
        return HttpResponse(status, msgspec.json.encode(content), "application/json", headers)
