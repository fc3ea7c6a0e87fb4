"""Pod networks in the kernel, on a machine of the test's own. They take root."""

from __future__ import annotations

import errno
import gc
import os
import shutil
import socket
import struct
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from time import monotonic, sleep

import pytest
from tests.unit.plane.network.machine import ADDRESS, WORLD, TestMachine, dial, listening, machine

from ostinato.plane.network import pod_network as module
from ostinato.plane.network.namespaces import within
from ostinato.plane.network.netlink import Netlink
from ostinato.plane.network.pod_network import PodNetwork, PodNetworkSettings, PodNetworkUnavailable

PORT = 8080


@pytest.fixture
def here() -> Iterator[TestMachine]:
    with machine() as found:
        yield found


@pytest.fixture
def network(here: TestMachine, tmp_path: Path) -> Iterator[PodNetwork]:
    network = PodNetwork(tmp_path)
    yield network
    network.close()


def gone(here: TestMachine) -> bool:
    """Whether no link of Pods is left. The kernel removes them in the background."""
    until = monotonic() + 10
    while (left := here.links()) and monotonic() < until:
        sleep(0.01)
    return not left


def test_two_pods_listen_on_one_port_beside_the_machine(here: TestMachine, network: PodNetwork) -> None:
    pods = [network.create(uid, {}) for uid in ("a", "b")]
    listeners = [listening(each.descriptor, "0.0.0.0", PORT) for each in pods]
    listeners.append(listening(here.namespace, "0.0.0.0", PORT))
    for each in pods:
        assert dial(here.namespace, str(each.address), PORT) == "connected"
    assert dial(pods[0].descriptor, str(pods[1].address), PORT) == "connected"
    for address in (str(network.gateway), ADDRESS):
        assert dial(pods[0].descriptor, address, PORT) == "connected"
    for each in listeners:
        each.close()


def test_the_loopback_of_a_pod_is_its_own(here: TestMachine, network: PodNetwork) -> None:
    victim, attacker = network.create("victim", {}), network.create("attacker", {})
    with listening(victim.descriptor, "127.0.0.1", PORT):
        assert dial(victim.descriptor, "127.0.0.1", PORT) == "connected"
        assert dial(attacker.descriptor, str(victim.address), PORT) == "ConnectionRefusedError"
        assert dial(attacker.descriptor, "127.0.0.1", PORT) == "ConnectionRefusedError"
        assert dial(here.namespace, str(victim.address), PORT) == "ConnectionRefusedError"


def test_cve_2020_8558_the_loopback_of_the_machine_is_out_of_reach(here: TestMachine, network: PodNetwork) -> None:
    """Packets for 127.0.0.1 that come over a link are not taken."""
    attacker = network.create("attacker", {"net.ipv4.conf.all.route_localnet": "1"})
    with within(attacker.descriptor):
        inside = Netlink()
    device = next(each.number for each in inside.links() if each.name == "eth0")
    loopback = next(each.number for each in inside.links() if each.name == "lo")
    inside.remove_address(loopback, IPv4Address("127.0.0.1"), 8)
    inside.add_route(device, IPv4Network("127.0.0.0/8"))
    with listening(here.namespace, "127.0.0.1", PORT):
        assert dial(attacker.descriptor, "127.0.0.1", PORT, 1.0) != "connected"
    inside.close()


def test_cve_2020_10749_a_pod_does_not_become_the_router_of_others(here: TestMachine, network: PodNetwork) -> None:
    """A Pod with raw sockets announces itself as the IPv6 router: others, and the machine, do not take the route."""
    attacker, victim, gullible = (network.create(uid, {}) for uid in ("attacker", "victim", "gullible"))
    with within(gullible.descriptor):
        Path("/proc/sys/net/ipv6/conf/eth0/accept_ra").write_text("1")
    advertisement = struct.pack("!BBHBBHII", 134, 0, 0, 64, 0, 1800, 0, 0)
    with within(attacker.descriptor), socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6) as raw:
        raw.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 255)
        everybody = ("ff02::1", 0, 0, socket.if_nametoindex("eth0"))
        until = monotonic() + 10
        while not has_router(gullible.descriptor):
            assert monotonic() < until, "the attack does not work"
            with suppress(OSError):  # its own address is not ready yet
                raw.sendto(advertisement, everybody)
            sleep(0.1)
    assert not has_router(victim.descriptor)
    assert not has_router(here.namespace)


