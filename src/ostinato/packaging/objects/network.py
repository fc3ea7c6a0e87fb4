"""Services of metrics and webhooks, and the NetworkPolicy."""

from __future__ import annotations

from typing import Any

from ostinato.packaging.manifest import Manifest, When
from ostinato.packaging.objects.inputs import Inputs
from ostinato.packaging.objects.workload import port_name, webhook_ports
from ostinato.packaging.package import METRICS_PORT
from ostinato.webhook.configuration import ServiceEndpoint

Json = dict[str, Any]


def metrics_service(inputs: Inputs) -> Manifest:
    port = {"name": "metrics", "port": METRICS_PORT, "targetPort": "metrics", "protocol": "TCP"}
    return Manifest("metrics-service.yaml", _service(inputs, inputs.named("metrics"), [port]), "metrics")


def webhook_services(inputs: Inputs) -> list[Manifest]:
    """Return a Service for each endpoint. The program fixes its name: the certificate is for it."""
    ports: dict[str, list[Json]] = {}
    for server in inputs.package.operator.webhooks:
        assert isinstance(server.endpoint, ServiceEndpoint), "checked by make_package"
        port = {"port": server.endpoint.port, "targetPort": port_name(server.port), "protocol": "TCP"}
        known = ports.setdefault(server.endpoint.name, [])
        if all(each["port"] != server.endpoint.port for each in known):
            known.append({"name": f"webhook-{server.endpoint.port}", **port})
    return [Manifest("webhook-services.yaml", _service(inputs, name, each), "") for name, each in sorted(ports.items())]


def network_policy(inputs: Inputs) -> Manifest:
    """Allow metrics from namespaces with the label `metrics: enabled`, and webhooks from everywhere.

    API servers have no address that a policy could name. Probes come from the node, which policies do not restrict.
    """
    peers = [{"namespaceSelector": {"matchLabels": {"metrics": "enabled"}}}]
    ingress: list[Any] = [When("metrics", {"from": peers, "ports": [{"port": METRICS_PORT, "protocol": "TCP"}]})]
    if ports := webhook_ports(inputs.package):
        ingress.append({"ports": [{"port": port, "protocol": "TCP"} for port in ports]})
    spec = {"podSelector": {"matchLabels": inputs.selector}, "policyTypes": ["Ingress"], "ingress": ingress}
    found = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": inputs.metadata(inputs.name),
        "spec": spec,
    }
    return Manifest("network-policy.yaml", found, "networkPolicy")


def _service(inputs: Inputs, name: Any, ports: list[Json]) -> Json:
    spec = {"type": "ClusterIP", "selector": inputs.selector, "ports": ports}
    return {"apiVersion": "v1", "kind": "Service", "metadata": inputs.metadata(name), "spec": spec}
