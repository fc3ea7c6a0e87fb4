"""Webhooks: hooks together with the place where they are served, ready to be run by a manager.

    webhooks = Webhooks(check, fill_in, upgrade, endpoint=ServiceEndpoint("widgets-system", "widgets"))
    Manager().add(widgets, webhooks).run()

Certificates are made, kept in a Secret beside the Service, renewed, and made known to API servers; or they are read
from files, with `certificates="/etc/webhook"`. `webhooks.configurations()` are the manifests that make servers call.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ostinato.api import names
from ostinato.api.gvk import NamespacedName
from ostinato.api.object import kind_of
from ostinato.controllers.runnable import Surroundings
from ostinato.webhook.certificates.ca_injector import BundleTarget, CaInjector
from ostinato.webhook.certificates.certificate import CertificateSource
from ostinato.webhook.certificates.files import CertificateFiles
from ostinato.webhook.certificates.object_access import DEFINITION, MUTATING, VALIDATING, LiveObjectAccess, ObjectAccess
from ostinato.webhook.certificates.self_signed import (
    CertificateStore,
    MemoryCertificateStore,
    SecretCertificateStore,
    SelfSignedCertificates,
)
from ostinato.webhook.configuration import (
    Endpoint,
    ServiceEndpoint,
    UrlEndpoint,
    conversion,
    webhook_configurations,
)
from ostinato.webhook.conversion import Conversions
from ostinato.webhook.dispatch import Dispatcher, Hook, Limits, not_a_hook, routes
from ostinato.webhook.hooks import AdmissionHook, ConversionHook
from ostinato.webhook.server import PORT, NotServing, WebhookServer
from ostinato.world import World


class Webhooks:
    """A runnable: every replica serves, leader or not."""

    needs_leader_election = False

    def __init__(
        self,
        *hooks: Hook,
        endpoint: Endpoint,
        name: str = "webhooks",
        host: str = "",
        port: int = PORT,
        certificates: CertificateSource | Path | str | None = None,
        client_authorities: bytes = b"",
        conversions: Conversions | None = None,
        limits: Limits | None = None,
    ) -> None:
        """
        - `endpoint`: where API servers find it.
        - `name`: of the runnable and of the webhook configurations; the Secret's begins with it. Unique in a cluster.
        - `host`, `port`: where it listens. Default to all addresses, and 9443.
        - `certificates`: a directory with `tls.crt` and `tls.key`, or a source. Defaults to making certificates: kept
          in the Secret `<name>-certificates` beside the Service, or in memory for a URL.
        - `client_authorities`: PEM; callers must have a certificate of these. Defaults to none: anybody may call.
        - `conversions`: those of a scheme, to which the hooks' are added. Default to the hooks' alone.
        - `limits`: sizes, times and numbers. Default to those of `Limits`.
        """
        if problems := names.is_dns1123_subdomain(name):
            raise ValueError(f"webhooks {name!r} cannot be called so: {problems[0]}")
        if not isinstance(endpoint, Endpoint):
            raise TypeError(
                f"webhooks {name}: endpoint: give ServiceEndpoint(namespace, name) or UrlEndpoint({endpoint!r})"
            )
        self.name = name
        self.endpoint = endpoint
        self.hooks = tuple(hook for hook in hooks if isinstance(hook, AdmissionHook))
        self._host = host
        self._port = port
        self._certificates = certificates
        self._client_authorities = client_authorities
        self._limits = limits
        self._conversions = conversions or Conversions()
        self._server: WebhookServer | None = None
        routes(self.hooks)  # mistakes are noticed where they are made, not when it runs
        for hook in hooks:
            if isinstance(hook, ConversionHook):
                self._conversions.add(hook)
            elif not isinstance(hook, AdmissionHook):
                raise not_a_hook(hook)
        self._conversions.check()
        self.configurations()  # two hooks of one name are a mistake, too

    def serve_at(self, host: str, port: int) -> None:
        """Serve there instead, at a URL and with certificates made for it: for an API server on the same machine."""
        self.endpoint = UrlEndpoint(f"https://{host}:{port}")
        self._host, self._port = host, port
        self._certificates = None

    # Manifests

    def configurations(self, authorities: bytes = b"") -> list[dict[str, Any]]:
        """The webhook configurations, as manifests. Without authorities: the running server writes them."""
        return webhook_configurations(self.hooks, self.name, self.endpoint, authorities)

    def conversion(self, authorities: bytes = b"") -> dict[str, Any]:
        """The `spec.conversion` of the CustomResourceDefinitions in `definitions`."""
        return conversion(self.endpoint, authorities)

    @property
    def definitions(self) -> list[str]:
        """The names of the CustomResourceDefinitions whose versions are converted."""
        kinds = map(kind_of, self._conversions.classes)
        return sorted({f"{kind.plural}.{kind.gvk.group}" for kind in kinds})

    @property
    def secret(self) -> NamespacedName | None:
        """The Secret in which it keeps the certificates that it makes; None if it does not."""
        if self._certificates is not None or not isinstance(self.endpoint, ServiceEndpoint):
            return None
        return NamespacedName(self.endpoint.namespace, f"{self.name}-certificates")

    @property
    def injects_ca_bundle(self) -> bool:
        """Whether it tells API servers who vouches for its certificates. Of files, whoever put them there does."""
        return not isinstance(self._certificates, Path | str)

    @property
    def bundle_targets(self) -> list[BundleTarget]:
        """The objects in which the authorities are written."""
        kinds = [MUTATING if hook.mutating else VALIDATING for hook in self.hooks]
        places = [BundleTarget(kind, self.name) for kind in dict.fromkeys(kinds)]
        return [*places, *(BundleTarget(DEFINITION, name) for name in self.definitions)]

    # Running

    async def run(self, surroundings: Surroundings) -> None:
        """Serve until cancelled."""
        server = self.server(surroundings.world, LiveObjectAccess(surroundings.client.live))
        families = server.dispatcher.statistics.families
        surroundings.metrics.add(families)
        self._server = server
        try:
            await server.run()
        finally:
            self._server = None
            surroundings.metrics.remove(families)

    async def check(self) -> None:
        """For readiness: a NotServing error unless it answers."""
        if self._server is None:
            raise NotServing("webhook server has not been started yet")
        await self._server.check()

    def server(self, world: World, objects: ObjectAccess) -> WebhookServer:
        """The server as it would run in this world, on this cluster."""
        ca_injector = CaInjector(objects, self.bundle_targets) if self.injects_ca_bundle else None
        return WebhookServer(
            world,
            self._source(world, objects),
            dispatcher=self._dispatcher(world),
            ca_injector=ca_injector,
            host=self._host,
            port=self._port,
            client_authorities=self._client_authorities,
        )

    def _dispatcher(self, world: World) -> Dispatcher:
        dispatcher = Dispatcher(world, limits=self._limits, conversions=self._conversions)
        dispatcher.add(self.hooks)
        return dispatcher

    def _source(self, world: World, objects: ObjectAccess) -> CertificateSource:
        if isinstance(self._certificates, Path | str):
            return CertificateFiles(world, self._certificates)
        if self._certificates is not None:
            return self._certificates
        secret = self.secret
        store: CertificateStore = (
            MemoryCertificateStore()
            if secret is None
            else SecretCertificateStore(objects, secret.namespace, secret.name)
        )
        return SelfSignedCertificates(world, self.endpoint.hosts, store)
