"""Pod networks with IPv6 in the kernel, on a machine of the test's own. They take root."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from ipaddress import IPv6Address, IPv6Network, ip_address
from pathlib import Path

import pytest
from tests.unit.plane.network.machine import ADDRESS6, WORLD6, TestMachine, dial, listening, machine

from ostinato.plane.network import pod_network as module
from ostinato.plane.network.namespaces import within
from ostinato.plane.network.netlink import Netlink
from ostinato.plane.network.pod_cidrs import IPV6_RANGES, gateway_of
from ostinato.plane.network.pod_network import PodNamespace, PodNetwork, PodNetworkSettings, PodNetworkUnavailable
from ostinato.plane.network.policy.ruleset import Ruleset, RulesetInstaller
from ostinato.plane.network.policy.table import Block, Permission, PolicyTable
from ostinato.plane.network.services.netns import NetnsAddresses

PORT = 8080
BOTH = PodNetworkSettings(second_ranges=IPV6_RANGES)
SERVICE = IPv6Address("fd00:10:96::77")


@pytest.fixture
def here() -> Iterator[TestMachine]:
    if not os.path.exists("/proc/net/if_inet6"):
        pytest.skip("the kernel has no IPv6")
    with machine(ipv6=True) as found:
        yield found


@pytest.fixture
def network(here: TestMachine, tmp_path: Path) -> Iterator[PodNetwork]:
    network = PodNetwork(tmp_path, BOTH)
    yield network
    network.close()


def second(pod: PodNamespace) -> str:
    return str(pod.addresses[1])


def test_a_pod_has_an_address_of_each_family(here: TestMachine, network: PodNetwork) -> None:
    pods = [network.create(uid, {}) for uid in ("a", "b")]
    assert [str(each) for each in network.cidrs] == ["10.244.0.0/24", "fd00:10:244::/64"]
    assert [each.texts for each in pods] == [("10.244.0.3", "fd00:10:244::3"), ("10.244.0.4", "fd00:10:244::4")]


def test_pods_and_the_machine_reach_each_other_over_ipv6(here: TestMachine, network: PodNetwork) -> None:
    pods = [network.create(uid, {}) for uid in ("a", "b")]
    listeners = [listening(each, "::", PORT) for each in (pods[0].descriptor, pods[1].descriptor, here.namespace)]
    for each in pods:
        assert dial(here.namespace, second(each), PORT) == "connected"
    assert dial(pods[0].descriptor, second(pods[1]), PORT) == "connected"
    assert network.second_cidr is not None
    for address in (str(gateway_of(network.second_cidr)), ADDRESS6):
        assert dial(pods[0].descriptor, address, PORT) == "connected"
    for listener in listeners:
        listener.close()


def test_beyond_the_machine_a_pod_has_the_address_of_the_machine(here: TestMachine, network: PodNetwork) -> None:
    pod = network.create("a", {})
    with listening(here.world, WORLD6, PORT) as listener:
        assert dial(pod.descriptor, WORLD6, PORT) == "connected"
        accepted, (address, *_) = listener.accept()
        accepted.close()
    assert address == ADDRESS6


def test_nobody_outside_of_the_machine_reaches_a_pod(here: TestMachine, network: PodNetwork) -> None:
    pod = network.create("a", {})
    with within(here.world):
        far = Netlink()
    device = next(each.number for each in far.links() if each.name == "eth0")
    far.add_default_route(device, IPv6Address(ADDRESS6))
    with listening(pod.descriptor, "::", PORT):
        assert dial(here.namespace, second(pod), PORT) == "connected"
        assert dial(here.world, second(pod), PORT, 1.0) == "TimeoutError"
    far.close()


def test_other_machines_reach_pods_of_a_range_that_they_route_here(here: TestMachine, tmp_path: Path) -> None:
    network = PodNetwork(tmp_path, PodNetworkSettings(second_ranges=IPV6_RANGES, reachable=True))
    pod = network.create("a", {})
    with within(here.world):
        far = Netlink()
    device = next(each.number for each in far.links() if each.name == "eth0")
    far.add_default_route(device, IPv6Address(ADDRESS6))
    with listening(pod.descriptor, "::", PORT):
        assert dial(here.world, second(pod), PORT) == "connected"
    far.close()
    network.remove("a")
    network.close()


def test_links_that_accept_router_advertisements_still_do(here: TestMachine, tmp_path: Path) -> None:
    """Forwarding would end that, and with it the machine's own way out."""
    accepts = Path("/proc/sys/net/ipv6/conf/uplink/accept_ra")
    assert accepts.read_text().strip() == "1"
    network = PodNetwork(tmp_path, BOTH)
    assert accepts.read_text().strip() == "2"
    assert Path(f"/proc/sys/net/ipv6/conf/{network.bridge}/accept_ra").read_text().strip() == "0"
    network.close()


def test_services_answer_to_pods_and_to_the_machine(here: TestMachine, tmp_path: Path) -> None:
    proxy = NetnsAddresses(tmp_path / "state")
    services = (IPv6Network("fd00:10:96::/112"),)
    network = PodNetwork(tmp_path, PodNetworkSettings(second_ranges=IPV6_RANGES, services=services))
    proxy.attach(network)
    proxy.take(SERVICE)
    pod = network.create("a", {})
    listener = proxy.socket(socket.SOCK_STREAM, SERVICE)
    listener.bind((str(SERVICE), PORT))
    listener.listen()
    assert dial(pod.descriptor, str(SERVICE), PORT) == "connected"
    accepted, (client, *_) = listener.accept()
    accepted.close()
    assert client == second(pod)
    assert dial(here.namespace, str(SERVICE), PORT) == "connected"
    listener.close()
    network.remove("a")
    network.close()
    proxy.close()
    assert here.links() == set()