def has_router(namespace: int) -> bool:
    with within(namespace):
        routes = Path("/proc/thread-self/net/ipv6_route").read_text().splitlines()
    return any(line.split()[1] == "00" and line.split()[4] != "0" * 32 for line in routes)


def test_cve_2020_15257_an_abstract_socket_of_the_machine_is_out_of_reach(
    here: TestMachine, network: PodNetwork
) -> None:
    pod = network.create("a", {})
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as near:
        listener.bind("\0ostinato-test")
        listener.listen()
        near.connect("\0ostinato-test")
        with within(pod.descriptor), socket.socket(socket.AF_UNIX) as far, pytest.raises(ConnectionRefusedError):
            far.connect("\0ostinato-test")


def test_beyond_the_machine_a_pod_has_the_address_of_the_machine(here: TestMachine, network: PodNetwork) -> None:
    pod = network.create("a", {})
    with listening(here.world, WORLD, PORT) as listener:
        assert dial(pod.descriptor, WORLD, PORT) == "connected"
        accepted, (address, _) = listener.accept()
        accepted.close()
    assert address == ADDRESS


def test_nobody_outside_of_the_machine_reaches_a_pod(here: TestMachine, network: PodNetwork) -> None:
    pod = network.create("a", {})
    with within(here.world):
        far = Netlink()
    device = next(each.number for each in far.links() if each.name == "eth0")
    far.add_default_route(device, IPv4Address(ADDRESS))
    with listening(pod.descriptor, "0.0.0.0", PORT):
        assert dial(here.namespace, str(pod.address), PORT) == "connected"
        assert dial(here.world, str(pod.address), PORT, 1.0) == "TimeoutError"
    far.close()


def test_other_machines_reach_pods_of_a_range_that_they_route_here(here: TestMachine, tmp_path: Path) -> None:
    network = PodNetwork(tmp_path, PodNetworkSettings(reachable=True))
    pod = network.create("a", {})
    with within(here.world):
        far = Netlink()
    device = next(each.number for each in far.links() if each.name == "eth0")
    far.add_default_route(device, IPv4Address(ADDRESS))
    with listening(pod.descriptor, "0.0.0.0", PORT):
        assert dial(here.world, str(pod.address), PORT) == "connected"
    far.close()
    network.close()


def test_two_nodes_on_one_machine_have_a_range_each_and_reach_each_other(here: TestMachine, tmp_path: Path) -> None:
    networks = [PodNetwork(make(tmp_path / name)) for name in ("one", "two")]
    assert [str(each.cidr) for each in networks] == ["10.244.0.0/24", "10.244.1.0/24"]
    first, second = (each.create("a", {}) for each in networks)
    with listening(second.descriptor, "0.0.0.0", PORT):
        assert dial(first.descriptor, str(second.address), PORT) == "connected"
    for each in networks:
        each.remove("a")
        each.close()
    assert gone(here)


def kill(network: PodNetwork) -> None:
    """Have its process end without a chance to remove anything."""
    network._finalizer.detach()
    network._netlink.close()


def make(directory: Path) -> Path:
    directory.mkdir()
    return directory


def test_a_hundred_pods_leave_nothing_behind(here: TestMachine, network: PodNetwork) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(2):
        for number in range(100):
            network.create(f"pod-{number}", {})
        assert len(here.links()) >= 101
        for number in range(100):
            network.remove(f"pod-{number}")
    network.close()
    assert gone(here)
    assert len(os.listdir("/proc/self/fd")) <= before
    if shutil.which("nft"):
        listed = subprocess.run(["nft", "list", "ruleset"], capture_output=True, check=True)
        assert listed.stdout == b""


def test_the_next_agent_finds_bridge_range_and_pods_again(here: TestMachine, tmp_path: Path) -> None:
    first = PodNetwork(tmp_path)
    pod = first.create("a", {})
    kept = os.dup(pod.descriptor)  # as a container that runs in it
    kill(first)
    os.close(pod.descriptor)
    second = PodNetwork(tmp_path)
    assert (second.cidr, second.bridge) == (first.cidr, first.bridge)
    adopted = second.adopt("a", pod.addresses, kept)
    assert second.create("b", {}).address != adopted.address
    with listening(adopted.descriptor, "0.0.0.0", PORT):
        assert dial(here.namespace, str(adopted.address), PORT) == "connected"
    second.close()  # which lets go of both; a container in the first would keep it
    third = PodNetwork(tmp_path)
    assert third.bridge in here.links()  # there were Pods
    third.close()
    assert gone(here)


