"""Backends of APIServices: an endpoint of the Service, checked by the address guard, with its TLS context.

A writer of Services and EndpointSlices chooses the address that this server connects to with its front-proxy
certificate: loopback and link-local addresses and API servers are rejected, and the checked address is dialed.
"""

from __future__ import annotations

import ssl
from collections import OrderedDict
from typing import Final

from ostinato.http.hosts import join_host_port
from ostinato.server.aggregation.api_services import ApiService
from ostinato.server.aggregation.front_proxy import FrontProxy
from ostinato.server.backends.addresses import AddressError, AddressGuard
from ostinato.server.backends.forwarding import Backend
from ostinato.server.webhooks.target import CallError, Locate, Service
from ostinato.server.webhooks.trust import trusting, unverifying

_MOST_CONTEXTS: Final = 100


class UnresolvedError(Exception):
    """The Service has no endpoint that this server may connect to."""


class UnusableTlsError(Exception):
    """The CA bundle or the client certificate cannot be used."""


class Backends:
    def __init__(self, locate: Locate, guard: AddressGuard, proxy: FrontProxy) -> None:
        """`locate`: finds an endpoint of a Service."""
        self._locate = locate
        self._guard = guard
        self._proxy = proxy
        self._contexts: OrderedDict[tuple[object, ...], ssl.SSLContext] = OrderedDict()

    async def of(self, service: ApiService) -> Backend:
        """Raises UnresolvedError or UnusableTlsError."""
        assert service.service is not None, "remote"
        try:
            host, port = self._locate(Service(*service.service, service.port))
            addresses = await self._guard.resolve(host, port)
        except (CallError, AddressError) as error:
            raise UnresolvedError(str(error)) from None
        return Backend(
            addresses,
            port,
            host,
            self._context(service),
            authority=join_host_port(host, port),
            server_name=service.server_name,
        )

    def _context(self, service: ApiService) -> ssl.SSLContext:
        try:
            key = (service.bundle, service.insecure, self._proxy.stamp)
            context = self._contexts.get(key)
            if context is None:
                context = unverifying() if service.insecure else trusting(service.bundle)
                self._proxy.load(context)
                context.set_alpn_protocols(["http/1.1"])
                self._contexts[key] = context
                if len(self._contexts) > _MOST_CONTEXTS:
                    self._contexts.popitem(last=False)
        except (CallError, OSError) as error:
            raise UnusableTlsError(str(error)) from None
        self._contexts.move_to_end(key)
        return context
