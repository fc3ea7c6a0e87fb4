"""Reconciler of the service proxy."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from tests.stage.plane import Stage, on_stage

from ostinato.api.gvk import NamespacedName
from ostinato.api.meta import ObjectMeta
from ostinato.client import MergePatch
from ostinato.kinds.core_v1 import Service, ServicePort, ServiceSpec
from ostinato.kinds.discovery_v1 import Endpoint, EndpointPort, EndpointSlice
from ostinato.kinds.networking_v1 import ServiceCIDR
from ostinato.plane.network.netlink import Address
from ostinato.plane.network.services import add_to
from ostinato.plane.network.services.proxy import Proxy


class Watched:
    """`ServiceAddresses` that records calls."""

    def __init__(self) -> None:
        self.taken: set[str] = set()
        self.asked: list[str] = []  # assigned addresses
        self.closed = False

    def take(self, address: Address) -> None:
        self.taken.add(str(address))

    def release(self, address: Address) -> None:
        self.taken.discard(str(address))

    def socket(self, kind: int, address: Address) -> socket.socket:
        self.asked.append(str(address))
        raise OSError("there are no sockets here")

    def close(self) -> None:
        self.closed = True


def test_addresses_follow_services_and_are_listened_on_while_there_are_endpoints() -> None:
    async def play(stage: Stage) -> None:
        network = Watched()
        stage.run(lambda manager: add_to(manager, Path(), network))
        spec = ServiceSpec(ports=[ServicePort(port=80)])
        web = await stage.client.create(Service(metadata=ObjectMeta(name="web"), spec=spec))
        address = web.spec.cluster_ip or ""

        async def is_taken() -> bool:
            return address in network.taken

        await stage.until(is_taken)
        assert "10.0.0.1" in network.taken
        assert address not in network.asked
        slice_ = EndpointSlice(
            metadata=ObjectMeta(name="web-1", labels={"kubernetes.io/service-name": "web"}),
            address_type="IPv4",
            endpoints=[Endpoint(addresses=["10.1.0.1"])],
            ports=[EndpointPort(port=8080, protocol="TCP")],
        )
        await stage.client.create(slice_)

        async def is_asked() -> bool:
            return address in network.asked

        await stage.until(is_asked)
        # A slice relabelled to another Service is removed from this one.
        change = {"metadata": {"labels": {"kubernetes.io/service-name": "other"}}}
        await stage.client.patch(EndpointSlice, "web-1", MergePatch(change))
        await stage.settle()
        network.asked.clear()
        await stage.world.clock.sleep(60)
        assert address not in network.asked
        await stage.client.delete(Service, "web")

        async def is_gone() -> bool:
            return address not in network.taken

        await stage.until(is_gone)
        await stage.stop_managers()
        assert network.closed

    on_stage(play)


def test_a_pod_of_both_families_counts_once_for_a_health_check(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, int] = {}

    async def record(_: Proxy, key: NamespacedName, port: int, local: int) -> None:
        seen[key.name] = local

    async def play(stage: Stage) -> None:
        monkeypatch.setattr(Proxy, "check_health", record)
        both = MergePatch({"spec": {"cidrs": ["10.0.0.0/24", "fd00:10::/112"]}})
        await stage.client.patch(ServiceCIDR, "kubernetes", both)
        stage.run(lambda manager: add_to(manager, Path(), Watched(), nodes=["a"]))
        spec = ServiceSpec(
            type="LoadBalancer",
            external_traffic_policy="Local",
            ip_family_policy="RequireDualStack",
            ports=[ServicePort(port=80)],
        )
        await stage.client.create(Service(metadata=ObjectMeta(name="web"), spec=spec))
        for family, address in (("IPv4", "10.1.0.1"), ("IPv6", "fd00:1::1")):
            slice_ = EndpointSlice(
                metadata=ObjectMeta(name=family.lower(), labels={"kubernetes.io/service-name": "web"}),
                address_type=family,
                endpoints=[Endpoint(addresses=[address], node_name="a")],
                ports=[EndpointPort(port=8080, protocol="TCP")],
            )
            await stage.client.create(slice_)
        await stage.settle()
        assert seen["web"] == 1

    on_stage(play)
