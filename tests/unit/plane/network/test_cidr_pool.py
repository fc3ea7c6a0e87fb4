"""Pools of Pod CIDRs."""

from __future__ import annotations

from ipaddress import ip_network

import pytest

from ostinato.plane.network.cidr_pool import CidrPool, PodRange, pod_ranges


def pool(cidr: str, mask: int) -> CidrPool:
    return PodRange(ip_network(cidr), mask).pool()


@pytest.mark.parametrize(
    ("cidr", "mask", "first"),
    [
        ("10.244.0.0/16", 24, ["10.244.0.0/24", "10.244.1.0/24"]),
        ("fd00:10:244::/48", 64, ["fd00:10:244::/64", "fd00:10:244:1::/64"]),
        ("10.1.0.0/24", 24, ["10.1.0.0/24", "None"]),
    ],
)
def test_cidrs_are_handed_out_in_order(cidr: str, mask: int, first: list[str]) -> None:
    of = pool(cidr, mask)
    assert [str(of.take()) for _ in range(2)] == first


def test_a_released_cidr_is_used_again_after_the_others() -> None:
    of = pool("10.0.0.0/22", 24)
    taken = [of.take() for _ in range(3)]
    assert taken[0] is not None
    of.release(taken[0])
    assert [str(of.take()) for _ in range(3)] == ["10.0.3.0/24", "10.0.0.0/24", "None"]


@pytest.mark.parametrize("other", ["10.0.1.0/24", "10.0.1.128/25", "10.0.1.0/32"])
def test_a_cidr_that_overlaps_with_another_network_is_not_handed_out(other: str) -> None:
    of = pool("10.0.0.0/22", 24)
    assert of.occupy(ip_network(other))
    assert [str(of.take()) for _ in range(3)] == ["10.0.0.0/24", "10.0.2.0/24", "10.0.3.0/24"]


def test_networks_elsewhere_occupy_nothing() -> None:
    of = pool("10.0.0.0/22", 24)
    assert not of.occupy(ip_network("10.1.0.0/24"))
    assert not of.occupy(ip_network("fd00::/64"))
    assert of.occupy(ip_network("10.0.0.0/8"))
    assert of.take() is None


def test_ranges_of_a_cluster() -> None:
    networks = [ip_network("10.244.0.0/16"), ip_network("fd00:10:244::/56")]
    assert [each.mask for each in pod_ranges(networks, {})] == [24, 64]
    assert [each.mask for each in pod_ranges(networks, {4: 26, 6: 72})] == [26, 72]
    assert [each.mask for each in pod_ranges([ip_network("10.1.0.0/28")], {})] == [28]


@pytest.mark.parametrize(
    ("networks", "masks", "message"),
    [
        (["10.0.0.0/16", "10.1.0.0/16"], {}, "want one network, or one of each IP family"),
        (["10.0.0.0/16"], {4: 8}, "node CIDRs /8 of 10.0.0.0/16: want a mask from 16 to 32"),
        (["fd00::/32"], {}, "node CIDRs /64 of fd00::/32: want a mask from 32 to 48"),
    ],
)
def test_ranges_that_cannot_be_divided_are_refused(
    networks: list[str], masks: dict[int, int | None], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        pod_ranges([ip_network(each) for each in networks], masks)