def test_an_address_of_a_pod_that_is_not_adopted_yet_is_not_given_to_another(here: TestMachine, tmp_path: Path) -> None:
    network = PodNetwork(tmp_path)
    first = IPv4Address("10.244.0.3")
    network.reserve("a", [first])
    network.reserve("elsewhere", [IPv4Address("10.9.0.3")])
    assert network.create("b", {}).address == IPv4Address("10.244.0.4")
    network.remove("b")
    network.close()
    assert network.bridge in here.links()
    again = PodNetwork(tmp_path)
    again.reserve("a", [first])
    assert again.create("a", {}).address == first
    again.remove("a")
    again.close()
    assert gone(here)


def test_a_range_is_kept_from_one_start_to_the_next(here: TestMachine, tmp_path: Path) -> None:
    directories = [make(tmp_path / name) for name in ("one", "two")]
    networks = [PodNetwork(each) for each in directories]
    for each in networks:
        each.close()
    again = PodNetwork(directories[1])
    assert again.cidr == networks[1].cidr == IPv4Network("10.244.1.0/24")
    again.close()


def test_the_range_that_the_node_has_to_have_is_taken(here: TestMachine, tmp_path: Path) -> None:
    wanted = IPv4Network("10.9.8.0/25")
    network = PodNetwork(tmp_path, PodNetworkSettings(cidr=wanted))
    assert network.create("a", {}).address in wanted
    network.remove("a")
    network.close()
    with pytest.raises(PodNetworkUnavailable, match=r"route to 192\.0\.2\.0/24"):
        PodNetwork(tmp_path, PodNetworkSettings(cidr=IPv4Network("192.0.2.0/25")))
    assert gone(here)


def test_the_bridge_of_a_node_that_is_gone_is_removed_by_the_next(here: TestMachine, tmp_path: Path) -> None:
    killed = PodNetwork(make(tmp_path / "killed"))
    kill(killed)
    shutil.rmtree(tmp_path / "killed")
    assert not_on_probation(here)
    other = PodNetwork(make(tmp_path / "other"))
    assert killed.bridge not in here.links()
    other.close()


def not_on_probation(here: TestMachine) -> bool:
    """Whether the link with which a network tries what it may do is gone."""
    until = monotonic() + 10
    while any(each.startswith("ostt-") for each in here.links()) and monotonic() < until:
        sleep(0.01)
    return True


def test_sysctls_of_a_pod_are_set_in_its_network_alone(here: TestMachine, network: PodNetwork) -> None:
    pod = network.create("a", {"net.ipv4.tcp_keepalive_time": "77"})
    with within(pod.descriptor):
        assert Path("/proc/sys/net/ipv4/tcp_keepalive_time").read_text() == "77\n"
    assert Path("/proc/sys/net/ipv4/tcp_keepalive_time").read_text() != "77\n"


@pytest.mark.parametrize(
    "name", ["kernel.shmmax", "net.ipv4.no_such_thing", "net...kernel.hostname", "net/../kernel/hostname", "net"]
)
def test_a_sysctl_of_something_else_is_refused(here: TestMachine, network: PodNetwork, name: str) -> None:
    with pytest.raises(OSError, match="sysctl"):
        network.create("a", {name: "1"})
    assert network.find("a") is None


@pytest.mark.parametrize(
    ("number", "why"),
    [
        (errno.EPERM, "takes CAP_SYS_ADMIN and CAP_NET_ADMIN"),
        (errno.EOPNOTSUPP, "the kernel has no bridges or veth pairs"),
    ],
)
def test_where_the_kernel_refuses_the_reason_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, number: int, why: str
) -> None:
    def refuse(self: Netlink) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(module.Netlink, "__init__", refuse)
    with pytest.raises(PodNetworkUnavailable, match=why):
        PodNetwork(tmp_path)


def test_a_network_that_is_forgotten_removes_its_bridge(here: TestMachine, tmp_path: Path) -> None:
    PodNetwork(tmp_path)
    gc.collect()
    assert gone(here)
