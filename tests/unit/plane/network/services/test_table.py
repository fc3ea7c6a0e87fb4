"""Frontends and backends of Services."""

from __future__ import annotations

import ipaddress

import pytest

from ostinato.api.meta import ObjectMeta
from ostinato.kinds.core_v1 import (
    ClientIPConfig,
    LoadBalancerIngress,
    LoadBalancerStatus,
    Service,
    ServicePort,
    ServiceSpec,
    ServiceStatus,
    SessionAffinityConfig,
)
from ostinato.kinds.discovery_v1 import (
    Endpoint,
    EndpointConditions,
    EndpointHints,
    EndpointPort,
    EndpointSlice,
    ForNode,
    ForZone,
)
from ostinato.plane.network.services.table import Backend, Frontend, service_table

FRONTEND = Frontend("TCP", ipaddress.ip_address("10.0.0.5"), 80)


def service(**spec: object) -> Service:
    given = {"cluster_ip": "10.0.0.5", "cluster_ips": ["10.0.0.5"], "ports": [ServicePort(port=80)], **spec}
    return Service(metadata=ObjectMeta(name="web"), spec=ServiceSpec(**given))  # type: ignore[arg-type]


def slice_of(
    *endpoints: Endpoint, port: int | None = 8080, name: str = "", protocol: str = "TCP", family: str = "IPv4"
) -> EndpointSlice:
    ports = [EndpointPort(name=name, port=port, protocol=protocol)]
    return EndpointSlice(address_type=family, endpoints=list(endpoints), ports=ports)


def endpoint(address: str, **conditions: bool) -> Endpoint:
    return Endpoint(addresses=[address], conditions=EndpointConditions(**conditions) if conditions else None)


def places(service: Service, *slices: EndpointSlice) -> dict[str, list[str]]:
    return {
        str(frontend): [f"{each.address}:{each.port}" for each in answer.backends]
        for frontend, answer in service_table(service, slices).items()
    }


def test_endpoints_of_all_slices_are_backends_of_the_cluster_ip() -> None:
    found = places(
        service(), slice_of(endpoint("10.1.0.2"), endpoint("10.1.0.1")), slice_of(endpoint("10.1.0.2"), port=8080)
    )
    assert found == {"TCP 10.0.0.5:80": ["10.1.0.1:8080", "10.1.0.2:8080"]}


@pytest.mark.parametrize(
    ("conditions", "answers"),
    [
        ({}, True),
        ({"ready": True}, True),
        ({"ready": False}, False),
        ({"ready": False, "serving": True, "terminating": False}, False),
        ({"ready": False, "serving": True, "terminating": True}, True),
        ({"ready": False, "serving": False, "terminating": True}, False),
    ],
)
def test_an_endpoint_is_a_backend_by_its_conditions(conditions: dict[str, bool], answers: bool) -> None:
    found = places(service(), slice_of(endpoint("10.1.0.1", **conditions)))
    assert found == {"TCP 10.0.0.5:80": ["10.1.0.1:8080"] if answers else []}


def test_a_terminating_endpoint_is_not_used_beside_a_ready_one() -> None:
    ending = endpoint("10.1.0.1", ready=False, serving=True, terminating=True)
    assert places(service(), slice_of(ending, endpoint("10.1.0.2", ready=True))) == {
        "TCP 10.0.0.5:80": ["10.1.0.2:8080"]
    }


def test_ports_are_matched_by_name_and_protocol() -> None:
    wanted = service(ports=[ServicePort(name="web", port=80), ServicePort(name="dns", port=53, protocol="UDP")])
    found = places(
        wanted,
        slice_of(endpoint("10.1.0.1"), name="web"),
        slice_of(endpoint("10.1.0.2"), name="dns", port=5353, protocol="UDP"),
        slice_of(endpoint("10.1.0.3"), name="dns", port=5354),
        slice_of(endpoint("10.1.0.4"), name="web", port=None),
    )
    assert found == {"TCP 10.0.0.5:80": ["10.1.0.1:8080"], "UDP 10.0.0.5:53": ["10.1.0.2:5353"]}


