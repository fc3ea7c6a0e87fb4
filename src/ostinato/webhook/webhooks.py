"""Webhooks: hooks with their server and endpoint, as a runnable for a manager.

    webhooks = Webhooks(check, fill_in, upgrade, endpoint=ServiceEndpoint("widgets-system", "widgets"))
    Manager().add(widgets, webhooks).run()

Certificates are generated, stored in a Secret beside the Service, renewed, and their CA bundle is injected; or they are
read from files, with `certificates="/etc/webhook"`. `webhooks.configurations()` returns the webhook configurations.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ostinato.api.gvk import NamespacedName
from ostinato.api.object import kind_of
from ostinato.api.validation import names
from ostinato.certificates.certificate import CertificateSource
from ostinato.certificates.files import CertificateFiles
from ostinato.certificates.object_access import DEFINITION, MUTATING, VALIDATING, LiveObjectAccess, ObjectAccess
from ostinato.certificates.self_signed import (
    CertificateStore,
    MemoryCertificateStore,
    SecretCertificateStore,
    SelfSignedCertificates,
)
from ostinato.controllers.runnable import Dependencies
from ostinato.webhook.ca_injector import BundleTarget, CaInjector
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
        - `endpoint`: how API servers reach it.
        - `name`: of the runnable and the webhook configurations, and prefix of the Secret's; unique in a cluster.
          Defaults to "webhooks".
        - `host`, `port`: the address to listen on. Default to all addresses, and 9443.
        - `certificates`: a directory with `tls.crt` and `tls.key`, or a source. Defaults to self-signed certificates:
          stored in the Secret `<name>-certificates` beside the Service, or in memory for a URL.
        - `client_authorities`: PEM; require client certificates of these. Defaults to none: any client may call.
        - `conversions`: conversions of a scheme, in addition to the hooks. Defaults to none.
        - `limits`: sizes, times and concurrency. Default to those of `Limits`.
        """
        if problems := names.is_dns1123_subdomain(name):
            raise ValueError(f"Webhooks() invalid name {name!r}: {problems[0]}")
        if not isinstance(endpoint, Endpoint):
            raise TypeError(
                f"Webhooks() invalid endpoint; pass ServiceEndpoint(namespace, name) or UrlEndpoint({endpoint!r})"
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
        routes(self.hooks)  # fail early: duplicate paths
        for hook in hooks:
            if isinstance(hook, ConversionHook):
                self._conversions.add(hook)
            elif not isinstance(hook, AdmissionHook):
                raise not_a_hook(hook)
        self._conversions.check()
        self.configurations()  # fail early: duplicate names

    def serve_at(self, host: str, port: int) -> None:
        """Serve at a URL instead, with self-signed certificates: for an API server on the same machine."""
        self.endpoint = UrlEndpoint(f"https://{host}:{port}")
        self._host, self._port = host, port
        self._certificates = None

    def read_certificates(self, directory: str) -> None:
        """Read the certificate from a directory instead; its provider injects the CA bundle."""
        self._certificates = directory

    # Manifests

    def configurations(self, authorities: bytes = b"") -> list[dict[str, Any]]:
        """Return the webhook configurations. Without `authorities` the running server injects the CA bundle."""
        return webhook_configurations(self.hooks, self.name, self.endpoint, authorities)

    def conversion(self, authorities: bytes = b"") -> dict[str, Any]:
        """Return the `spec.conversion` of the CustomResourceDefinitions in `definitions`."""
        return conversion(self.endpoint, authorities)

    @property
    def converted(self) -> list[type[Any]]:
        """The classes between which it converts: the versions of its kinds."""
        return list(self._conversions.classes)

    @property
    def definitions(self) -> list[str]:
        """The names of the CustomResourceDefinitions with conversions."""
        kinds = map(kind_of, self._conversions.classes)
        return sorted({f"{kind.plural}.{kind.gvk.group}" for kind in kinds})

    @property
    def secret(self) -> NamespacedName | None:
        """The Secret of the self-signed certificate; None if there is none."""
        if self._certificates is not None or not isinstance(self.endpoint, ServiceEndpoint):
            return None
        return NamespacedName(self.endpoint.namespace, f"{self.name}-certificates")

    @property
    def port(self) -> int:
        """The port to listen on."""
        return self._port

    @property
    def certificate_directory(self) -> str:
        """The directory of the certificate files; empty if there is none."""
        return str(self._certificates) if isinstance(self._certificates, Path | str) else ""

    @property
    def injects_ca_bundle(self) -> bool:
        """Whether it injects the CA bundle. With certificate files, their provider does that."""
        return not isinstance(self._certificates, Path | str)

    @property
    def bundle_targets(self) -> list[BundleTarget]:
        """The objects that need the CA bundle."""
        kinds = [MUTATING if hook.mutating else VALIDATING for hook in self.hooks]
        places = [BundleTarget(kind, self.name) for kind in dict.fromkeys(kinds)]
        return [*places, *(BundleTarget(DEFINITION, name) for name in self.definitions)]

    # Running

    async def run(self, dependencies: Dependencies) -> None:
        """Serve until cancelled."""
        server = self.server(dependencies.world, LiveObjectAccess(dependencies.client.live))
        families = server.dispatcher.statistics.families
        dependencies.metrics.add(families)
        self._server = server
        try:
            await server.run()
        finally:
            self._server = None
            dependencies.metrics.remove(families)

    async def check(self) -> None:
        """Readiness check: raise NotServing unless it is reachable."""
        if self._server is None:
            raise NotServing("webhook server has not been started yet")
        await self._server.check()

    def server(self, world: World, objects: ObjectAccess) -> WebhookServer:
        """Return the server for a world and a cluster."""
        ca_injector = CaInjector(objects, self.bundle_targets) if self.injects_ca_bundle else None
        return WebhookServer(
            world,
            self._source(world, objects),
            dispatcher=self.dispatcher(world),
            ca_injector=ca_injector,
            host=self._host,
            port=self._port,
            client_authorities=self._client_authorities,
        )

    def dispatcher(self, world: World) -> Dispatcher:
        """Return what answers reviews, without sockets."""
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
