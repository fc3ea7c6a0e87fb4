"""A dual-stack plane: Services, Pods, DNS and policies over both IP families.

The machine is one of the test's own: a network namespace with an uplink that leads nowhere else.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ostinato.kinds.core_v1 import Node, Pod, Service
from ostinato.kinds.discovery_v1 import EndpointSlice
from ostinato.kinds.networking_v1 import NetworkPolicy
from ostinato.plane.network.services.endpoints import is_ready
from tests.cluster.planes import PlaneProcess
from tests.cluster.pod_runs import ask, create, kubectl, pods, printed, remove_pods, run, until
from tests.unit.plane.network.machine import ADDRESS, ADDRESS6, TestMachine, dial, machine

SERVER = """
import socket, threading
def serve(family, host):
    listener = socket.socket(family)
    if family == socket.AF_INET6:
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    listener.bind((host, 8000)); listener.listen()
    while True:
        connection, client = listener.accept()
        connection.sendall((socket.gethostname() + " " + client[0]).encode()); connection.close()
threading.Thread(target=serve, args=(socket.AF_INET6, "::")).start()
serve(socket.AF_INET, "0.0.0.0")
"""
ASK = """
import socket, sys
for host in sys.argv[2:]:
    try:
        connection = socket.create_connection((host, int(sys.argv[1])), timeout=5)
        print(host, connection.makefile().read().split()[0])
    except OSError as error:
        print(host, type(error).__name__)
"""


@pytest.fixture
def here() -> Iterator[TestMachine]:
    if not os.path.exists("/proc/net/if_inet6"):
        pytest.skip("the kernel has no IPv6")
    with machine(ipv6=True) as found:
        yield found


@pytest.fixture
def plane(here: TestMachine, tmp_path: Path) -> Iterator[PlaneProcess]:
    plane = PlaneProcess(tmp_path, "--nodes", "1", "--runtime", "process", "--ip-family", "dual")
    plane.start()
    yield plane
    remove_pods(plane)
    assert plane.stop() == 0, plane.log()[-2000:]
    until(lambda: not here.links(), "end of the links")


def served(plane: PlaneProcess, name: str, **spec: Any) -> Service:
    """A dual-stack Service of the Pods with a label, with an endpoint of each family."""
    wanted = {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": 8000}], **spec}
    content = {"metadata": {"name": name}, "spec": {"ipFamilyPolicy": "RequireDualStack", **wanted}}
    service = create(plane, Service, content)

    def ready() -> bool:
        labels = f"kubernetes.io/service-name={name}"
        slices = ask(plane, lambda client: _slices(client, labels))
        found = {each.address_type for each in slices for endpoint in each.endpoints if is_ready(endpoint)}
        return found == {"IPv4", "IPv6"}

    until(ready, f"endpoints of both families: {plane.log()[-2000:]}")
    return service


async def _slices(client: Any, labels: str) -> list[EndpointSlice]:
    return [each async for each in client.list(EndpointSlice, labels=labels)]


def answer(host: str, port: int) -> str:
    """What a server sends to the machine; empty if there is none."""
    try:
        with socket.create_connection((host, port), timeout=3) as connection:
            return connection.makefile().read().split()[0]
    except OSError:
        return ""


def test_pods_nodes_and_services_have_addresses_of_both_families(here: TestMachine, plane: PlaneProcess) -> None:
    script = "import os; print(os.environ['PODS'], os.environ['HOSTS']); print(open('/etc/hosts').read())"
    environment = [
        {"name": name, "valueFrom": {"fieldRef": {"fieldPath": f"status.{field}"}}}
        for name, field in (("PODS", "podIPs"), ("HOSTS", "hostIPs"))
    ]
    run(plane, "once", "python3", "-c", script, restartPolicy="Never", container={"env": environment})
    output = printed(plane, "once")
    pod = ask(plane, lambda client: client.get(Pod, "once"))
    first, second = (each.ip or "" for each in pod.status.pod_ips)
    assert (pod.status.pod_ip, ":" in first, ":" in second) == (first, False, True)
    assert [each.ip for each in pod.status.host_ips] == [ADDRESS, ADDRESS6]
    assert output.splitlines()[0] == f"{first},{second} {ADDRESS},{ADDRESS6}"
    assert f"{first}\tonce\n{second}\tonce\n" in output
    node = ask(plane, lambda client: client.get(Node, "node-1"))
    internal = [each.address for each in node.status.addresses if each.type == "InternalIP"]
    assert internal == [ADDRESS, ADDRESS6]

    ports = {"ports": [{"containerPort": 8000, "hostPort": 18000}]}
    run(plane, "web", "python3", "-c", SERVER, labels={"app": "web"}, container=ports)
    service = served(plane, "web", type="NodePort")
    node_port = service.spec.ports[0].node_port or 0
    places = [*((ip, 80) for ip in service.spec.cluster_ips), (ADDRESS, node_port), (ADDRESS6, node_port)]
    until(lambda: [answer(*each) for each in places] == ["web"] * 4, f"answers at {places}: {plane.log()[-2000:]}")
    for host in (ADDRESS, ADDRESS6):  # hostPort
        assert answer(host, 18000) == "web"

    names = ["web.default.svc.cluster.local", *service.spec.cluster_ips]
    run(plane, "client", "python3", "-c", ASK, "80", *names, restartPolicy="Never")
    assert printed(plane, "client").splitlines() == [f"{each} web" for each in names]


def test_names_resolve_to_addresses_of_both_families(here: TestMachine, plane: PlaneProcess) -> None:
    run(plane, "web", "python3", "-c", SERVER, labels={"app": "web"})
    service = served(plane, "web", clusterIP="None")
    pod = ask(plane, lambda client: client.get(Pod, "web"))
    other = served(plane, "other", selector={"app": "web"})
    script = """
