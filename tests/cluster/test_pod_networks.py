"""Pods of the process runtime with networks of their own, in a whole plane.

Each test has a machine of its own: a network namespace with an uplink that leads nowhere else.
"""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ostinato.client import Client
from ostinato.kinds.apps_v1 import Deployment
from ostinato.kinds.core_v1 import Event, Namespace, Node, Pod, Service
from tests.cluster.planes import PlaneProcess
from tests.cluster.pod_runs import (
    SERVE,
    ask,
    create,
    fetched,
    kubectl,
    plane_with_networks,
    pods,
    printed,
    remove_pods,
    run,
    until,
)
from tests.unit.plane.network.machine import TestMachine


@pytest.fixture
def plane(here: TestMachine, tmp_path: Path) -> Iterator[PlaneProcess]:
    with plane_with_networks(here, tmp_path) as plane:
        yield plane


def test_two_replicas_listen_on_one_port_with_probes(plane: PlaneProcess) -> None:
    script = "hostname > index.html; exec python3 -m http.server 8000"
    probe = {"httpGet": {"port": 8000}, "periodSeconds": 1}
    container = {
        "name": "web",
        "image": "none",
        "command": ["sh", "-c", script],
        "ports": [{"containerPort": 8000}],
        "readinessProbe": probe,
        "livenessProbe": {"tcpSocket": {"port": 8000}, "periodSeconds": 1},
    }
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0},
    }
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    create(plane, Deployment, {"metadata": {"name": "web"}, "spec": spec})
    ports = {"selector": {"app": "web"}, "ports": [{"port": 8000}], "type": "NodePort"}
    service = create(plane, Service, {"metadata": {"name": "web"}, "spec": ports})

    def available() -> bool:
        return ask(plane, lambda client: client.get(Deployment, "web")).status.available_replicas == 2

    until(available, f"two replicas: {plane.log()[-2000:]}")
    found = ask(plane, pods)
    addresses = {each.status.pod_ip for each in found}
    assert len(addresses) == 2
    assert all((each or "").startswith("10.244.0.") for each in addresses)
    assert all(each.status.container_statuses[0].restart_count == 0 for each in found)
    names = {f"{each.metadata.name}\n" for each in found}
    cluster, node = f"http://{service.spec.cluster_ip}:8000/", service.spec.ports[0].node_port
    for url in (cluster, f"http://127.0.0.1:{node}/"):
        until(lambda url=url: {fetched(url) for _ in range(4)} == names, f"answers of both at {url}")  # type: ignore[misc]
    script = f"import urllib.request as u; print(u.urlopen('{cluster}').read().decode(), end='')"
    run(plane, "client", "python3", "-c", script, restartPolicy="Never")
    assert printed(plane, "client") in names


WHO = """
import json, os, ssl, urllib.request
root = "/var/run/secrets/kubernetes.io/serviceaccount"
host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
context = ssl.create_default_context(cafile=root + "/ca.crt")
review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
request = urllib.request.Request(
    f"https://{host}:{port}/apis/authentication.k8s.io/v1/selfsubjectreviews",
    json.dumps(review).encode(),
    {"Authorization": "Bearer " + open(root + "/token").read(), "Content-Type": "application/json"},
)
print(host, json.load(urllib.request.urlopen(request, context=context))["status"]["userInfo"]["username"])
"""


def test_each_of_two_planes_on_one_machine_answers_to_its_own_pods(here: TestMachine, tmp_path: Path) -> None:
    planes = [PlaneProcess(tmp_path / name, "--runtime", "process") for name in ("one", "two")]
    for each in planes:
        each.start()
    for plane in planes:
        run(plane, "own", "python3", "-c", WHO, restartPolicy="Never")
        run(plane, "host", "python3", "-c", WHO, restartPolicy="Never", hostNetwork=True)
    for plane in planes:
        assert printed(plane, "own") == "10.0.0.1 system:serviceaccount:default:default\n", plane.log()[-2000:]
        assert printed(plane, "host") == "127.0.0.1 system:serviceaccount:default:default\n"
    addresses = [ask(each, lambda client: client.get(Pod, "own")).status.pod_ip for each in planes]
    assert [(each or "").rpartition(".")[0] for each in addresses] == ["10.244.0", "10.244.1"]
    for plane in planes:
        remove_pods(plane)
        assert plane.stop() == 0
    until(lambda: not here.links(), "end of the links")


