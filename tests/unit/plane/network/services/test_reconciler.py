"""Reconciler of the service proxy."""

from __future__ import annotations

import socket
from pathlib import Path

from tests.stage.plane import Stage, on_stage

from ostinato.api.meta import ObjectMeta
from ostinato.client import MergePatch
from ostinato.kinds.core_v1 import Service, ServicePort, ServiceSpec
from ostinato.kinds.discovery_v1 import Endpoint, EndpointPort, EndpointSlice
from ostinato.plane.network.netlink import Address
from ostinato.plane.network.services import add_to


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
