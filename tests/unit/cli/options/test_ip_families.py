"""`--ip-family` of `ostinato up`, and the ranges that follow from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ostinato.cli.app import make_parser
from ostinato.cli.error import CommandError
from ostinato.cli.options.control_plane import ip_families
from ostinato.cli.options.control_plane.plane import plane_settings
from ostinato.plane.parts import PlaneSettings


def settings(*words: str) -> PlaneSettings:
    options = make_parser().parse_args(["up", *words])
    ip_families.use(options)
    return plane_settings(options)


def test_a_cluster_has_ipv4_alone_by_default() -> None:
    found = settings()
    assert [str(each) for each in found.server.service_ranges] == ["10.0.0.0/24"]
    assert not found.is_dual_stack
    assert found.processes.network.second_ranges == ()
    assert found.dns.address == "10.0.0.10"


def test_dual_gives_services_and_pods_ranges_of_both_families() -> None:
    found = settings("--ip-family", "dual")
    assert [str(each) for each in found.server.service_ranges] == ["10.0.0.0/24", "fd00:10:96::/112"]
    assert found.is_dual_stack
    assert [str(each) for each in found.processes.network.second_ranges] == ["fd00:10:244::/48"]
    assert found.pod_ranges == ()  # nodes with real Pods choose their own


def test_two_ranges_of_services_mean_the_same() -> None:
    found = settings("--service-cluster-ip-range", "fd00:1::/112,10.96.0.0/16")
    assert found.is_dual_stack
    assert found.processes.network.second_ranges
    assert found.dns.address == "10.96.0.10"  # of IPv4, which all Pods have


def test_simulated_nodes_get_pod_cidrs() -> None:
    given = settings("--ip-family", "dual", "--runtime", "simulated").pod_ranges
    assert [(str(each.network), each.mask) for each in given] == [("10.128.0.0/9", 24), ("fd00:10:128::/48", 64)]
    own = settings(
        "--ip-family", "dual", "--runtime", "simulated", "--pod-network-cidr", "10.9.0.0/16,fd00:9::/56"
    ).pod_ranges
    assert [str(each.network) for each in own] == ["10.9.0.0/16", "fd00:9::/56"]
    assert settings("--runtime", "simulated").pod_ranges == ()


def test_the_dns_server_has_an_address_of_a_small_range_too() -> None:
    assert settings("--service-cluster-ip-range", "10.96.0.0/29").dns.address == "10.96.0.6"
    assert (
        settings("--service-cluster-ip-range", "10.96.0.0/29", "--cluster-dns", "10.96.0.3").dns.address == "10.96.0.3"
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--service-cluster-ip-range", "fd00::/112"], "nodes of `ostinato up` need a range of IPv4"),
        (
            ["--ip-family", "dual", "--service-cluster-ip-range", "10.96.0.0/16"],
            "--ip-family dual: --service-cluster-ip-range 10.96.0.0/16: want two ranges, one of each IP family",
        ),
        (
            ["--ip-family", "ipv4", "--service-cluster-ip-range", "10.96.0.0/16,fd00::/112"],
            "want one range, of IPv4",
        ),
        (
            ["--pod-network-cidr", "10.9.0.0/16,fd00:9::/56"],
            "--pod-network-cidr 10.9.0.0/16,fd00:9::/56: IPv6 needs --ip-family dual",
        ),
    ],
)
def test_options_that_contradict_each_other_are_refused(words: list[str], message: str) -> None:
    with pytest.raises(CommandError) as failure:
        settings(*words)
    assert message in str(failure.value)


def test_a_kernel_without_ipv6_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(ip_families, "_IPV6", str(tmp_path / "missing"))
    with pytest.raises(CommandError, match="the kernel of this machine has no IPv6"):
        settings("--ip-family", "dual")
    assert settings("--ip-family", "dual", "--runtime", "simulated").is_dual_stack
    assert settings("--ip-family", "dual", "--nodes", "0").is_dual_stack