def test_families_are_kept_apart() -> None:
    wanted = service(
        cluster_ips=["10.0.0.5", "fd00::5"],
        ip_families=["IPv4", "IPv6"],
        type="NodePort",
        ports=[ServicePort(port=80, node_port=30080)],
    )
    found = places(
        wanted,
        slice_of(endpoint("10.1.0.1")),
        slice_of(endpoint("fd01::1"), family="IPv6"),
        slice_of(Endpoint(addresses=["example.dev"]), family="FQDN"),
    )
    assert found == {
        "TCP 10.0.0.5:80": ["10.1.0.1:8080"],
        "TCP [fd00::5]:80": ["fd01::1:8080"],
        "TCP 0.0.0.0:30080": ["10.1.0.1:8080"],
        "TCP [::]:30080": ["fd01::1:8080"],
    }


def test_external_addresses_are_served_except_public_ones() -> None:
    wanted = service(external_ips=["10.9.0.1", "8.8.8.8"])
    ingress = [
        LoadBalancerIngress(ip="10.9.0.2"),
        LoadBalancerIngress(ip="10.9.0.3", ip_mode="Proxy"),
        LoadBalancerIngress(hostname="example.dev"),
    ]
    wanted.status = ServiceStatus(load_balancer=LoadBalancerStatus(ingress=ingress))
    assert sorted(places(wanted)) == ["TCP 10.0.0.5:80", "TCP 10.9.0.1:80", "TCP 10.9.0.2:80"]


@pytest.mark.parametrize(
    "spec",
    [
        {"type": "ExternalName", "external_name": "example.dev", "external_ips": ["10.9.0.1"]},
        {"cluster_ip": "None", "cluster_ips": ["None"]},
        {"cluster_ip": "", "cluster_ips": []},
        {"ports": [ServicePort(port=80, protocol="SCTP")]},
        {"ports": []},
    ],
    ids=["external name", "headless", "no address yet", "a protocol that is not relayed", "no port"],
)
def test_unsupported_services_have_no_frontends(spec: dict[str, object]) -> None:
    assert places(service(**spec), slice_of(endpoint("10.1.0.1"))) == {}


@pytest.mark.parametrize(
    ("spec", "seconds"),
    [
        ({}, None),
        ({"session_affinity": "None"}, None),
        ({"session_affinity": "ClientIP"}, 10_800.0),
        (
            {
                "session_affinity": "ClientIP",
                "session_affinity_config": SessionAffinityConfig(client_ip=ClientIPConfig(timeout_seconds=7)),
            },
            7.0,
        ),
    ],
)
def test_session_affinity_timeout(spec: dict[str, object], seconds: float | None) -> None:
    (answer,) = service_table(service(**spec), [slice_of(endpoint("10.1.0.1"))]).values()
    assert answer.sticky == seconds
    assert answer.backends == (Backend("10.1.0.1", 8080),)


def test_a_frontend_is_formatted_with_its_address() -> None:
    (frontend,) = service_table(service(), [])
    assert (frontend.protocol, frontend.address, frontend.port) == ("TCP", ipaddress.ip_address("10.0.0.5"), 80)


NODES = {"here": "red", "there": "red"}  # of this machine, with their zones


def placed(address: str, node: str, *, zones: str = "", nodes: str = "", **conditions: bool) -> Endpoint:
    hints = EndpointHints(
        for_zones=[ForZone(name=each) for each in zones.split()],
        for_nodes=[ForNode(name=each) for each in nodes.split()],
    )
    return Endpoint(
        addresses=[address],
        node_name=node,
        hints=hints if zones or nodes else None,
        conditions=EndpointConditions(**conditions) if conditions else None,
    )