@pytest.mark.parametrize("isolated", [False, True], ids=["as the kernel has it", "isolated ports"])
def test_policies_apply_to_ipv6(
    isolated: bool, here: TestMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if isolated:
        monkeypatch.setattr(module, "_BRIDGE_FILTER", str(tmp_path / "missing"))
    network = PodNetwork(tmp_path, BOTH)
    server, friend, stranger = (network.create(uid, {}) for uid in ("server", "friend", "stranger"))
    installer = RulesetInstaller(tmp_path)

    def install(*permissions: Permission) -> None:
        table = PolicyTable(ingress=dict.fromkeys(server.texts, permissions))
        installer.install(Ruleset(table=table))

    with listening(server.descriptor, "::", PORT):

        def check(*, friends: bool, strangers: bool) -> None:
            for pod, permitted in ((friend, friends), (stranger, strangers)):
                outcome = dial(pod.descriptor, second(server), PORT, 10.0 if permitted else 1.0)
                assert (outcome == "connected") == permitted, outcome

        check(friends=True, strangers=True)
        install(Permission(addresses=frozenset(friend.texts)))
        check(friends=True, strangers=False)
        block = Block(IPv6Network("fd00:10:244::/64"), (IPv6Network(f"{second(friend)}/128"),))
        install(Permission(addresses=frozenset(), blocks=(block,)))
        check(friends=False, strangers=True)
        install()
        check(friends=False, strangers=False)
        assert dial(here.namespace, second(server), PORT) == "connected"  # the node's own traffic
    installer.remove()
    for uid in ("server", "friend", "stranger"):
        network.remove(uid)
    network.close()


def test_a_pod_does_not_follow_redirects_of_others(here: TestMachine, network: PodNetwork) -> None:
    pod = network.create("a", {})
    with within(pod.descriptor):
        assert Path("/proc/sys/net/ipv6/conf/eth0/accept_redirects").read_text().strip() == "0"


def test_the_next_agent_finds_both_ranges_and_the_pods_again(here: TestMachine, tmp_path: Path) -> None:
    first = PodNetwork(tmp_path, BOTH)
    pod = first.create("a", {})
    kept = os.dup(pod.descriptor)
    again = PodNetwork(tmp_path, BOTH)
    again.reserve("a", pod.addresses)
    assert again.cidrs == first.cidrs
    assert again.create("b", {}).texts == ("10.244.0.4", "fd00:10:244::4")
    assert again.adopt("a", pod.addresses, kept).addresses == pod.addresses
    with listening(kept, "::", PORT):
        found = again.find("b")
        assert found is not None
        assert dial(found.descriptor, second(pod), PORT) == "connected"
    for each in (first, again):
        for uid in ("a", "b"):
            each.remove(uid)
        each.close()


def test_a_node_that_had_ipv4_gets_ipv6_beside_it(here: TestMachine, tmp_path: Path) -> None:
    """Pods that run keep the one address that they have."""
    first = PodNetwork(tmp_path)
    old = first.create("old", {})
    again = PodNetwork(tmp_path, BOTH)
    again.reserve("old", old.addresses)
    adopted = again.adopt("old", old.addresses, os.dup(old.descriptor))
    new = again.create("new", {})
    assert (len(adopted.addresses), len(new.addresses)) == (1, 2)
    with listening(new.descriptor, "0.0.0.0", PORT):
        assert dial(adopted.descriptor, str(new.address), PORT) == "connected"
    for each in (first, again):
        for uid in ("old", "new"):
            each.remove(uid)
        each.close()


def test_a_range_that_the_machine_uses_is_left_alone(here: TestMachine, tmp_path: Path) -> None:
    device = next(each.number for each in here.netlink.links() if each.name == "uplink")
    here.netlink.add_route(device, IPv6Network("fd00:10:244::/64"))
    network = PodNetwork(tmp_path, BOTH)
    assert str(network.second_cidr) == "fd00:10:244:1::/64"
    network.close()
    wanted = PodNetworkSettings(second_cidr=IPv6Network("fd00:10:244::/64"))
    with pytest.raises(PodNetworkUnavailable, match="this machine has a route to fd00:10:244::/64"):
        PodNetwork(tmp_path, wanted)
    assert here.links() == set()


def test_a_kernel_without_ipv6_is_named(here: TestMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_IPV6", str(tmp_path / "missing"))
    with pytest.raises(PodNetworkUnavailable, match="the kernel has no IPv6"):
        PodNetwork(tmp_path, BOTH)
    assert here.links() == set()


def test_nothing_is_left_behind(here: TestMachine, tmp_path: Path) -> None:
    network = PodNetwork(tmp_path, BOTH)
    network.close()
    assert here.links() == set()
    if shutil.which("nft"):
        assert subprocess.run(["nft", "list", "tables"], capture_output=True, text=True, check=True).stdout == ""
    assert here.netlink.match(ip_address("fd00:10:244::3")) is None or not [
        each for each in here.netlink.routes(6) if str(each.destination) == "fd00:10:244::/64"
    ]
