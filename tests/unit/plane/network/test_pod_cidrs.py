"""The choice of a node's Pod CIDR, and of the addresses of its Pods."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network

import pytest

from ostinato.plane.network.pod_cidrs import RANGES, NoFreeCidr, PodAddresses, choose

DEFAULT = IPv4Network("0.0.0.0/0")


def networks(*texts: str) -> list[IPv4Network]:
    return [IPv4Network(each) for each in texts]


@pytest.mark.parametrize(
    ("routed", "chosen"),
    [
        ([], "10.244.0.0/24"),
        (["10.244.0.0/24", "10.244.1.0/24"], "10.244.2.0/24"),
        (["10.244.0.128/25"], "10.244.1.0/24"),
        (["10.244.0.0/16"], "10.245.0.0/24"),
        (["10.0.0.0/8"], "192.168.240.0/24"),
    ],
)
def test_the_first_range_is_taken_that_overlaps_with_no_route(routed: list[str], chosen: str) -> None:
    assert choose(None, None, RANGES, [DEFAULT, *networks(*routed)]) == IPv4Network(chosen)


def test_a_node_keeps_its_range_if_that_is_free() -> None:
    kept = IPv4Network("10.244.7.0/24")
    assert choose(None, kept, RANGES, [DEFAULT]) == kept
    assert choose(None, kept, RANGES, [DEFAULT, kept]) == IPv4Network("10.244.0.0/24")
    assert choose(None, kept, networks("10.9.0.0/16"), []) == IPv4Network("10.9.0.0/24")


def test_a_range_that_has_to_be_taken_and_is_not_free_is_refused() -> None:
    wanted = IPv4Network("10.1.2.0/24")
    assert choose(wanted, None, RANGES, [DEFAULT]) == wanted
    with pytest.raises(NoFreeCidr, match=r"Pod CIDR 10\.1\.2\.0/24: this machine has a route to 10\.1\.0\.0/16"):
        choose(wanted, None, RANGES, networks("10.1.0.0/16"))
    with pytest.raises(NoFreeCidr, match="too small"):
        choose(IPv4Network("10.1.2.0/30"), None, RANGES, [])


def test_when_every_range_is_taken_the_option_is_named() -> None:
    with pytest.raises(NoFreeCidr, match="--pod-network-cidr"):
        choose(None, None, networks("10.9.0.0/23"), networks("10.9.0.0/16"))


def test_an_address_is_not_reused_soon() -> None:
    addresses = PodAddresses(IPv4Network("10.1.0.0/29"))
    first = addresses.take()
    assert first == IPv4Address("10.1.0.3")  # after the gateway and the Service proxy
    addresses.release(first)
    assert [str(addresses.take()) for _ in range(4)] == ["10.1.0.4", "10.1.0.5", "10.1.0.6", "10.1.0.3"]
    with pytest.raises(NoFreeCidr, match="all 4 addresses of the Pod CIDR"):
        addresses.take()


def test_a_pod_gets_its_address_again() -> None:
    addresses = PodAddresses(IPv4Network("10.1.0.0/24"))
    wanted = IPv4Address("10.1.0.77")
    assert addresses.take(wanted) == wanted
    assert addresses.take(wanted) == IPv4Address("10.1.0.3")  # it is another's
    assert addresses.take(IPv4Address("10.2.0.77")) == IPv4Address("10.1.0.4")  # it is not in the range
