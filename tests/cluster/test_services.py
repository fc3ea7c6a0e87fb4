"""Services on a machine whose Pods are processes: connections to their addresses reach their endpoints.

Each test has a network of its own, with nothing in it but an address, so that it takes none of this machine's.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import socket
import ssl
import threading
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from time import monotonic, sleep
from typing import TypeVar

import pytest

from ostinato.api.meta import ObjectMeta
from ostinato.client import Client, Config
from ostinato.kinds.core_v1 import (
    Container,
    ContainerPort,
    HTTPGetAction,
    Pod,
    PodSpec,
    Probe,
    Service,
    ServiceAccount,
    ServicePort,
    ServiceSpec,
)
from ostinato.kinds.discovery_v1 import Endpoint, EndpointPort, EndpointSlice
from ostinato.plane.network.namespaces import new_namespace, within
from ostinato.plane.network.netlink import Netlink
from ostinato.plane.network.services.addresses import AddressInUse
from ostinato.plane.network.services.netns import NetnsAddresses
from tests.cluster.planes import PlaneProcess
from tests.cluster.pod_runs import remove_pods

T = TypeVar("T")
HERE = "192.0.2.2"
SECONDS = 60


@pytest.fixture
def network(request: pytest.FixtureRequest) -> Iterator[None]:
    """Sockets and processes of the test are in a network of their own."""
    if request.config.getoption("--cluster"):
        pytest.skip("these are about our own plane")
    if os.geteuid() != 0:
        pytest.skip("addresses for Services take root")
    try:
        namespace = new_namespace()
    except OSError as error:
        pytest.skip(f"no network namespace can be had here: {error}")
    with within(namespace):
        link = Netlink()
        link.set_up("lo")
        link.add_pair("net0", "net1", namespace)
        device = link.set_up("net0")
        link.set_up("net1")
        link.add_address(device, ipaddress.ip_address(HERE))
        link.add_default_route(device, ipaddress.ip_address("192.0.2.1"))
        yield
        link.close()
    os.close(namespace)


@pytest.fixture
def plane(network: None, tmp_path: Path) -> Iterator[PlaneProcess]:
    plane = PlaneProcess(tmp_path, "--nodes", "1", "--runtime", "process", "--store", "memory")
    plane.start()
    yield plane
    assert plane.stop() == 0, plane.log()[-2000:]
    assert devices() == set()


def devices() -> set[str]:
    return {name for _, name in socket.if_nameindex() if name.startswith("ost-")}


def until(condition: Callable[[], object], what: str) -> None:
    end = monotonic() + SECONDS
    while not condition():
        assert monotonic() < end, f"no {what}"
        sleep(0.05)


Made = Service | EndpointSlice | Pod


def ask(plane: PlaneProcess, act: Callable[[Client], Awaitable[T]]) -> T:
    async def asked() -> T:
        config = Config.load(path=plane.kubeconfig, namespace="default")
        async with Client.connect(config, field_manager="test") as client, asyncio.timeout(SECONDS):
            return await act(client)

    return asyncio.run(asked())


def create(plane: PlaneProcess, *objects: Made) -> list[Made]:
    async def made(client: Client) -> list[Made]:
        return [await client.create(each) for each in objects]

    return ask(plane, made)


def service(name: str, *ports: ServicePort, **spec: object) -> Service:
    return Service(metadata=ObjectMeta(name=name), spec=ServiceSpec(ports=list(ports), **spec))  # type: ignore[arg-type]


def endpoints(name: str, number: int, port: int, protocol: str = "TCP") -> EndpointSlice:
    """By hand, as for a Service that selects nobody."""
    return EndpointSlice(
        metadata=ObjectMeta(name=f"{name}-{number}", labels={"kubernetes.io/service-name": name}),
        address_type="IPv4",
        endpoints=[Endpoint(addresses=[HERE])],
        ports=[EndpointPort(port=port, protocol=protocol)],
    )


@pytest.fixture
def greeter(network: None) -> Iterator[Callable[[str], int]]:
    """Starts a server that says a word to whoever connects; its port."""
    servers: list[socket.socket] = []

    def greet(server: socket.socket, word: str) -> None:
        while True:
            try:
                client, _ = server.accept()
            except OSError:
                return
            with client:
                client.sendall(word.encode())

    def start(word: str) -> int:
        server = socket.create_server((HERE, 0))
        servers.append(server)
        threading.Thread(target=greet, args=(server, word), daemon=True).start()
        return int(server.getsockname()[1])

    yield start
    for server in servers:
        server.shutdown(socket.SHUT_RDWR)
        server.close()


def said(address: str, port: int) -> str:
    """What is said to who connects; "" if nobody can."""
    try:
        with socket.create_connection((address, port), timeout=2) as connection:
            return connection.recv(100).decode()
    except OSError:
        return ""


@pytest.fixture
def annex(network: None, tmp_path: Path) -> Iterator[NetnsAddresses]:
    annex = NetnsAddresses(tmp_path)
    yield annex
    annex.close()
    assert devices() == set()


@pytest.mark.parametrize("text", ["10.0.0.5", "fd77::5"])
def test_an_address_is_had_beside_sockets_that_listen_everywhere(annex: NetnsAddresses, text: str) -> None:
    address = ipaddress.ip_address(text)
    annex.take(address)
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    with annex.socket(socket.SOCK_STREAM, address) as listening, socket.socket(family) as everywhere:
        listening.bind((text, 8000))
        listening.listen()
        everywhere.bind(("", 8000))
        everywhere.listen()
        with socket.create_connection((text, 8000), timeout=5) as client:
            listening.settimeout(5)
            served, _ = listening.accept()
            with served:
                client.sendall(b"hello")
                assert served.recv(10) == b"hello"
    annex.release(address)
    assert not _connects(text, 8000)
    annex.take(address)


def test_addresses_in_use_are_not_assigned(annex: NetnsAddresses, tmp_path: Path) -> None:
    another = NetnsAddresses(tmp_path / "another")
    address = ipaddress.ip_address("10.0.0.5")
    annex.take(address)
    with pytest.raises(AddressInUse, match=r"another process on this machine serves 10\.0\.0\.5"):
        another.take(address)
    annex.release(address)
    another.take(address)
    another.close()
    with pytest.raises(AddressInUse, match=r"this machine has a route to a network with fe80::99 in it"):
        annex.take(ipaddress.ip_address("fe80::99"))


def test_an_address_of_this_machine_is_used_as_it_is(annex: NetnsAddresses) -> None:
    address = ipaddress.ip_address(HERE)
    annex.take(address)
    with annex.socket(socket.SOCK_STREAM, address) as listening:
        listening.bind((HERE, 0))
        listening.listen()
        assert _connects(HERE, listening.getsockname()[1])
    annex.release(address)
    with socket.socket() as still:
        still.bind((HERE, 0))


def test_leftovers_of_another_process_are_replaced(annex: NetnsAddresses, tmp_path: Path) -> None:
    address = ipaddress.ip_address("10.0.0.5")
    annex.take(address)
    successor = NetnsAddresses(tmp_path)
    successor.take(ipaddress.ip_address("10.0.0.6"))
    successor.take(address)
    successor.close()


def address_of(made: object) -> str:
    assert isinstance(made, Service)
    return made.spec.cluster_ip or ""


def test_connections_are_balanced_and_the_address_is_removed_with_the_service(
    plane: PlaneProcess, greeter: Callable[[str], int]
) -> None:
    made = create(
        plane,
        service("words", ServicePort(port=80), type="NodePort"),
        endpoints("words", 1, greeter("one")),
        endpoints("words", 2, greeter("two")),
    )[0]
    address = address_of(made)
    until(lambda: {said(address, 80) for _ in range(4)} == {"one", "two"}, "answer of both endpoints")
    assert isinstance(made, Service)
    node_port = made.spec.ports[0].node_port or 0
    assert said("127.0.0.1", node_port) in ("one", "two")
    assert said(HERE, node_port) in ("one", "two")
    ask(plane, lambda client: client.delete(Service, "words"))
    until(lambda: said(address, 80) == "", "end of the address")
    until(lambda: said(HERE, node_port) == "", "end of the node port")


def test_datagrams_reach_an_endpoint_and_their_answers_come_back(plane: PlaneProcess) -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as server, socket.socket(type=socket.SOCK_DGRAM) as client:
        server.bind((HERE, 0))
        client.settimeout(0.2)

        def echo() -> None:
            while (received := server.recvfrom(100))[0] != b"end":
                server.sendto(received[0].upper(), received[1])

        answering = threading.Thread(target=echo)
        answering.start()
        port = ServicePort(port=53, protocol="UDP")
        made = create(plane, service("dns", port), endpoints("dns", 1, server.getsockname()[1], "UDP"))[0]
        client.connect((address_of(made), 53))

        def answered() -> bool:
            try:
                client.send(b"question")
                return client.recv(100) == b"QUESTION"
            except OSError:
                return False

        until(answered, "answer")
        client.sendto(b"end", server.getsockname())
        answering.join(5)


def test_a_service_leads_to_a_pod_that_listens_on_the_same_port_everywhere(plane: PlaneProcess) -> None:
    command = ["python3", "-m", "http.server", "8000"]
    probe = Probe(http_get=HTTPGetAction(port=8000), period_seconds=1)
    container = Container(
        name="web", image="none", command=command, ports=[ContainerPort(container_port=8000)], readiness_probe=probe
    )
    pod = Pod(metadata=ObjectMeta(name="web", labels={"app": "web"}), spec=PodSpec(containers=[container]))
    until(lambda: ask(plane, lambda client: client.get(ServiceAccount, "default", missing=None)), "service account")
    made = create(plane, service("web", ServicePort(port=8000), selector={"app": "web"}), pod)[0]
    url = f"http://{address_of(made)}:8000/"

    def fetched() -> bool:
        try:
            with urllib.request.urlopen(url, timeout=2) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    until(fetched, f"answer at {url}: {plane.log()[-2000:]}")
    remove_pods(plane)


def test_the_api_server_is_reached_at_its_service(plane: PlaneProcess) -> None:
    until(lambda: _connects("10.0.0.1", 443), "API server")
    context = ssl.create_default_context(cafile=str(plane.kubeconfig.with_name("ca.crt")))
    with (
        socket.create_connection(("10.0.0.1", 443), timeout=5) as connection,
        context.wrap_socket(connection, server_hostname="10.0.0.1") as secured,
    ):
        secured.sendall(b"GET /version HTTP/1.0\r\nHost: kubernetes\r\n\r\n")
        assert b"HTTP/1.1 200" in secured.recv(1000)


def _connects(address: str, port: int) -> bool:
    try:
        socket.create_connection((address, port), timeout=1).close()
    except OSError:
        return False
    return True


def test_a_service_without_endpoints_refuses_connections(plane: PlaneProcess) -> None:
    address = address_of(create(plane, service("nobody", ServicePort(port=80)))[0])

    def refused() -> bool:
        try:
            socket.create_connection((address, 80), timeout=0.2).close()
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
        return False

    until(refused, "refusal")


def test_nothing_is_left_of_a_plane_that_is_killed(network: None, tmp_path: Path) -> None:
    plane = PlaneProcess(tmp_path, "--nodes", "1", "--runtime", "process", "--store", "memory")
    plane.start()
    until(lambda: _connects("10.0.0.1", 443), "API server")
    assert len(devices()) == 1
    plane.kill()
    until(lambda: not devices(), "end of the device")


def test_services_can_be_left_out(network: None, tmp_path: Path) -> None:
    options = ("--nodes", "1", "--runtime", "process", "--store", "memory", "--without", "services")
    plane = PlaneProcess(tmp_path, *options)
    plane.start()
    create(plane, service("nobody", ServicePort(port=80)))
    assert devices() == set()
    assert plane.stop() == 0
