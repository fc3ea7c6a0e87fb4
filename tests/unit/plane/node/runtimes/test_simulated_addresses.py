"""Addresses of simulated Pods, of the Pod CIDRs of their nodes."""

from __future__ import annotations

from ipaddress import ip_network

import msgspec
import pytest

from ostinato.kinds.core_v1 import Pod
from ostinato.plane.node.runtimes import SandboxError
from ostinato.plane.node.runtimes.simulated_addresses import CidrAddresses

CIDRS = {"a": ["10.1.0.0/24", "fd00:1::/64"], "b": ["10.1.1.0/29"]}


def addresses() -> CidrAddresses:
    return CidrAddresses(lambda node: [ip_network(each) for each in CIDRS.get(node, ())])


def pod(uid: str, node: str, *ips: str) -> Pod:
    status = {"podIP": ips[0], "podIPs": [{"ip": each} for each in ips]} if ips else {}
    return msgspec.convert(
        {"metadata": {"name": uid, "uid": uid}, "spec": {"nodeName": node, "containers": []}, "status": status}, Pod
    )


def test_a_pod_has_an_address_of_each_cidr_and_keeps_it() -> None:
    of = addresses()
    assert list(of.of(pod("1", "a"))) == ["10.1.0.3", "fd00:1::3"]
    assert list(of.of(pod("2", "a"))) == ["10.1.0.4", "fd00:1::4"]
    assert list(of.of(pod("1", "a"))) == ["10.1.0.3", "fd00:1::3"]


def test_addresses_of_the_status_are_kept_after_a_restart() -> None:
    of = addresses()
    of.keep(pod("1", "a", "10.1.0.3", "fd00:1::3"))
    of.keep(pod("old", "a", "10.128.0.9"))
    assert list(of.of(pod("2", "a"))) == ["10.1.0.4", "fd00:1::4"]
    assert list(of.of(pod("1", "a"))) == ["10.1.0.3", "fd00:1::3"]
    assert list(of.of(pod("old", "a"))) == ["10.128.0.9"]


def test_a_full_cidr_and_a_node_without_one_are_named() -> None:
    of = addresses()
    for number in range(4):
        of.of(pod(str(number), "b"))
    with pytest.raises(SandboxError, match=r"all 4 addresses of the Pod CIDR 10\.1\.1\.0/29 are taken"):
        of.of(pod("5", "b"))
    of.free(pod("2", "b"))
    assert list(of.of(pod("5", "b"))) == ["10.1.1.5"]
    with pytest.raises(SandboxError, match="the node has no Pod CIDRs yet"):
        of.of(pod("6", "c"))
