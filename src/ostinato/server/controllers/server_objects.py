"""The objects that lead clients inside the cluster to the API servers: Service, its endpoints, and its range."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from ipaddress import ip_address

from ostinato.server.resources.core.services.addresses import Network
from ostinato.server.resources.strategy import Json

_PLACE = {"name": "kubernetes", "namespace": "default"}


def service(port: int, service_range: Network) -> Json:
    cluster_ip = str(service_range[1])  # the first of the service range
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {**_PLACE, "labels": {"component": "apiserver", "provider": "kubernetes"}},
        "spec": {
            "clusterIP": cluster_ip,
            "clusterIPs": [cluster_ip],
            "internalTrafficPolicy": "Cluster",
            "ipFamilies": [f"IPv{service_range.version}"],
            "ipFamilyPolicy": "SingleStack",
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": port}],
            "sessionAffinity": "None",
            "type": "ClusterIP",
        },
    }


def service_cidr(ranges: Sequence[Network]) -> Json:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "ServiceCIDR",
        "metadata": {"name": "kubernetes"},
        "spec": {"cidrs": [str(each) for each in ranges]},
    }


def endpoints(servers: Sequence[tuple[str, int]]) -> list[Json]:
    """Endpoints and EndpointSlice of servers, given their addresses and ports.

    The EndpointSlice has one port: that of most servers.
    """
    ports = Counter(port for _, port in servers)
    main = min(ports, key=lambda port: (-ports[port], port))
    subsets = [
        {"addresses": [{"ip": address} for address, its in sorted(servers) if its == port], "ports": [_port(port)]}
        for port in sorted(ports)
    ]
    ready = {"conditions": {"ready": True}}
    return [
        {
            "apiVersion": "v1",
            "kind": "Endpoints",
            "metadata": {**_PLACE, "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}},
            "subsets": subsets,
        },
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {**_PLACE, "labels": {"kubernetes.io/service-name": "kubernetes"}},
            "addressType": f"IPv{ip_address(servers[0][0]).version}",
            "endpoints": [{"addresses": [address], **ready} for address, its in sorted(servers) if its == main],
            "ports": [_port(main)],
        },
    ]


def _port(port: int) -> Json:
    return {"name": "https", "port": port, "protocol": "TCP"}
