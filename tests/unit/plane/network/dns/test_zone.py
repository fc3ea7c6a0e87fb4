"""Records of the cluster zone, beside those of CoreDNS 1.12 with the same objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from ostinato.kinds.core_v1 import Service
from ostinato.kinds.discovery_v1 import EndpointSlice
from ostinato.plane.network.dns import wire
from ostinato.plane.network.dns.wire import Question, name_of
from ostinato.plane.network.dns.zone import Zone


def service(name: str, namespace: str = "default", **spec: Any) -> Service:
    return msgspec.convert({"metadata": {"name": name, "namespace": namespace}, "spec": spec}, Service)


def endpoints(service: str, *members: dict[str, Any], ports: Sequence[dict[str, Any]] = ()) -> EndpointSlice:
    labels = {"kubernetes.io/service-name": service}
    family = "IPv6" if ":" in members[0]["addresses"][0] else "IPv4"
    content = {
        "metadata": {"name": f"{service}-1", "namespace": "default", "labels": labels},
        "addressType": family,
        "endpoints": [*members],
        "ports": [*ports],
    }
    return msgspec.convert(content, EndpointSlice)


HTTP = {"name": "http", "port": 80, "protocol": "TCP"}
DNS = {"name": "dns", "port": 53, "protocol": "UDP"}
SERVICES = [
    service("web", clusterIP="10.0.0.5", clusterIPs=["10.0.0.5"], ports=[HTTP, DNS]),
    service("dual", clusterIP="10.0.0.6", clusterIPs=["10.0.0.6", "fd00::6"], ports=[HTTP]),
    service("db", clusterIP="None", clusterIPs=["None"], ports=[HTTP]),
    service("portless", clusterIP="None", clusterIPs=["None"]),
    service("idle", clusterIP="None", clusterIPs=["None"], ports=[HTTP]),
    service("out", type="ExternalName", externalName="www.example.com"),
    service("number", type="ExternalName", externalName="192.0.2.1"),
]
SLICES = [
    endpoints(
        "db",
        {"addresses": ["10.244.0.7"], "hostname": "db-0"},
        {"addresses": ["10.244.0.8"], "conditions": {"ready": True}},
        {"addresses": ["10.244.0.9"], "conditions": {"ready": False}},
        ports=[{**HTTP, "port": 8080}],
    ),
    endpoints("db", {"addresses": ["fd01::7"]}, ports=[{**HTTP, "port": 8080}]),
    endpoints("portless", {"addresses": ["10.244.0.11"]}),
    endpoints("idle", {"addresses": ["10.244.0.12"], "conditions": {"ready": False}}, ports=[HTTP]),
    endpoints("web", {"addresses": ["10.244.0.13"]}, ports=[HTTP]),
]


class Objects:
    is_ready = True

    def service(self, namespace: str, name: str) -> Service | None:
        return next((each for each in SERVICES if (namespace, name) == ("default", each.metadata.name)), None)

    def slices(self, namespace: str, name: str) -> list[EndpointSlice]:
        return [each for each in SLICES if namespace == "default" and each.metadata.name == f"{name}-1"]

    def has_namespace(self, name: str) -> bool:
        return name in ("default", "kube-system")

    def services_at(self, address: str) -> list[Service]:
        return [each for each in SERVICES if address in each.spec.cluster_ips]

    def slices_at(self, address: str) -> list[EndpointSlice]:
        return [each for each in SLICES if any(address in one.addresses for one in each.endpoints)]


ZONE = Zone(Objects(), "cluster.local", "10.0.0.10", serial=7)
TYPES = {"A": wire.A, "AAAA": wire.AAAA, "SRV": wire.SRV, "CNAME": wire.CNAME, "PTR": wire.PTR, "TXT": wire.TXT}
TYPES |= {"NS": wire.NS, "SOA": wire.SOA, "MX": wire.MX, "ANY": wire.ANY}


def text(record: wire.Record) -> str:
    data = record.data
    match record.type:
        case wire.A:
            return ".".join(map(str, data))
        case wire.AAAA:
            return ":".join(f"{int.from_bytes(data[at : at + 2]):x}" for at in range(0, 16, 2))
        case wire.SRV:
            numbers = (int.from_bytes(data[at : at + 2]) for at in (0, 2, 4))
            return " ".join((*map(str, numbers), dotted(wire.read_name(data, 6)[0])))
        case wire.TXT:
            return data[1:].decode()
    return dotted(wire.read_name(data, 0)[0])


def dotted(name: wire.Name) -> str:
    return b".".join(name).decode()


def ask(name: str, kind: str) -> str | list[str]:
    """The sorted answers; "missing", or "elsewhere" if an upstream server is to be asked."""
    found = ZONE.find(Question(name_of(name), TYPES[kind], wire.IN))
    if found is None:
        return "elsewhere"
    assert found.exists or not found.answers
    return sorted(map(text, found.answers)) if found.exists else "missing"


SVC = "default.svc.cluster.local"


@pytest.mark.parametrize(
    ("name", "kind", "expected"),
    [
        (f"web.{SVC}", "A", ["10.0.0.5"]),
        (f"WEB.{SVC.upper()}", "A", ["10.0.0.5"]),
        (f"web.{SVC}", "AAAA", []),
        (f"web.{SVC}", "MX", []),
        (f"dual.{SVC}", "AAAA", ["fd00:0:0:0:0:0:0:6"]),
        (f"dual.{SVC}", "A", ["10.0.0.6"]),
        (f"none.{SVC}", "A", "missing"),
        ("web.other.svc.cluster.local", "A", "missing"),
        ("web.kube-system.svc.cluster.local", "A", "missing"),
        (SVC, "A", []),
        ("other.svc.cluster.local", "A", "missing"),
        ("cluster.local", "A", []),
        ("cluster.local", "SOA", ["ns.dns.cluster.local"]),
        ("cluster.local", "NS", ["ns.dns.cluster.local"]),
        ("ns.dns.cluster.local", "A", ["10.0.0.10"]),
        ("dns-version.cluster.local", "TXT", ["1.1.0"]),
        ("other.cluster.local", "A", "missing"),
        # Endpoints
        (f"db.{SVC}", "A", ["10.244.0.7", "10.244.0.8"]),
        (f"db.{SVC}", "AAAA", ["fd01:0:0:0:0:0:0:7"]),
        (f"db-0.db.{SVC}", "A", ["10.244.0.7"]),
        (f"10-244-0-7.db.{SVC}", "A", "missing"),
        (f"10-244-0-8.db.{SVC}", "A", ["10.244.0.8"]),
        (f"10-244-0-9.db.{SVC}", "A", "missing"),
        (f"10-244-0-13.web.{SVC}", "A", ["10.244.0.13"]),
        (f"portless.{SVC}", "A", ["10.244.0.11"]),
        (f"portless.{SVC}", "SRV", []),
        (f"idle.{SVC}", "A", "missing"),
        # Ports
        (f"_http._tcp.web.{SVC}", "SRV", [f"0 100 80 web.{SVC}"]),
        (f"_http._udp.web.{SVC}", "SRV", "missing"),
        (f"_._tcp.web.{SVC}", "SRV", [f"0 100 80 web.{SVC}"]),
        (f"_http._tcp.portless.{SVC}", "A", "missing"),
        (f"web.{SVC}", "SRV", [f"0 50 53 web.{SVC}", f"0 50 80 web.{SVC}"]),
        (f"_http._tcp.web.{SVC}", "A", ["10.0.0.5"]),
        (
            f"_http._tcp.db.{SVC}",
            "SRV",
            [f"0 33 8080 10-244-0-8.db.{SVC}", f"0 33 8080 db-0.db.{SVC}", f"0 33 8080 fd01--7.db.{SVC}"],
        ),
        (f"a.b.c.web.{SVC}", "A", "missing"),
        # External names
        (f"out.{SVC}", "CNAME", ["www.example.com"]),
        (f"out.{SVC}", "A", ["www.example.com"]),
        (f"number.{SVC}", "A", "missing"),
        (f"_http._tcp.out.{SVC}", "A", "missing"),
        # Pods
        ("10-244-0-99.default.pod.cluster.local", "A", ["10.244.0.99"]),
        ("fd01--99.default.pod.cluster.local", "AAAA", ["fd01:0:0:0:0:0:0:99"]),
        ("10-244-0-99.other.pod.cluster.local", "A", "missing"),
        ("web.default.pod.cluster.local", "A", "missing"),
        # Addresses
        ("5.0.0.10.in-addr.arpa", "PTR", [f"web.{SVC}"]),
        ("7.0.244.10.in-addr.arpa", "PTR", [f"db-0.db.{SVC}"]),
        ("8.0.244.10.in-addr.arpa", "PTR", [f"10-244-0-8.db.{SVC}"]),
        ("6." + "0." * 27 + "0.0.d.f.ip6.arpa", "PTR", [f"dual.{SVC}"]),
        ("9.9.9.9.in-addr.arpa", "PTR", "elsewhere"),
        ("9.9.in-addr.arpa", "PTR", "elsewhere"),
        ("x.9.9.9.in-addr.arpa", "PTR", "elsewhere"),
        # Elsewhere
        ("www.example.com", "A", "elsewhere"),
        ("notcluster.local", "A", "elsewhere"),
    ],
)
def test_records_of_a_name(name: str, kind: str, expected: str | list[str]) -> None:
    assert ask(name, kind) == expected


def test_the_targets_of_ports_come_with_their_addresses() -> None:
    found = ZONE.find(Question(name_of(f"_http._tcp.db.{SVC}"), wire.SRV, wire.IN))
    assert found is not None
    assert sorted((dotted(each.name), text(each)) for each in found.additional) == [
        (f"10-244-0-8.db.{SVC}", "10.244.0.8"),
        (f"db-0.db.{SVC}", "10.244.0.7"),
        (f"fd01--7.db.{SVC}", "fd01:0:0:0:0:0:0:7"),
    ]
