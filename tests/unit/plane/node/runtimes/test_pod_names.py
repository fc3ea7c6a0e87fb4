"""Host names, hosts files and resolver settings of Pods."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ostinato.api.meta import ObjectMeta
from ostinato.kinds.core_v1 import HostAlias, Pod, PodDNSConfig, PodDNSConfigOption, PodSpec
from ostinato.plane.network.dns import settings
from ostinato.plane.network.dns.settings import ClusterDns, machine_resolv_conf
from ostinato.plane.node.runtimes.pod_names import dns_config, hostname_of, hosts_file, resolv_conf


def pod(**spec: Any) -> Pod:
    return Pod(metadata=ObjectMeta(name="p", namespace="ns"), spec=PodSpec(containers=[], **spec))


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ({}, "p"),
        ({"hostname": "h", "subdomain": "s"}, "h"),
        ({"hostname": "h", "subdomain": "s", "set_hostname_as_fqdn": True}, "h.s.ns.svc."),
        ({"hostname": "a" * 62 + "-" + "b" * 9}, "a" * 62),
        ({"hostname_override": "o"}, "o"),
    ],
)
def test_the_host_name_of_a_pod(spec: dict[str, Any], name: str) -> None:
    assert hostname_of(pod(**spec)) == name


def test_the_hosts_file_has_the_pod_and_its_aliases() -> None:
    alias = HostAlias(ip="192.0.2.9", hostnames=["other", "other.example"])
    lines = hosts_file(pod(hostname="h", subdomain="s", host_aliases=[alias]), ["10.0.0.7"]).splitlines()
    assert lines[0] == "# Kubernetes-managed hosts file."
    assert lines[-4:] == [
        "10.0.0.7\th.s.ns.svc.\th",
        "",
        "# Entries added by HostAliases.",
        "192.0.2.9\tother\tother.example",
    ]
    assert hosts_file(pod(), ["10.0.0.7", "fd00::7"]).endswith("10.0.0.7\tp\nfd00::7\tp\n")
    assert hosts_file(pod(), ["10.0.0.7"]).endswith("10.0.0.7\tp\n")


def test_dns_settings_are_those_of_the_machine_and_of_the_pod() -> None:
    own = "# mine\nnameserver 192.0.2.1\nsearch a.example b.example\noptions ndots:2 edns0\n"
    more = PodDNSConfig(
        nameservers=["192.0.2.1", "192.0.2.2"],
        searches=["c.example"],
        options=[PodDNSConfigOption(name="ndots", value="5")],
    )
    assert dns_config(pod(dns_config=more), own) == {
        "servers": ["192.0.2.1", "192.0.2.2"],
        "searches": ["a.example", "b.example", "c.example"],
        "options": ["ndots:5", "edns0"],
    }
    assert dns_config(pod(dns_policy="None", dns_config=more), own)["searches"] == ["c.example"]


def test_a_resolv_conf_is_written_from_the_settings() -> None:
    machine = "nameserver 192.0.2.1\nsearch a.example\noptions ndots:2\n"
    assert resolv_conf(pod(), machine) == "nameserver 192.0.2.1\nsearch a.example\noptions ndots:2\n"
    own = PodDNSConfig(nameservers=["192.0.2.53"])
    assert resolv_conf(pod(dns_policy="None", dns_config=own), machine) == "nameserver 192.0.2.53\n"


@pytest.mark.parametrize(
    ("first", "second", "used"),
    [
        ("nameserver 192.0.2.1\n", "nameserver 192.0.2.2\n", "nameserver 192.0.2.1\n"),
        ("nameserver 127.0.0.53\n", "nameserver 192.0.2.2\n", "nameserver 192.0.2.2\n"),
        ("nameserver 127.0.0.53\nnameserver 192.0.2.1\n", "", "nameserver 127.0.0.53\nnameserver 192.0.2.1\n"),
        ("nameserver ::1\n", None, "nameserver ::1\n"),
        (None, None, ""),
    ],
)
def test_a_resolver_on_the_loopback_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, first: str | None, second: str | None, used: str
) -> None:
    files = [tmp_path / "first", tmp_path / "second"]
    for file, text in zip(files, (first, second), strict=True):
        if text is not None:
            file.write_text(text)
    monkeypatch.setattr(settings, "_RESOLV_CONFS", tuple(map(str, files)))
    assert machine_resolv_conf() == used


CLUSTER = ClusterDns()
MACHINE = "nameserver 192.0.2.1\nsearch a.example\noptions edns0\n"
CLUSTER_LINES = (
    "nameserver 10.0.0.10\nsearch ns.svc.cluster.local svc.cluster.local cluster.local a.example\noptions ndots:5\n"
)


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({}, CLUSTER_LINES),
        ({"dns_policy": "ClusterFirst"}, CLUSTER_LINES),
        ({"dns_policy": "ClusterFirst", "host_network": True}, MACHINE),
        ({"dns_policy": "ClusterFirstWithHostNet", "host_network": True}, CLUSTER_LINES),
        ({"dns_policy": "Default"}, MACHINE),
        ({"dns_policy": "None", "dns_config": PodDNSConfig(nameservers=["192.0.2.9"])}, "nameserver 192.0.2.9\n"),
    ],
)
def test_the_dns_policy_decides_about_the_cluster_dns(spec: dict[str, Any], text: str) -> None:
    assert resolv_conf(pod(**spec), MACHINE, CLUSTER) == text


def test_the_dns_config_is_added_to_the_cluster_dns() -> None:
    more = PodDNSConfig(
        nameservers=["192.0.2.2", "192.0.2.3", "192.0.2.4"],
        searches=["svc.cluster.local", "c.example"],
        options=[PodDNSConfigOption(name="ndots", value="2"), PodDNSConfigOption(name="rotate")],
    )
    assert dns_config(pod(dns_config=more), MACHINE, CLUSTER) == {
        "servers": ["10.0.0.10", "192.0.2.2", "192.0.2.3"],  # a resolver uses three
        "searches": ["ns.svc.cluster.local", "svc.cluster.local", "cluster.local", "a.example", "c.example"],
        "options": ["ndots:2", "rotate"],
    }


def test_a_pod_with_a_subdomain_has_the_cluster_domain_in_its_names() -> None:
    named = pod(hostname="h", subdomain="s", set_hostname_as_fqdn=True)
    assert hostname_of(named, "cluster.local") == "h.s.ns.svc.cluster.local"
    assert "10.0.0.7\th.s.ns.svc.cluster.local\th\n" in hosts_file(named, ["10.0.0.7"], "cluster.local")
