"""Load balancer of the service proxy."""

from __future__ import annotations

import ipaddress

import pytest

from ostinato.plane.network.services import balancer as module
from ostinato.plane.network.services.balancer import Balancer
from ostinato.plane.network.services.table import Backend, BackendSet
from ostinato.world import Simulation

A, B, C = (Backend(f"10.1.0.{number}", 80) for number in (1, 2, 3))


def test_backends_are_used_round_robin_and_the_others_are_fallbacks() -> None:
    balancer = Balancer(Simulation(seed=1), BackendSet((A, B, C)))
    orders = [balancer.candidates("x") for _ in range(6)]
    assert {each[0] for each in orders[:3]} == {A, B, C}
    assert orders[:3] == orders[3:]
    assert all(sorted(each, key=str) == [A, B, C] for each in orders)


def test_without_backends_there_are_no_candidates() -> None:
    assert Balancer(Simulation(seed=1), BackendSet(())).candidates("x") == []


def test_session_affinity_holds_until_its_timeout() -> None:
    world = Simulation(seed=1)

    async def play() -> None:
        balancer = Balancer(world, BackendSet((A, B, C), sticky=10.0))
        balancer.record("x", B)
        for _ in range(6):
            assert balancer.candidates("x")[0] == B
        await world.clock.sleep(9)
        balancer.record("x", B)
        await world.clock.sleep(9)
        assert {balancer.candidates("x")[0] for _ in range(3)} == {B}
        await world.clock.sleep(1)
        assert {balancer.candidates("x")[0] for _ in range(3)} == {A, B, C}

    world.run(play())


def test_session_affinity_ends_with_its_backend() -> None:
    balancer = Balancer(Simulation(seed=1), BackendSet((A, B), sticky=10.0))
    balancer.record("x", B)
    balancer.update(BackendSet((A, C), sticky=10.0))
    assert {balancer.candidates("x")[0] for _ in range(2)} == {A, C}


def test_session_affinity_is_limited_to_the_latest_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CLIENTS", 2)
    balancer = Balancer(Simulation(seed=1), BackendSet((A, B), sticky=10.0))
    for client in ("x", "y", "z"):
        balancer.record(client, A)
    assert {balancer.candidates("z")[0] for _ in range(4)} == {A}
    assert {balancer.candidates("x")[0] for _ in range(4)} == {A, B}


def test_clients_outside_of_the_source_ranges_have_no_backend() -> None:
    ranges = (ipaddress.ip_network("192.168.0.0/16"), ipaddress.ip_network("10.9.0.0/24"))
    balancer = Balancer(Simulation(seed=1), BackendSet((A,), sources=ranges))
    assert [bool(balancer.candidates(each)) for each in ("192.168.3.4", "10.9.0.7", "10.9.1.7")] == [True, True, False]


def test_a_client_on_a_node_of_this_machine_has_the_backends_of_its_node() -> None:
    nodes = {"10.1.0.8": "here", "10.1.0.9": "empty"}
    chosen = BackendSet((A, B), by_node={"here": (C,), "empty": ()})
    balancer = Balancer(Simulation(seed=1), chosen, node_of=lambda client: nodes.get(client, ""))
    assert balancer.candidates("10.1.0.8") == [C]
    assert balancer.candidates("10.1.0.9") == []
    assert sorted(balancer.candidates("192.0.2.1"), key=str) == [A, B]


def test_backends_that_policies_forbid_are_left_out() -> None:
    balancer = Balancer(Simulation(seed=1), BackendSet((A, B)), lambda client, backend: (client, backend) != ("x", A))
    assert balancer.candidates("x") == [B]
    assert sorted(balancer.candidates("y"), key=str) == [A, B]
