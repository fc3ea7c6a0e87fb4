"""Networks of Pods in the process runtime: fallback to the machine's, addresses, cancelled starts."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.unit.plane.network.machine import machine

from ostinato.kinds.core_v1 import Pod
from ostinato.plane.network.pod_network import PodNetworkSettings, PodNetworkUnavailable
from ostinato.plane.node.runtimes import ProcessOptions, StartError
from ostinato.plane.node.runtimes.process import networks as module
from ostinato.plane.node.runtimes.process.networks import PodNetworks
from ostinato.plane.node.runtimes.process.security import identity, security_of
from ostinato.world import World

MACHINE = ("192.0.2.2",)


def pod(uid: str = "u1", **spec: Any) -> Pod:
    container = {"name": "c", "command": ["true"]}
    content = {"metadata": {"name": "p", "namespace": "n", "uid": uid}, "spec": {"containers": [container], **spec}}
    return msgspec.convert(content, Pod)


def play(
    directory: Path,
    act: Callable[[PodNetworks], Awaitable[None]],
    options: ProcessOptions = ProcessOptions(),  # noqa: B008
) -> None:
    async def played() -> None:
        (directory / "pods").mkdir(exist_ok=True)
        world = World.real()
        try:
            await act(PodNetworks(world, directory, MACHINE, options, ""))
        finally:
            world.executor.close()

    asyncio.run(played())


def test_where_no_network_can_be_created_pods_use_the_machines_and_the_log_says_why(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    def unavailable(*_: object) -> None:
        raise PodNetworkUnavailable("the kernel has no bridges or veth pairs")

    monkeypatch.setattr(module, "PodNetwork", unavailable)
    monkeypatch.setattr(os, "geteuid", lambda: 0)

    async def act(networks: PodNetworks) -> None:
        assert await networks.addresses(pod()) == MACHINE
        assert networks.plan(pod()) is None
        assert not networks.has_own(pod())
        message = "Pods use the network of the machine: the kernel has no bridges or veth pairs"
        assert networks.condition == ("PodsShareHostNetwork", message)

    with caplog.at_level(logging.WARNING):
        play(tmp_path, act)
    assert caplog.messages == ["pods share the network of this machine reason=the kernel has no bridges or veth pairs"]


def test_a_sysctl_of_the_network_is_refused_on_the_machines_network() -> None:
    asking = pod(securityContext={"sysctls": [{"name": "net.ipv4.tcp_syncookies", "value": "1"}]})
    container = asking.spec.containers[0]
    runs_as, _ = identity(asking, container, None)
    security_of(asking, container, runs_as, isolated=True, insecure=False, own_network=True)
    with pytest.raises(StartError, match=r"sysctls\[net\.ipv4\.tcp_syncookies\]"):
        security_of(asking, container, runs_as, isolated=True, insecure=False, own_network=False)


def test_a_pod_has_one_address_and_hosts_of_its_own(tmp_path: Path) -> None:
    machines_hosts = Path("/etc/hosts").read_text()

    async def act(networks: PodNetworks) -> None:
        own, host = pod(), pod("u2", hostNetwork=True)
        (address,) = await networks.addresses(own)
        assert (address,) == await networks.addresses(own)
        assert address == (tmp_path / "pods" / "u1" / "address").read_text()
        assert networks.files(own)["/etc/hosts"].endswith(f"{address}\tp\n")
        assert await networks.addresses(host) == MACHINE
        assert networks.files(host)["/etc/hosts"] == machines_hosts
        await networks.remove("u1")
        assert not (tmp_path / "pods" / "u1" / "address").exists()
        assert await networks.addresses(own) != (address,)  # it is another Pod by now, and gets another

    with machine():
        play(tmp_path, act)


def test_a_start_that_is_cancelled_leaves_no_namespace_behind(tmp_path: Path) -> None:
    async def act(networks: PodNetworks) -> None:
        for number in range(10):
            starting = asyncio.create_task(networks.addresses(pod(f"u{number}")))
            for _ in range(number % 4):
                await asyncio.sleep(0)
            starting.cancel()
            await asyncio.wait([starting])
            await networks.remove(f"u{number}")
        assert networks._network is not None
        assert all(networks._network.find(f"u{number}") is None for number in range(10))

    with machine():
        play(tmp_path, act)


def test_port_forwarding_that_nobody_answers_says_so(tmp_path: Path) -> None:
    async def act(networks: PodNetworks) -> None:
        await networks.addresses(pod())
        with pytest.raises(ConnectionRefusedError, match=r"dial tcp4 127\.0\.0\.1:9: connect: connection refused"):
            await networks.connect(pod(), 9)
        await networks.remove("u1")

    with machine():
        play(tmp_path, act)


def test_an_option_switches_the_networks_off(tmp_path: Path) -> None:
    async def act(networks: PodNetworks) -> None:
        assert (await networks.addresses(pod()), networks.shared_reason) == (MACHINE, "not wanted")

    play(tmp_path, act, ProcessOptions(network=PodNetworkSettings(disabled="not wanted")))
