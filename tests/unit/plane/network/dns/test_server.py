"""The DNS server over UDP and TCP, with an upstream server of the test's own."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import dns.message
import dns.rcode
import dns.rrset
import pytest
from tests.unit.plane.network.dns.test_zone import SERVICES, SVC, Objects, service

from ostinato.manager.running import loop_factory
from ostinato.plane.network.dns.listeners import DnsTcpListener, DnsUdpListener
from ostinato.plane.network.dns.server import DnsServer
from ostinato.plane.network.dns.upstream import Upstream
from ostinato.plane.network.dns.zone import Zone
from ostinato.world import World

Answer = Callable[[dns.message.QueryMessage], dns.message.Message | None]


class Upstreams(asyncio.DatagramProtocol):
    """A DNS server of the machine."""

    def __init__(self, answer: Answer) -> None:
        self.asked: list[str] = []
        self._answer = answer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, address: object) -> None:
        query = dns.message.from_wire(data)
        assert isinstance(query, dns.message.QueryMessage)
        self.asked.append(query.question[0].to_text())
        if (found := self._answer(query)) is not None:
            self._transport.sendto(found.to_wire(), address)  # type: ignore[attr-defined]


def addressed(query: dns.message.QueryMessage) -> dns.message.Message:
    response = dns.message.make_response(query, recursion_available=True)
    if query.question[0].name.to_text().startswith("none"):
        response.set_rcode(dns.rcode.NXDOMAIN)
    else:
        response.answer = [dns.rrset.from_text(query.question[0].name, 60, "IN", "A", "192.0.2.80")]
    return response


class Asking:
    def __init__(self, port: int, upstreams: Upstreams) -> None:
        self.upstreams = upstreams
        self._port = port

    async def udp(self, name: str, kind: str = "A", **more: object) -> dns.message.Message:
        return dns.message.from_wire(await self.raw(dns.message.make_query(name, kind, **more).to_wire()))  # type: ignore[arg-type]

    async def raw(self, data: bytes) -> bytes:
        loop = asyncio.get_running_loop()
        with socket.socket(type=socket.SOCK_DGRAM) as client:
            client.settimeout(0)
            client.connect(("127.0.0.1", self._port))
            client.send(data)
            async with asyncio.timeout(20):
                return await loop.sock_recv(client, 65535)

    async def tcp(self, *names: str) -> list[dns.message.Message]:
        """All of them over one connection."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        for name in names:
            data = dns.message.make_query(name, "A").to_wire()
            writer.write(struct.pack(">H", len(data)) + data)
        found = []
        async with asyncio.timeout(20):
            for _ in names:
                (length,) = struct.unpack(">H", await reader.readexactly(2))
                found.append(dns.message.from_wire(await reader.readexactly(length)))
        writer.close()
        await writer.wait_closed()
        return found


@asynccontextmanager
async def serving(answer: Answer = addressed) -> AsyncIterator[Asking]:
    loop = asyncio.get_running_loop()
    transport, upstreams = await loop.create_datagram_endpoint(lambda: Upstreams(answer), local_addr=("127.0.0.1", 0))
    world = World.real()
    upstream = Upstream(world, lambda: ["127.0.0.1"], transport.get_extra_info("sockname")[1])
    server = DnsServer(Zone(Objects(), "cluster.local", "10.0.0.10", 1), upstream, world.rng)
    udp, tcp = DnsUdpListener(server), DnsTcpListener(server, world.clock)
    for_tcp = socket.create_server(("127.0.0.1", 0))
    for_udp = socket.socket(type=socket.SOCK_DGRAM)
    for_udp.bind(for_tcp.getsockname())
    port = for_tcp.getsockname()[1]
    for each in (for_udp, for_tcp):
        each.settimeout(0)
    await udp.open(for_udp)
    await tcp.open(for_tcp)
    try:
        yield Asking(port, upstreams)
    finally:
        await udp.end()
        await tcp.end()
        transport.close()
        world.executor.close()


