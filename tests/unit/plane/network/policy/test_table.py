"""What network policies permit."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ostinato.kinds.networking_v1 import NetworkPolicy
from ostinato.plane.network.policy.peers import PodView, PolicyPod, peer_of, shares_machine
from ostinato.plane.network.policy.table import PolicyTable, policy_table

NAMESPACES = {"a": {"team": "red"}, "b": {"team": "blue"}}


def pod(namespace: str, name: str, address: str, *, web: int = 0, **labels: str) -> PolicyPod:
    ports = {("web", "TCP"): web} if web else {}
    return PolicyPod(namespace, name, name, {"name": name, **labels}, (address,), ports)


PODS = [
    pod("a", "server", "10.1.0.1", web=8080, app="server"),
    pod("a", "other", "10.1.0.2", web=9090, app="server"),
    pod("a", "friend", "10.1.0.3", role="friend"),
    pod("a", "stranger", "10.1.0.4"),
    pod("b", "friend", "10.1.0.5", role="friend"),
]
ADDRESSES = {f"{each.namespace}/{each.name}": each.addresses[0] for each in PODS} | {"world": "192.0.2.9"}


def table(*specs: dict[str, Any], namespace: str = "a") -> PolicyTable:
    metadata = {"name": "p", "namespace": namespace}
    policies = [msgspec.convert({"metadata": metadata, "spec": spec}, NetworkPolicy) for spec in specs]
    return policy_table(policies, PODS, NAMESPACES)


def permits(found: PolicyTable, source: str, destination: str, port: int = 8080, protocol: str = "TCP") -> bool:
    return found.permits(ADDRESSES[source], ADDRESSES[destination], protocol, port)


def clients(found: PolicyTable, destination: str = "a/server", port: int = 8080) -> set[str]:
    return {name for name in ADDRESSES if name != destination and permits(found, name, destination, port)}


SERVER = {"matchLabels": {"name": "server"}}
FRIENDS = {"matchLabels": {"role": "friend"}}
EVERYBODY = {"a/other", "a/friend", "a/stranger", "b/friend", "world"}


@pytest.mark.parametrize(
    ("ingress", "expected"),
    [
        ([], set()),
        ([{}], EVERYBODY),
        ([{"from": [{"podSelector": {}}]}], {"a/other", "a/friend", "a/stranger"}),
        ([{"from": [{"podSelector": FRIENDS}]}], {"a/friend"}),
        ([{"from": [{"namespaceSelector": {}}]}], EVERYBODY - {"world"}),
        ([{"from": [{"namespaceSelector": {"matchLabels": {"team": "blue"}}}]}], {"b/friend"}),
        ([{"from": [{"namespaceSelector": {}, "podSelector": FRIENDS}]}], {"a/friend", "b/friend"}),
        (
            [{"from": [{"namespaceSelector": {"matchLabels": {"team": "blue"}}}, {"podSelector": FRIENDS}]}],
            {"a/friend", "b/friend"},
        ),
        ([{"from": [{"ipBlock": {"cidr": "192.0.2.0/24"}}]}], {"world"}),
        (
            [{"from": [{"ipBlock": {"cidr": "0.0.0.0/0", "except": ["10.1.0.0/30"]}}]}],
            {"a/stranger", "b/friend", "world"},
        ),
        ([{"from": [{"podSelector": FRIENDS}], "ports": [{"port": 8080}]}], {"a/friend"}),
        ([{"from": [{"podSelector": FRIENDS}], "ports": [{"port": 8081}]}], set()),
        ([{"from": [{"podSelector": FRIENDS}], "ports": [{"port": 8000, "endPort": 8090}]}], {"a/friend"}),
        ([{"from": [{"podSelector": FRIENDS}], "ports": [{"port": "web"}]}], {"a/friend"}),
        ([{"from": [{"podSelector": FRIENDS}], "ports": [{"port": "none"}]}], set()),
        ([{"from": [{"podSelector": FRIENDS}], "ports": [{"port": 8080, "protocol": "UDP"}]}], set()),
        ([{"ports": [{"protocol": "TCP"}]}], EVERYBODY),
        ([{"from": [{"podSelector": FRIENDS}]}, {"from": [{"namespaceSelector": {"matchLabels": {"team": "blue"}}}]}],
         {"a/friend", "b/friend"}),
    ],
)  # fmt: skip
def test_who_may_connect_to_an_isolated_pod(ingress: list[Any], expected: set[str]) -> None:
    assert clients(table({"podSelector": SERVER, "ingress": ingress})) == expected


def test_only_selected_pods_are_isolated_and_only_in_the_directions_of_the_policy() -> None:
    found = table({"podSelector": SERVER, "policyTypes": ["Ingress"]})
    assert clients(found, "a/other") == {"a/server", "a/friend", "a/stranger", "b/friend", "world"}
    assert permits(found, "a/server", "a/friend")
    found = table({"podSelector": SERVER, "policyTypes": ["Egress"]})
    assert not permits(found, "a/server", "a/friend")
    assert permits(found, "a/friend", "a/server")


@pytest.mark.parametrize(
    ("spec", "isolated"),
    [({}, (True, False)), ({"egress": [{}]}, (True, True)), ({"policyTypes": ["Egress"]}, (False, True))],
)
def test_the_directions_default_to_ingress_and_to_egress_with_rules(spec: Any, isolated: tuple[bool, bool]) -> None:
    found = table({"podSelector": SERVER, **spec})
    assert ("10.1.0.1" in found.ingress, "10.1.0.1" in found.egress) == isolated


def test_policies_add_up_and_both_ends_have_to_permit() -> None:
    friends = {"podSelector": SERVER, "ingress": [{"from": [{"podSelector": FRIENDS}]}]}
    strangers = {"podSelector": {}, "ingress": [{"from": [{"podSelector": {"matchLabels": {"name": "stranger"}}}]}]}
    assert clients(table(friends, strangers)) == {"a/friend", "a/stranger"}
    silent = {"podSelector": FRIENDS, "policyTypes": ["Egress"]}
    assert clients(table(friends, strangers, silent)) == {"a/stranger"}


def test_names_of_ports_are_those_of_the_pod_that_receives() -> None:
    found = table({"podSelector": FRIENDS, "policyTypes": ["Egress"], "egress": [{"ports": [{"port": "web"}]}]})
    assert permits(found, "a/friend", "a/server", 8080)
    assert not permits(found, "a/friend", "a/server", 9090)
    assert permits(found, "a/friend", "a/other", 9090)
    assert not permits(found, "a/friend", "a/stranger", 8080)
    assert not permits(found, "a/friend", "world", 8080)


def test_a_pod_always_reaches_itself() -> None:
    found = table({"podSelector": {}, "policyTypes": ["Ingress", "Egress"]})
    assert permits(found, "a/server", "a/server")


@pytest.mark.parametrize(
    ("content", "is_peer"),
    [
        ({"status": {"podIPs": [{"ip": "10.1.0.9"}], "hostIP": "192.0.2.2"}}, True),
        ({"status": {"podIPs": [{"ip": "192.0.2.2"}], "hostIP": "192.0.2.2"}}, False),
        ({"spec": {"hostNetwork": True}}, False),
        ({"status": {"phase": "Succeeded", "podIPs": [{"ip": "10.1.0.9"}]}}, False),
    ],
)
def test_pods_with_a_running_network_of_their_own_are_peers(content: dict[str, Any], is_peer: bool) -> None:
    view = msgspec.convert({"metadata": {"name": "p", "namespace": "a", "uid": "u"}, **content}, PodView)
    assert (peer_of(view) is not None) == is_peer
    assert shares_machine(view) == (not is_peer and "hostIP" in content.get("status", {}))


def test_a_pod_that_starts_has_the_address_that_it_is_admitted_with() -> None:
    view = msgspec.convert({"metadata": {"name": "p", "namespace": "a", "uid": "u"}}, PodView)
    found = peer_of(view, ["10.1.0.9", "fd00::9"])
    assert found is not None
    assert found.addresses == ("10.1.0.9", "fd00::9")
