"""Service locator: resolves a Service to an endpoint, the first that is ready in its EndpointSlices.

kube-apiserver connects to the cluster IP and leaves the choice to kube-proxy. Here nothing may route cluster IPs, so
the server connects to an endpoint.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

import msgspec

from ostinato.api.text.go_format import quote
from ostinato.server.resources.strategy import Json
from ostinato.server.webhooks.target import CallError, Service

if TYPE_CHECKING:
    from ostinato.server.resources.registry import Registry
    from ostinato.server.resources.resource import Resource

_NAME_LABEL = "kubernetes.io/service-name"


class ServiceLocator:
    """See `Locate`."""

    def __init__(self, registry: Registry) -> None:
        self._services = _resource(registry, "", "services")
        self._slices = _resource(registry, "discovery.k8s.io", "endpointslices")

    def locate(self, service: Service) -> tuple[str, int]:
        assert self._services.collection is not None
        entry = self._services.collection.entries.get(self._services.key(service.namespace, service.name))
        if entry is None:
            raise CallError(f"service {quote(service.name)} not found")
        spec = msgspec.json.decode(entry.data).get("spec") or {}
        if spec.get("type") == "ExternalName":
            return spec.get("externalName", ""), service.port
        port = next((port for port in spec.get("ports") or () if port.get("port") == service.port), None)
        if port is None:
            raise CallError(f"no service port {service.port} found for service {quote(service.name)}")
        families = spec.get("ipFamilies") or ["IPv4"]
        return self._endpoint(service, port.get("name", ""), families[0])

    def _endpoint(self, service: Service, port_name: str, family: str) -> tuple[str, int]:
        """An endpoint of the Service's first family; of the other, if that has none."""
        assert self._slices.collection is not None
        slices: list[Json] = [
            msgspec.json.decode(entry.data)
            for entry in self._slices.collection.select(f"{service.namespace}/")
            if entry.labels.get(_NAME_LABEL) == service.name
        ]
        for found in sorted(slices, key=lambda each: each.get("addressType") != family):
            ports = [port for port in found.get("ports") or () if (port.get("name") or "") == port_name]
            for endpoint in found.get("endpoints") or ():
                if ports and ports[0].get("port") and _is_ready(endpoint) and _is_address(endpoint["addresses"][0]):
                    return endpoint["addresses"][0], ports[0]["port"]
        raise CallError(f"no endpoints available for service {quote(service.name)}")


def _is_ready(endpoint: Json) -> bool:
    return (endpoint.get("conditions") or {}).get("ready") is not False


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _resource(registry: Registry, group: str, name: str) -> Resource:
    found = registry.get(group, "v1", name)
    assert found is not None
    return found