def test_names_of_the_cluster_are_answered_without_an_upstream_server() -> None:
    async def scenario() -> None:
        async with serving() as ask:
            found = await ask.udp(f"db.{SVC}")
            assert sorted(each.to_text() for each in found.answer[0]) == ["10.244.0.7", "10.244.0.8"]
            missing = await ask.udp(f"none.{SVC}")
            assert missing.rcode() == dns.rcode.NXDOMAIN
            assert missing.authority[0][0].minimum == 5
            empty = await ask.udp(f"web.{SVC}", "AAAA")
            assert (empty.rcode(), empty.answer) == (dns.rcode.NOERROR, [])
            assert empty.authority
            assert ask.upstreams.asked == []

    asyncio.run(scenario())


def test_other_names_are_forwarded_with_the_clients_id() -> None:
    async def scenario() -> None:
        async with serving() as ask:
            found = await ask.udp("www.example.com")  # checks the id
            assert found.answer[0][0].to_text() == "192.0.2.80"
            assert (await ask.udp("none.example.com")).rcode() == dns.rcode.NXDOMAIN
            assert (await ask.udp("9.9.9.9.in-addr.arpa", "PTR")).rcode() == dns.rcode.NOERROR

    asyncio.run(scenario())


def test_an_external_name_comes_with_the_addresses_that_it_leads_to() -> None:
    async def scenario() -> None:
        async with serving() as ask:
            found = await ask.udp(f"out.{SVC}")
            assert [each.to_text() for each in found.answer] == [
                f"out.{SVC}. 5 IN CNAME www.example.com.",
                "www.example.com. 60 IN A 192.0.2.80",
            ]
            alone = await ask.udp(f"out.{SVC}", "CNAME")
            assert len(alone.answer) == 1

    asyncio.run(scenario())


def test_an_external_name_of_the_cluster_is_followed_and_a_loop_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    more = [
        service("near", type="ExternalName", externalName=f"web.{SVC}"),
        service("loop", type="ExternalName", externalName=f"loop.{SVC}"),
    ]
    monkeypatch.setattr("tests.unit.plane.network.dns.test_zone.SERVICES", SERVICES + more)

    async def scenario() -> None:
        async with serving() as ask:
            found = await ask.udp(f"near.{SVC}")
            assert found.answer[1][0].to_text() == "10.0.0.5"
            assert (await ask.udp(f"loop.{SVC}")).rcode() == dns.rcode.SERVFAIL

    asyncio.run(scenario())


def test_queries_of_one_connection_are_answered_in_turn() -> None:
    async def scenario() -> None:
        async with serving() as ask:
            found = await ask.tcp(f"web.{SVC}", f"none.{SVC}", f"dual.{SVC}")
            assert [each.rcode() for each in found] == [dns.rcode.NOERROR, dns.rcode.NXDOMAIN, dns.rcode.NOERROR]

    asyncio.run(scenario())


class SlowServer:
    """Answers when it may."""

    def __init__(self) -> None:
        self.may, self.waited = asyncio.Event(), asyncio.Event()

    def answer(self, data: bytes, *, tcp: bool) -> bytes | None:
        return None

    async def wait_for_answer(self, data: bytes, *, tcp: bool) -> bytes:
        self.waited.set()
        await self.may.wait()
        return b"answer"


class EndingAtOnce(DnsTcpListener):
    """Ends before the task of a connection has begun."""

    ending: asyncio.Task[None] | None = None

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.ending = asyncio.get_running_loop().create_task(self.end())
        super()._accept(reader, writer)


def over_tcp(
    kind: type[DnsTcpListener], scenario: Callable[[DnsTcpListener, SlowServer, socket.socket], Awaitable[None]]
) -> None:
    """Run with a connection to a listener that has a slow server. On uvloop, if it is installed."""

    async def main() -> None:
        world, server, bound = World.real(), SlowServer(), socket.create_server(("127.0.0.1", 0))
        bound.settimeout(0)
        listener = kind(server, world.clock)  # type: ignore[arg-type]
        with socket.create_connection(bound.getsockname()) as client:
            client.settimeout(0)
            await listener.open(bound)
            try:
                async with asyncio.timeout(20):
                    await scenario(listener, server, client)
            finally:
                await listener.end()
                world.executor.close()

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(main())