def balanced(service: Service, frontend: str, *endpoints: Endpoint) -> dict[str, list[str]]:
    """The addresses of a frontend's backends, by node of the client; "" is of clients elsewhere."""
    table = service_table(service, [slice_of(*endpoints)], NODES)
    found = next(each for name, each in table.items() if str(name) == frontend)
    by_node = {name: [each.address for each in backends] for name, backends in found.by_node.items()}
    return {"": [each.address for each in found.backends], **by_node}


SPREAD = (placed("10.1.0.1", "here"), placed("10.1.0.2", "there"), placed("10.1.0.3", "elsewhere"))


def test_an_internal_traffic_policy_keeps_connections_on_the_node_of_the_client() -> None:
    assert balanced(service(internal_traffic_policy="Local"), "TCP 10.0.0.5:80", *SPREAD) == {
        "": ["10.1.0.1", "10.1.0.2"],
        "here": ["10.1.0.1"],
        "there": ["10.1.0.2"],
    }
    only = placed("10.1.0.3", "elsewhere")
    assert not service_table(service(internal_traffic_policy="Local"), [slice_of(only)], NODES)[FRONTEND].is_served


def test_an_external_traffic_policy_keeps_connections_from_outside_on_this_machine() -> None:
    ports = [ServicePort(port=80, node_port=30080)]
    given = service(external_traffic_policy="Local", type="NodePort", ports=ports)
    assert balanced(given, "TCP 0.0.0.0:30080", *SPREAD) == {"": ["10.1.0.1", "10.1.0.2"]}
    assert balanced(given, "TCP 10.0.0.5:80", *SPREAD) == {"": ["10.1.0.1", "10.1.0.2", "10.1.0.3"]}


def test_local_endpoints_that_terminate_serve_if_no_other_local_one_is_ready() -> None:
    ports = [ServicePort(port=80, node_port=30080)]
    given = service(external_traffic_policy="Local", type="NodePort", ports=ports)
    ending = placed("10.1.0.9", "here", ready=False, serving=True, terminating=True)
    assert balanced(given, "TCP 0.0.0.0:30080", ending, placed("10.1.0.3", "elsewhere")) == {"": ["10.1.0.9"]}
    assert balanced(given, "TCP 0.0.0.0:30080", ending, *SPREAD) == {"": ["10.1.0.1", "10.1.0.2"]}


def test_hints_for_nodes_win_over_hints_for_zones_and_need_all_endpoints() -> None:
    near = placed("10.1.0.1", "here", zones="red", nodes="here")
    zone = placed("10.1.0.2", "there", zones="red", nodes="elsewhere")
    far = placed("10.1.0.3", "elsewhere", zones="blue", nodes="elsewhere")
    found = balanced(service(), "TCP 10.0.0.5:80", near, zone, far)
    assert found["here"] == ["10.1.0.1"]
    assert found["there"] == ["10.1.0.1", "10.1.0.2"]  # no hint for the node: its zone
    unhinted = placed("10.1.0.4", "here")
    assert balanced(service(), "TCP 10.0.0.5:80", near, zone, unhinted) == {"": ["10.1.0.1", "10.1.0.2", "10.1.0.4"]}


def test_source_ranges_restrict_load_balancer_addresses_alone() -> None:
    status = ServiceStatus(load_balancer=LoadBalancerStatus(ingress=[LoadBalancerIngress(ip="192.168.7.1")]))
    given = service(type="LoadBalancer", load_balancer_source_ranges=["192.168.0.0/16", " 10.9.0.0/24"])
    given = Service(metadata=given.metadata, spec=given.spec, status=status)
    table = service_table(given, [slice_of(endpoint("10.1.0.1"))])
    assert {str(name): [str(net) for net in each.sources] for name, each in table.items()} == {
        "TCP 10.0.0.5:80": [],
        "TCP 192.168.7.1:80": ["192.168.0.0/16", "10.9.0.0/24"],
    }
