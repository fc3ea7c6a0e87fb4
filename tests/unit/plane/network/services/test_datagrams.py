"""UDP sockets of the proxy: replies come from the address that the client sent to."""

from __future__ import annotations

import asyncio
import ipaddress
import socket

import pytest
from tests.unit.plane.network.machine import ADDRESS, ADDRESS6, machine

from ostinato.plane.network.namespaces import within
from ostinato.plane.network.services.datagrams import Client, DatagramSocket

_LIMIT = 20.0  # seconds; a reply that the kernel dropped would never come


def bound_to_all(family: int) -> socket.socket:
    bound = socket.socket(family, socket.SOCK_DGRAM)
    bound.settimeout(0)
    bound.bind(("::" if family == socket.AF_INET6 else "0.0.0.0", 0))
    return bound


async def replies_to(server: socket.socket, clients: list[socket.socket], addresses: list[str]) -> list[bytes]:
    """Have each client connect to its address, and send a datagram that is echoed; return the replies."""
    loop = asyncio.get_running_loop()
    port = server.getsockname()[1]

    def echo(data: bytes, client: Client) -> None:
        echoing.send(b"re:" + data, client)

    echoing = DatagramSocket(server, echo)
    found = []
    try:
        async with asyncio.timeout(_LIMIT):
            for client, address in zip(clients, addresses, strict=True):
                client.settimeout(0)
                client.connect((address, port))
                await loop.sock_sendall(client, address.encode())
                found.append(await loop.sock_recv(client, 100))
    finally:
        echoing.close()
        for each in clients:
            each.close()
    return found


def test_a_reply_on_loopback_comes_from_the_address_that_was_asked() -> None:
    addresses = ["127.0.0.1", "127.77.0.1", "127.77.0.2"]
    clients = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in addresses]
    for each in clients:
        each.bind(("127.0.0.1", 0))
    found = asyncio.run(replies_to(bound_to_all(socket.AF_INET), clients, addresses))
    assert found == [f"re:{each}".encode() for each in addresses]


@pytest.mark.parametrize(
    ("family", "first", "second"),
    [(socket.AF_INET, ADDRESS, "192.0.2.77"), (socket.AF_INET6, ADDRESS6, "fd00:192::77")],
)
def test_a_reply_to_another_machine_comes_from_the_address_that_was_asked(family: int, first: str, second: str) -> None:
    with machine(ipv6=True) as here:
        index = here.netlink.set_up("uplink")
        here.netlink.add_address(index, ipaddress.ip_address(second), 24 if family == socket.AF_INET else 64)
        addresses = [first, second]
        with within(here.world):
            clients = [socket.socket(family, socket.SOCK_DGRAM) for _ in addresses]
        found = asyncio.run(replies_to(bound_to_all(family), clients, addresses))
    assert found == [f"re:{each}".encode() for each in addresses]


def test_a_datagram_that_cannot_be_sent_is_lost() -> None:
    async def main() -> None:
        bound = bound_to_all(socket.AF_INET)
        sending = DatagramSocket(bound, lambda *_: None)
        sending.send(b"x" * 70_000, Client(("127.0.0.1", 9), None))  # too large
        sending.close()
        assert bound.fileno() == -1

    asyncio.run(main())
