"""A machine for tests: a network namespace with an uplink to another one, which plays the rest of the world."""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ostinato.plane.network.namespaces import new_namespace, within
from ostinato.plane.network.netlink import Netlink

ADDRESS, WORLD = "192.0.2.2", "192.0.2.1"
ADDRESS6, WORLD6 = "fd00:192::2", "fd00:192::1"  # with `ipv6`


class TestMachine:
    __test__ = False

    def __init__(self, namespace: int, world: int, netlink: Netlink) -> None:
        self.namespace = namespace
        self.world = world
        self.netlink = netlink

    def links(self) -> set[str]:
        """All but its own."""
        return {each.name for each in self.netlink.links()} - {"lo", "uplink"}


@contextmanager
def machine(*, ipv6: bool = False) -> Iterator[TestMachine]:
    """This thread is on it meanwhile. Skips the test where that takes rights that it does not have."""
    if os.geteuid() != 0:
        pytest.skip("network namespaces take root")
    try:
        namespace, world = new_namespace(), new_namespace()
    except OSError as error:
        pytest.skip(f"network namespaces cannot be created here: {error}")
    with within(world):
        far = Netlink()
    with within(namespace):
        near = Netlink()
        near.set_up("lo")
        near.add_pair("uplink", "eth0", world)
        device = near.set_up("uplink")
        near.add_address(device, ipaddress.ip_address(ADDRESS), 24)
        near.add_default_route(device, ipaddress.ip_address(WORLD))
        far.set_up("lo")
        far.add_address(far.set_up("eth0"), ipaddress.ip_address(WORLD), 24)
        if ipv6:
            near.add_address(device, ipaddress.ip_address(ADDRESS6), 64)
            near.add_default_route(device, ipaddress.ip_address(WORLD6))
            far.add_address(far.set_up("eth0"), ipaddress.ip_address(WORLD6), 64)
        yield TestMachine(namespace, world, near)
    for each in (near, far):
        each.close()
    for descriptor in (namespace, world):
        os.close(descriptor)


def listening(namespace: int, address: str, port: int) -> socket.socket:
    with within(namespace):
        listener = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((address, port))
    listener.listen()
    return listener


def dial(namespace: int, address: str, port: int, seconds: float = 10.0) -> str:
    """How an attempt to connect ends: "connected", or the kind of the error."""
    with within(namespace):
        connection = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    with connection:
        connection.settimeout(seconds)
        try:
            connection.connect((address, port))
        except OSError as error:
            return type(error).__name__
        return "connected"
