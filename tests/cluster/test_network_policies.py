"""Network policies in a whole plane: Pods of the process runtime with networks of their own.

The test has a machine of its own: a network namespace with an uplink that leads nowhere else.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ostinato.kinds.core_v1 import Pod, Service
from ostinato.kinds.networking_v1 import NetworkPolicy
from ostinato.plane.network import nf_messages as nf
from tests.cluster.planes import PlaneProcess
from tests.cluster.pod_runs import SERVE, ask, create, kubectl, plane_with_networks, run, until
from tests.unit.plane.network.machine import TestMachine

REACH = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=0.5).close()"


@pytest.fixture
def plane(here: TestMachine, tmp_path: Path) -> Iterator[PlaneProcess]:
    with plane_with_networks(here, tmp_path) as plane:
        yield plane
    assert nf.tables() == []


def reaches(plane: PlaneProcess, client: str, host: str, port: int = 8000) -> bool:
    """Whether a Pod can connect."""
    command = ["kubectl", "--kubeconfig", str(plane.kubeconfig), "exec", client, "--", "python3", "-c", REACH]
    return subprocess.run([*command, host, str(port)], check=False, capture_output=True, timeout=60).returncode == 0


def policy(plane: PlaneProcess, name: str, **spec: Any) -> None:
    create(plane, NetworkPolicy, {"metadata": {"name": name}, "spec": spec})


def test_policies_are_enforced_between_pods_and_through_services(plane: PlaneProcess) -> None:
    probe = {"readinessProbe": {"tcpSocket": {"port": 8000}, "periodSeconds": 1}, "ports": [
        {"containerPort": 8000, "hostPort": 18000, "name": "web"}]}  # fmt: skip
    server = run(plane, "server", *SERVE, labels={"app": "server"}, container=probe)
    for name in ("friend", "stranger"):
        run(plane, name, "sleep", "1000", labels={"role": name})
    spec = {"selector": {"app": "server"}, "ports": [{"port": 80, "targetPort": "web"}]}
    service = create(plane, Service, {"metadata": {"name": "web"}, "spec": spec})
    address, virtual, node = server.status.pod_ip or "", service.spec.cluster_ip or "", server.status.host_ip or ""
    ways = [(address, 8000), ("web", 80), (virtual, 80), (node, 18000)]
    for each in ("friend", "stranger"):
        until(lambda each=each: all(reaches(plane, each, *way) for way in ways), f"connection of {each}")  # type: ignore[misc]

    friends = [{"podSelector": {"matchLabels": {"role": "friend"}}}]
    rule = {"from": friends, "ports": [{"port": "web"}]}
    policy(plane, "server", podSelector={"matchLabels": {"app": "server"}}, ingress=[rule])
    until(lambda: not reaches(plane, "stranger", address), "isolation")
    assert not any(reaches(plane, "stranger", *way) for way in ways[:3])
    assert all(reaches(plane, "friend", *way) for way in ways)
    ready = ask(plane, lambda client: client.get(Pod, "server")).status.conditions
    assert next(each.status for each in ready if each.type == "Ready") == "True"

    # A Pod is isolated when it starts, and follows its labels.
    late = run(plane, "late", *SERVE, labels={"app": "server"})
    assert not reaches(plane, "stranger", late.status.pod_ip or "")
    kubectl(plane, "label", "pod", "stranger", "role=friend", "--overwrite")
    until(lambda: reaches(plane, "stranger", address), "permission by a label")

    # Egress; the DNS server is the node's.
    policy(plane, "silent", podSelector={"matchLabels": {"role": "friend"}}, policyTypes=["Egress"])
    until(lambda: not reaches(plane, "friend", address), "isolation of the client")
    assert not reaches(plane, "friend", "web", 80)
    assert reaches(plane, "friend", "10.0.0.10", 53)
    for name in ("server", "silent"):
        kubectl(plane, "delete", "networkpolicy", name)
    until(lambda: reaches(plane, "friend", address), "connection without policies")
