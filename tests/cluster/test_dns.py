"""Cluster DNS in a whole plane: Pods and the machine resolve names of Services and Pods.

Each test has a machine of its own: a network namespace with an uplink that leads nowhere else.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import dns.flags
import dns.message
import dns.query
import dns.rcode
import pytest

from ostinato.kinds.core_v1 import Service
from tests.cluster.planes import PlaneProcess
from tests.cluster.pod_runs import SERVE, ask, create, kubectl, plane_with_networks, printed, remove_pods, run, until
from tests.unit.plane.network.machine import TestMachine

ADDRESS = "10.0.0.10"
SVC = "default.svc.cluster.local"


@pytest.fixture
def plane(here: TestMachine, tmp_path: Path) -> Iterator[PlaneProcess]:
    with plane_with_networks(here, tmp_path) as plane:
        yield plane


def resolve(name: str, kind: str = "A", *, address: str = ADDRESS, tcp: bool = False) -> list[str] | str:
    """The sorted answers, or the response code if there are none; "" if there is no response."""
    query = dns.message.make_query(name, kind)
    try:
        response = (dns.query.tcp if tcp else dns.query.udp)(query, address, timeout=1)
    except (OSError, dns.exception.Timeout):
        return ""
    found = sorted(each.to_text() for each in response.answer[0]) if response.answer else []
    return found or dns.rcode.to_text(response.rcode())


RESOLVE = f"""
import socket
def addresses(name):
    try:
        return sorted({{each[4][0] for each in socket.getaddrinfo(name, 80)}})
    except OSError as error:
        return error.errno == socket.EAI_NONAME and "missing"
print(open("/etc/resolv.conf").read().splitlines()[1])
for name in "web web.default web.default.svc web.{SVC} db-0.db none.{SVC}. kubernetes".split():
    print(name, addresses(name))
print(socket.getfqdn())
"""


def test_pods_and_the_machine_resolve_names_until_a_service_with_pods_replaces_the_server(plane: PlaneProcess) -> None:
    web = create(plane, Service, {"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}})
    headless = {"clusterIP": "None", "selector": {"app": "db"}, "ports": [{"port": 8000}]}
    create(plane, Service, {"metadata": {"name": "db"}, "spec": headless})
    database = run(plane, "db-0", *SERVE, hostname="db-0", subdomain="db", labels={"app": "db"})
    until(lambda: resolve(f"db-0.db.{SVC}") == [database.status.pod_ip], "name of the Pod")
    named = {"hostname": "client", "subdomain": "db", "setHostnameAsFQDN": True}
    run(plane, "client", "python3", "-c", RESOLVE, restartPolicy="Never", **named)
    assert printed(plane, "client").splitlines() == [
        f"search {SVC} svc.cluster.local cluster.local",
        f"web ['{web.spec.cluster_ip}']",
        f"web.default ['{web.spec.cluster_ip}']",
        f"web.default.svc ['{web.spec.cluster_ip}']",
        f"web.{SVC} ['{web.spec.cluster_ip}']",
        f"db-0.db ['{database.status.pod_ip}']",
        f"none.{SVC}. missing",
        "kubernetes ['10.0.0.1']",
        f"client.db.{SVC}",
    ]
    # The machine asks the address.
    for tcp in (False, True):
        assert resolve(f"kubernetes.{SVC}", tcp=tcp) == ["10.0.0.1"]
        assert resolve(f"_https._tcp.kubernetes.{SVC}", "SRV", tcp=tcp) == [f"0 100 443 kubernetes.{SVC}."]
        assert resolve("1.0.0.10.in-addr.arpa", "PTR", tcp=tcp) == [f"kubernetes.{SVC}."]
        assert resolve(f"none.{SVC}", tcp=tcp) == "NXDOMAIN"
        assert resolve(f"kubernetes.{SVC}", "AAAA", tcp=tcp) == "NOERROR"
    query = dns.message.make_query(f"kubernetes.{SVC}", "A", use_edns=True)
    response = dns.query.udp(query, ADDRESS, timeout=5)
    assert response.flags & dns.flags.AA
    assert response.edns == 0
    # A Service with a selector replaces the built-in server.
    kubectl(plane, "patch", "-n", "kube-system", "svc", "kube-dns", "-p", '{"spec": {"selector": {"app": "none"}}}')
    until(lambda: not resolve(f"kubernetes.{SVC}"), "end of the answers")
    patch = '[{"op": "remove", "path": "/spec/selector"}]'
    kubectl(plane, "patch", "-n", "kube-system", "svc", "kube-dns", "--type", "json", "-p", patch)
    until(lambda: resolve(f"kubernetes.{SVC}") == ["10.0.0.1"], "answer again")


def test_address_and_domain_are_settings_and_dns_can_be_left_out(here: TestMachine, tmp_path: Path) -> None:
    common = ("--nodes", "1", "--runtime", "process")
    plane = PlaneProcess(tmp_path, *common, "--cluster-dns", "10.0.0.53", "--cluster-domain", "example.test")
    plane.start()
    until(lambda: resolve("kubernetes.default.svc.example.test", address="10.0.0.53") == ["10.0.0.1"], "answer")
    assert plane.stop() == 0
    plane = PlaneProcess(tmp_path / "without", *common, "--without", "dns")
    plane.start()
    assert ask(plane, lambda client: client.get(Service, "kube-dns", namespace="kube-system", missing=None)) is None
    run(plane, "client", "cat", "/etc/resolv.conf", restartPolicy="Never")
    assert ADDRESS not in printed(plane, "client")
    remove_pods(plane)
    assert plane.stop() == 0


def test_dns_returns_after_its_process_was_killed_and_follows_its_setting(here: TestMachine, tmp_path: Path) -> None:
    common = ("--nodes", "1", "--runtime", "process", "--processes", "2")
    plane = PlaneProcess(tmp_path, *common)
    plane.start()
    until(lambda: resolve(f"kubernetes.{SVC}") == ["10.0.0.1"], "answer")
    os.kill(next(pid for parts, pid in plane.parts().items() if "nodes" in parts), signal.SIGKILL)
    until(lambda: not resolve(f"kubernetes.{SVC}"), "end of the answers")
    until(lambda: resolve(f"kubernetes.{SVC}") == ["10.0.0.1"], "answer again")
    assert plane.stop() == 0
    plane = PlaneProcess(tmp_path, *common, "--cluster-dns", "10.0.0.53")
    plane.start()
    until(lambda: resolve(f"kubernetes.{SVC}", address="10.0.0.53") == ["10.0.0.1"], "answer at the new address")
    assert plane.stop() == 0
