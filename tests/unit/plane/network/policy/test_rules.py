"""Network policies between network namespaces: the kernel permits exactly what the table permits."""

from __future__ import annotations

import itertools
import socket
from collections.abc import Callable, Iterator
from ipaddress import ip_network
from pathlib import Path

import pytest
from tests.unit.plane.network.machine import ADDRESS, WORLD, TestMachine, dial, listening, machine

from ostinato.plane.network import nf_messages as nf
from ostinato.plane.network import pod_network as module
from ostinato.plane.network.namespaces import within
from ostinato.plane.network.pod_network import PodNamespace, PodNetwork
from ostinato.plane.network.policy.ruleset import DeniedClients, Ruleset, RulesetInstaller
from ostinato.plane.network.policy.table import Block, Permission, PolicyTable, Ports

QUICK = 0.3  # seconds; a dropped packet is not answered
PATIENT = 20.0  # seconds; a permitted one is, sooner or later
PORTS = (8080, 8081)


@pytest.fixture
def here() -> Iterator[TestMachine]:
    with machine() as found:
        yield found


@pytest.fixture(params=["br_netfilter", "isolated ports"])
def network(
    request: pytest.FixtureRequest, here: TestMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[PodNetwork]:
    """On a kernel with br_netfilter, and as if there were none."""
    filtering = Path("/proc/sys/net/bridge/bridge-nf-call-iptables")
    if request.param == "br_netfilter":
        if not filtering.exists():
            pytest.skip("the kernel has no br_netfilter")
    else:
        monkeypatch.setattr(module, "_BRIDGE_FILTER", "/nonexistent")
        monkeypatch.setattr(module.Netlink, "filter_bridge", lambda *_: None)
        if filtering.exists():
            filtering.write_text("0")
    network = PodNetwork(tmp_path)
    yield network
    network.close()


@pytest.fixture
def installer(here: TestMachine, tmp_path: Path) -> Iterator[RulesetInstaller]:
    installer = RulesetInstaller(tmp_path)
    yield installer
    installer.remove()
    assert not nf.tables() or all(not each.name.startswith("ostinato-policies-") for each in nf.tables())


class Pods:
    def __init__(self, network: PodNetwork, names: str) -> None:
        self.by_name: dict[str, PodNamespace] = {each: network.create(each, {}) for each in names}
        self.listeners = [
            listening(each.descriptor, "0.0.0.0", port) for each in self.by_name.values() for port in PORTS
        ]

    def __getitem__(self, name: str) -> str:
        return str(self.by_name[name].address)

    def dial(self, source: str, destination: str, port: int, seconds: float = PATIENT) -> bool:
        return dial(self.by_name[source].descriptor, self[destination], port, seconds) == "connected"

    def check(self, table: PolicyTable) -> None:
        """Every connection between two Pods is as the table says."""
        for source, destination in itertools.permutations(self.by_name, 2):
            for port in PORTS:
                expected = table.permits(self[source], self[destination], "TCP", port)
                found = self.dial(source, destination, port, PATIENT if expected else QUICK)
                assert found == expected, (source, destination, port)


@pytest.fixture
def make_pods(network: PodNetwork) -> Iterator[Callable[[str], Pods]]:
    made: list[Pods] = []

    def make(names: str) -> Pods:
        made.append(Pods(network, names))
        return made[-1]

    yield make
    for each in (listener for pods in made for listener in pods.listeners):
        each.close()


def test_the_kernel_permits_what_the_table_permits(
    here: TestMachine, network: PodNetwork, make_pods: Callable[[str], Pods], installer: RulesetInstaller
) -> None:
    pods = make_pods("abc")
    friends = Permission(frozenset({pods["a"]}), (), (Ports("TCP", 8080, 8080),))
    block = Permission(frozenset(), (Block(network.cidr, (ip_network(pods["a"]),)),), (Ports("TCP", 8081, 8090),))
    for table in (
        PolicyTable(),
        PolicyTable({pods["c"]: (friends, block)}),
        PolicyTable({pods["c"]: (Permission(),)}, {pods["a"]: (), pods["b"]: (friends,)}),
        PolicyTable({}, {pods["a"]: (Permission(None, (), (Ports("TCP", 8081, 8081),)),)}),
        PolicyTable(),
    ):
        installer.install(Ruleset(table))
        pods.check(table)
    installer.install(Ruleset(PolicyTable({pods["a"]: ()}, {pods["a"]: ()})))
    assert dial(here.namespace, pods["a"], 8080, PATIENT) == "connected"  # as probes do
    with listening(here.namespace, "0.0.0.0", 9000):
        assert dial(pods.by_name["a"].descriptor, str(network.gateway), 9000, PATIENT) == "connected"
        assert dial(pods.by_name["a"].descriptor, ADDRESS, 9000, PATIENT) == "connected"
    with listening(here.world, WORLD, 9001):
        assert dial(pods.by_name["a"].descriptor, WORLD, 9001, QUICK) != "connected"
        assert dial(pods.by_name["b"].descriptor, WORLD, 9001) == "connected"


def test_replies_pass_and_connections_that_were_permitted_go_on(
    make_pods: Callable[[str], Pods], installer: RulesetInstaller
) -> None:
    pods = make_pods("ab")
    with within(pods.by_name["a"].descriptor):
        client = socket.socket()
    with client:
        client.settimeout(3)
        client.connect((pods["b"], 8080))
        installer.install(Ruleset(PolicyTable({pods["a"]: (), pods["b"]: ()})))
        served, _ = pods.listeners[2].accept()
        with served:
            client.sendall(b"ping")
            assert served.recv(10) == b"ping"
            served.sendall(b"pong")
            assert client.recv(10) == b"pong"
    installer.install(Ruleset(PolicyTable({pods["a"]: ()})))
    assert pods.dial("a", "b", 8080)  # whose replies are no new connections
    assert not pods.dial("b", "a", 8080, QUICK)


def test_services_are_left_to_the_proxy_unless_no_endpoint_is_permitted(
    here: TestMachine, network: PodNetwork, make_pods: Callable[[str], Pods], installer: RulesetInstaller
) -> None:
    pods = make_pods("ab")
    isolated = PolicyTable({}, {pods["a"]: (), pods["b"]: ()})
    denied = (DeniedClients("TCP", WORLD, 9001, frozenset({pods["b"]})),)
    installer.install(Ruleset(isolated, frozenset({WORLD}), denied))  # as if that were a Service
    with listening(here.world, WORLD, 9001), listening(here.world, WORLD, 9002):
        assert dial(pods.by_name["b"].descriptor, WORLD, 9001, QUICK) != "connected"
        installer.install(Ruleset(isolated))
        assert dial(pods.by_name["a"].descriptor, WORLD, 9002, QUICK) != "connected"


def test_rules_of_a_removed_plane_are_removed_by_the_next(here: TestMachine, tmp_path: Path) -> None:
    gone, other = tmp_path / "gone", tmp_path / "other"
    for each in (gone, other):
        each.mkdir()
    rules = Ruleset(PolicyTable({"10.1.0.1": (), "fd00::1": ()}))
    RulesetInstaller(gone).install(rules)
    RulesetInstaller(other).install(rules)
    assert len(nf.tables()) == 4
    gone.rmdir()
    RulesetInstaller(tmp_path).install(rules)
    assert len(nf.tables()) == 4  # that of the other plane is left alone
    assert {each.owner for each in nf.tables()} == {bytes(other), bytes(tmp_path)}


def test_rules_that_another_program_flushed_are_noticed(here: TestMachine, tmp_path: Path) -> None:
    installer = RulesetInstaller(tmp_path)
    assert installer.is_intact()
    installer.install(Ruleset(PolicyTable({"10.1.0.1": ()})))
    assert installer.is_intact()
    nf.commit([each.remove() for each in nf.tables()])
    assert not installer.is_intact()
    installer.install(Ruleset(PolicyTable({"10.1.0.1": ()})))
    assert installer.is_intact()
    installer.remove()


def test_nothing_to_install_takes_no_rights(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    for name in ("commit", "tables"):
        monkeypatch.setattr(nf, name, refuse)
    installer = RulesetInstaller(tmp_path)
    installer.install(Ruleset())
    with pytest.raises(PermissionError):
        installer.install(Ruleset(PolicyTable({"10.1.0.1": ()})))


def test_a_large_ruleset_is_installed_at_once(here: TestMachine, tmp_path: Path) -> None:
    peers = frozenset(f"10.2.{high}.{low}" for high in range(8) for low in range(250))
    pods = {f"10.1.{high}.{low}": high for high in range(20) for low in range(50)}
    table = PolicyTable({each: (Permission(peers, (), (Ports("TCP", high + 1, 99),)),) for each, high in pods.items()})
    installer = RulesetInstaller(tmp_path)
    installer.install(Ruleset(table))
    installer.install(Ruleset())
    installer.remove()
    assert nf.tables() == []