def test_a_connection_that_was_accepted_just_before_the_end_is_closed() -> None:
    async def scenario(listener: DnsTcpListener, _: SlowServer, client: socket.socket) -> None:
        assert await asyncio.get_running_loop().sock_recv(client, 100) == b""
        assert isinstance(listener, EndingAtOnce)
        assert listener.ending is not None
        await listener.ending

    over_tcp(EndingAtOnce, scenario)


def test_a_client_that_leaves_before_the_answer_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(listener: DnsTcpListener, server: SlowServer, client: socket.socket) -> None:
        client.send(b"\x00\x05query")
        await server.waited.wait()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        await asyncio.sleep(0.05)  # until the listener knows
        server.may.set()
        await asyncio.sleep(0.05)

    over_tcp(DnsTcpListener, scenario)
    assert caplog.records == []


def test_nothing_is_said_to_be_missing_before_all_objects_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Objects, "is_ready", False)

    async def scenario() -> None:
        async with serving() as ask:
            assert (await ask.udp(f"none.{SVC}")).rcode() == dns.rcode.SERVFAIL

    asyncio.run(scenario())


def test_a_large_answer_of_an_upstream_server_is_relayed_to_a_client_that_accepts_it() -> None:
    def large(query: dns.message.QueryMessage) -> dns.message.Message:
        response = dns.message.make_response(query)
        numbers = [f"192.0.2.{each}" for each in range(1, 200)]
        response.answer = [dns.rrset.from_text(query.question[0].name, 60, "IN", "A", *numbers)]
        return response

    async def scenario() -> None:
        async with serving(large) as ask:
            assert len((await ask.udp("www.example.com", use_edns=0, payload=4096)).answer[0]) == 199

    asyncio.run(scenario())


def test_a_forged_answer_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ostinato.plane.network.dns.upstream._TIMEOUT", 0.2)

    def forged(query: dns.message.QueryMessage) -> dns.message.Message:
        response = addressed(query)
        response.id ^= 1
        return response

    async def scenario() -> None:
        async with serving(forged) as ask:
            waiting = asyncio.ensure_future(ask.udp("www.example.com"))
            await ask.udp(f"web.{SVC}")  # others do not wait for it
            assert (await waiting).rcode() == dns.rcode.SERVFAIL

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"\x00\x07\x01\x00" + bytes(8), dns.rcode.FORMERR),  # no question
        (b"\x00\x07\x01\x00\x00\x02" + bytes(6) + b"\x01a\x00\x00\x01\x00\x01" * 2, dns.rcode.FORMERR),
        (b"\x00\x07\x11\x00\x00\x01" + bytes(6) + b"\x01a\x00\x00\x01\x00\x01", dns.rcode.NOTIMP),
        (b"\x00\x07\x01\x00\x00\x01" + bytes(6) + b"\x01a\x00\x00\x01\x00\x03", dns.rcode.REFUSED),  # CHAOS
        (dns.message.make_query(f"web.{SVC}", "AXFR", id=7).to_wire(), dns.rcode.REFUSED),
        (dns.message.make_query(f"web.{SVC}", "A", use_edns=1, id=7).to_wire(), dns.rcode.BADVERS),
    ],
    ids=["no question", "two questions", "status", "chaos", "transfer", "unknown EDNS"],
)
def test_what_is_not_served_is_refused(data: bytes, code: dns.rcode.Rcode) -> None:
    async def scenario() -> None:
        async with serving() as ask:
            response = dns.message.from_wire(await ask.raw(data), ignore_trailing=True)
            assert response.rcode() == code

    asyncio.run(scenario())