def test_port_forwarding_reaches_the_loopback_of_a_pod(plane: PlaneProcess) -> None:
    probe = {"exec": {"command": ["python3", "-c", "import socket; socket.create_connection(('127.0.0.1', 8000))"]}}
    container = {"readinessProbe": {**probe, "periodSeconds": 1, "timeoutSeconds": 5}}
    run(plane, "web", *SERVE, "--bind", "127.0.0.1", container=container)
    until(lambda: ask(plane, lambda client: client.get(Pod, "web")).status.container_statuses[0].ready, "readiness")
    command = ["kubectl", "--kubeconfig", str(plane.kubeconfig), "port-forward", "pod/web", ":8000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as forwarding:
        assert forwarding.stdout is not None
        port = int(forwarding.stdout.readline().split(":")[1].split()[0])  # Forwarding from 127.0.0.1:PORT -> 8000
        until(lambda: "Directory listing" in fetched(f"http://127.0.0.1:{port}/"), "answer through the port")
        forwarding.terminate()


def test_a_host_port_leads_to_its_pod_and_is_refused_twice(plane: PlaneProcess) -> None:
    ports = {"ports": [{"containerPort": 8000, "hostPort": 9000}]}
    run(plane, "web", *SERVE, container=ports)
    until(lambda: "Directory listing" in fetched("http://127.0.0.1:9000/"), "answer at the host port")
    remove_pods(plane)

    def free() -> socket.socket | None:
        with suppress(OSError):
            return socket.create_server(("127.0.0.1", 9000))
        return None

    with until(free, "end of the host port"):
        spec = {"containers": [{"name": "c", "image": "none", "command": SERVE, **ports}]}
        create(plane, Pod, {"metadata": {"name": "second"}, "spec": spec})

        async def said(client: Client) -> list[str]:
            return [each.message or "" async for each in client.list(Event) if each.reason == "FailedCreatePodSandBox"]

        until(lambda: "hostPort 9000: address already in use" in ask(plane, said), "event")


def test_a_pod_with_host_network_uses_the_network_of_the_machine(plane: PlaneProcess) -> None:
    pod = run(plane, "host", *SERVE, hostNetwork=True)
    assert pod.status.pod_ip == pod.status.host_ip
    until(lambda: "Directory listing" in fetched("http://127.0.0.1:8000/"), "answer on the machine")
    assert condition(plane) is None


def condition(plane: PlaneProcess) -> tuple[str | None, str | None, str | None] | None:
    node = ask(plane, lambda client: client.get(Node, "node-1"))
    found = [each for each in node.status.conditions if each.type == "NetworkUnavailable"]
    return (found[0].status, found[0].reason, found[0].message) if found else None


def test_a_killed_plane_finds_the_networks_of_its_pods_again(plane: PlaneProcess) -> None:
    before = run(plane, "web", *SERVE)
    url = f"http://{before.status.pod_ip}:8000/"
    until(lambda: fetched(url), "answer")
    plane.kill()
    assert fetched(url)
    plane.start()
    run(plane, "other", *SERVE)
    after = ask(plane, lambda client: client.get(Pod, "web"))
    assert (after.status.pod_ip, after.status.container_statuses[0].restart_count) == (before.status.pod_ip, 0)
    assert fetched(url)
    assert kubectl(plane, "exec", "web", "--", "python3", "-c", LISTED).split() == ["lo", "eth0"]


LISTED = "import socket; print(*(name for _, name in socket.if_nameindex()))"


def test_names_and_sysctls_are_those_of_the_pod(plane: PlaneProcess) -> None:
    script = "cat /etc/hosts /etc/resolv.conf /proc/sys/net/ipv4/tcp_keepalive_time; ls /sys/class/net"
    pod = run(
        plane,
        "named",
        *("sh", "-c", script),
        restartPolicy="Never",
        hostAliases=[{"ip": "192.0.2.9", "hostnames": ["db.example"]}],
        dnsPolicy="None",
        dnsConfig={"nameservers": ["192.0.2.53"], "searches": ["example"]},
        securityContext={"sysctls": [{"name": "net.ipv4.tcp_keepalive_time", "value": "77"}]},
    )
    lines = printed(plane, "named").splitlines()
    assert f"{pod.status.pod_ip}\tnamed" in lines
    assert "192.0.2.9\tdb.example" in lines
    assert lines[-5:] == ["nameserver 192.0.2.53", "search example", "77", "eth0", "lo"]


ATTACK = """
import errno, os, socket, struct
def attempt(what, act):
    try:
        act()
        print(what, "done")
    except OSError as error:
        print(what, errno.errorcode.get(error.errno, error))
def change(kind, body):
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as link:
        link.send(struct.pack("=IHHII", 16 + len(body), kind, 0x605, 1, 0) + body)
        code = struct.unpack_from("=i", link.recv(4096), 16)[0]
        if code:
            raise OSError(-code, "refused")
address = socket.inet_aton("10.244.0.99")
attempt("address", lambda: change(20, struct.pack("=BBBBI", 2, 24, 0, 0, 2) + struct.pack("=HH", 8, 2) + address))
attempt("down", lambda: change(16, struct.pack("=BxHiII", 0, 0, 2, 0, 1)))
attempt("raw", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
attempt("abstract", lambda: socket.socket(socket.AF_UNIX).connect("\\0victim"))
attempt("sysctl", lambda: open("/proc/sys/net/ipv4/ip_forward", "w").write("1"))
attempt("join", lambda: os.open("/proc/1/ns/net", os.O_RDONLY) and None)
attempt("bind", lambda: socket.create_server(("0.0.0.0", 80)))
"""
RESTRICTED = {
    "runAsNonRoot": True,
    "runAsUser": 1000,
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}


@pytest.mark.parametrize("security", [RESTRICTED, {}], ids=["restricted", "root"])
def test_a_pod_cannot_change_its_network_nor_reach_the_machines(plane: PlaneProcess, security: dict[str, Any]) -> None:
    with socket.socket(socket.AF_UNIX) as victim, socket.create_server(("0.0.0.0", 80)):
        victim.bind("\0victim")
        victim.listen()
        container = {"securityContext": security}
        run(plane, "attacker", "python3", "-c", ATTACK, restartPolicy="Never", container=container)
        said = dict(line.split() for line in printed(plane, "attacker").splitlines())
    assert said.pop("join") in ("done", "EACCES")  # its own
    assert said == {
        "address": "EPERM",
        "down": "EPERM",
        "raw": "EPERM",
        "abstract": "ECONNREFUSED",
        "sysctl": "EROFS",
        "bind": "done",  # of its own port 80, not of the machine's
    }


def test_without_pod_networks_the_node_has_a_condition(here: TestMachine, tmp_path: Path) -> None:
    plane = PlaneProcess(tmp_path, "--runtime", "process", "--pod-network-cidr", "none")
    plane.start()
    pod = run(plane, "shared", *SERVE)
    assert pod.status.pod_ip == pod.status.host_ip
    assert not {each for each in here.links() if each.startswith("ostb-")}
    reason = "Pods use the network of the machine: switched off by --pod-network-cidr none"
    assert condition(plane) == ("False", "PodsShareHostNetwork", reason)
    remove_pods(plane)
    assert plane.stop() == 0
    plane = PlaneProcess(tmp_path, "--runtime", "process")
    plane.start()
    message = "each Pod has a network namespace and an address of 10.244.0.0/24"
    until(lambda: condition(plane) == ("False", "PodNetworkReady", message), "other condition")
    assert plane.stop() == 0


def test_forty_pods_come_and_go_without_a_trace(plane: PlaneProcess) -> None:
    container = {"name": "c", "image": "none", "command": ["sleep", "1000"]}
    template = {
        "metadata": {"labels": {"app": "many"}},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0},
    }
    spec = {"replicas": 40, "selector": {"matchLabels": {"app": "many"}}, "template": template}
    create(plane, Deployment, {"metadata": {"name": "many"}, "spec": spec})

    def available() -> bool:
        return ask(plane, lambda client: client.get(Deployment, "many")).status.available_replicas == 40

    until(available, "forty replicas")
    assert len({each.status.pod_ip for each in ask(plane, pods)}) == 40


def test_a_node_uses_the_pod_cidr_of_its_node_object(here: TestMachine, tmp_path: Path) -> None:
    plane = PlaneProcess(tmp_path, "--runtime", "process", "--nodes", "0")
    plane.start()
    ask(plane, lambda client: client.get(Namespace, "default"))
    content = {"metadata": {"name": "node-1"}, "spec": {"podCIDR": "10.77.0.0/24", "podCIDRs": ["10.77.0.0/24"]}}
    ask(plane, lambda client: client.create(msgspec.convert(content, Node)))
    assert plane.stop() == 0
    plane = PlaneProcess(tmp_path, "--runtime", "process", "--nodes", "1")
    plane.start()
    assert (run(plane, "web", *SERVE).status.pod_ip or "").startswith("10.77.0.")
    remove_pods(plane)
    assert plane.stop() == 0