import socket, sys
for name in sys.argv[1:]:
    found = sorted({each[4][0] for each in socket.getaddrinfo(name, 80, type=socket.SOCK_STREAM)}, key=len)
    print(*found)
print(socket.gethostbyaddr(sys.argv[3])[0]) if len(sys.argv) > 3 else None
"""
    names = [f"{each.metadata.name}.default.svc.cluster.local" for each in (service, other)]
    run(plane, "client", "python3", "-c", script, *names, other.spec.cluster_ips[1], restartPolicy="Never")
    output = printed(plane, "client").splitlines()
    assert output[0].split() == [each.ip for each in pod.status.pod_ips]
    assert output[1].split() == other.spec.cluster_ips
    assert output[3] == names[1]


def test_a_policy_with_an_ipv6_block_applies(here: TestMachine, plane: PlaneProcess) -> None:
    run(plane, "web", "python3", "-c", SERVER, labels={"app": "web"})
    service = served(plane, "web")
    pod = ask(plane, lambda client: client.get(Pod, "web"))
    block = {"ipBlock": {"cidr": "fd00:10:244::/48"}}
    spec = {"podSelector": {"matchLabels": {"app": "web"}}, "ingress": [{"from": [block]}]}
    create(plane, NetworkPolicy, {"metadata": {"name": "ipv6"}, "spec": spec})

    def outcomes(name: str, port: int, *hosts: str) -> list[str]:
        run(plane, name, "python3", "-c", ASK, str(port), *hosts, restartPolicy="Never")
        return [line.split()[1] for line in printed(plane, name).splitlines()]

    first, second = (each.ip or "" for each in pod.status.pod_ips)
    tries = iter(range(100))
    until(lambda: outcomes(f"try-{next(tries)}", 8000, first)[0] != "web", "isolation over IPv4")
    assert outcomes("direct", 8000, first, second) == ["TimeoutError", "web"]
    assert outcomes("service", 80, *service.spec.cluster_ips)[1] == "web"
    assert outcomes("other", 80, service.spec.cluster_ips[0])[0] != "web"


def test_a_plane_that_had_one_family_gets_the_other(here: TestMachine, tmp_path: Path) -> None:
    plane = PlaneProcess(tmp_path, "--nodes", "1", "--runtime", "process")
    plane.start()
    run(plane, "old", "python3", "-c", SERVER)
    before = [each.ip for each in ask(plane, lambda client: client.get(Pod, "old")).status.pod_ips]
    assert plane.stop() == 0
    plane = PlaneProcess(tmp_path, "--nodes", "1", "--runtime", "process", "--ip-family", "dual")
    plane.start()
    new = run(plane, "new", "python3", "-c", SERVER, labels={"app": "new"})
    assert len(new.status.pod_ips) == 2
    assert [each.ip for each in ask(plane, lambda client: client.get(Pod, "old")).status.pod_ips] == before
    assert dial(here.namespace, before[0] or "", 8000) == "connected"
    service = served(plane, "new")
    until(lambda: answer(service.spec.cluster_ips[1], 80) == "new", f"answer: {plane.log()[-2000:]}")
    remove_pods(plane)
    assert plane.stop() == 0
    until(lambda: not here.links(), "end of the links")


def test_simulated_nodes_have_pods_of_both_families(tmp_path: Path) -> None:
    plane = PlaneProcess(tmp_path, "--nodes", "3", "--runtime", "simulated", "--ip-family", "dual")
    plane.start()
    for number in range(6):
        run(plane, f"p{number}", "sleep", "9", labels={"app": "web"})
    served(plane, "web")
    nodes = {each.metadata.name: each for each in ask(plane, _nodes)}
    for pod in ask(plane, pods):
        cidrs = nodes[pod.spec.node_name or ""].spec.pod_cidrs
        assert [":" in each for each in cidrs] == [False, True]
        assert len(pod.status.pod_ips) == 2
    assert kubectl(plane, "get", "pods", "-o", "name").count("pod/") == 6
    assert plane.stop() == 0


async def _nodes(client: Any) -> list[Node]:
    return [each async for each in client.list(Node)]
