"""Which network the Pods of a node get: options, Node objects, and where the API server is."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network
from pathlib import Path

import msgspec
import pytest

from ostinato.kinds.core_v1 import Node
from ostinato.plane.network.pod_cidrs import IPV6_RANGES
from ostinato.plane.network.pod_network import PodNetworkSettings
from ostinato.plane.network.services.netns import NetnsAddresses
from ostinato.plane.node.pod_networking import for_joining, parse, with_assigned, with_services
from ostinato.plane.node.runtimes import ProcessOptions


def node(name: str, *cidrs: str) -> Node:
    spec = {"podCIDR": cidrs[0], "podCIDRs": list(cidrs)} if cidrs else {}
    return msgspec.convert({"metadata": {"name": name}, "spec": spec}, Node)


def test_the_option_names_a_range_or_none() -> None:
    assert parse(None) == PodNetworkSettings()
    assert parse("10.9.0.0/16").ranges == (IPv4Network("10.9.0.0/16"),)
    assert "--pod-network-cidr none" in parse("none").disabled


def test_pods_have_ipv6_addresses_if_the_cluster_has_both_families_or_a_range_is_given() -> None:
    assert parse(None).second_ranges == parse("10.9.0.0/16").second_ranges == ()
    assert parse(None, dual=True).second_ranges == parse("10.9.0.0/16", dual=True).second_ranges == IPV6_RANGES
    both = parse("10.9.0.0/16,fd00:9::/56")
    assert (both.ranges, both.second_ranges) == ((IPv4Network("10.9.0.0/16"),), (IPv6Network("fd00:9::/56"),))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("fd00::/64", "want an IPv4 network"),
        ("10.9.0.1/16", "want an IPv4 network"),
        ("off", "want an IPv4 network"),
        ("10.9.0.0/30", "too small"),
        ("fd00::/64,10.9.0.0/16", "want an IPv4 network, and at most one of IPv6 after it"),
        ("10.9.0.0/16,10.8.0.0/16", "want an IPv4 network, and at most one of IPv6 after it"),
        ("10.9.0.0/16,x", "want an IPv4 network"),
    ],
)
def test_a_wrong_range_is_named_with_its_option(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=f"--pod-network-cidr {text}: {why}"):
        parse(text)


def test_a_node_uses_the_pod_cidr_of_its_spec() -> None:
    nodes = [node("a", "10.9.0.0/24"), node("b"), node("c", "fd00::/64", "10.9.2.0/24"), node("d", "nonsense")]
    network = with_assigned(ProcessOptions(), nodes).network
    assert network.of_node("a").cidr == IPv4Network("10.9.0.0/24")
    assert network.of_node("c").cidr == IPv4Network("10.9.2.0/24")
    assert network.of_node("c").second_cidr == IPv6Network("fd00::/64")
    assert network.of_node("a").second_cidr is None
    assert network.of_node("b").cidr is network.of_node("d").cidr is network.of_node("e").cidr is None


def test_pods_have_routes_to_services_if_there_is_a_proxy(tmp_path: Path) -> None:
    ranges = (IPv4Network("10.0.0.0/24"), IPv6Network("fd00:10::/112"))
    assert with_services(ProcessOptions(), None, ranges).network.services == ()
    proxy = NetnsAddresses(tmp_path)
    options = with_services(ProcessOptions(), proxy, ranges)
    assert options.network.services == ranges
    assert options.on_network == proxy.attach


@pytest.mark.parametrize(
    ("server", "options", "disabled"),
    [
        ("https://127.0.0.1:6443", ProcessOptions(), False),
        ("https://localhost:6443", ProcessOptions(), False),
        ("https://[::1]:6443", ProcessOptions(), False),
        ("https://198.51.100.7:6443", ProcessOptions(), True),
        ("https://198.51.100.7:6443", ProcessOptions(network=parse("10.9.0.0/16")), False),
        ("https://198.51.100.7:6443", with_assigned(ProcessOptions(), [node("here", "10.9.0.0/24")]), False),
        ("https://198.51.100.7:6443", with_assigned(ProcessOptions(), [node("other", "10.9.0.0/24")]), True),
    ],
)
def test_a_node_of_a_server_elsewhere_shares_its_network_unless_a_range_is_given(
    server: str, options: ProcessOptions, disabled: bool
) -> None:
    network = for_joining(options, "here", server).network
    assert bool(network.disabled) == disabled
    assert not disabled or "--pod-network-cidr" in network.disabled
    assert network.reachable == ("198.51.100.7" in server and not disabled)
