"""Proxy with real sockets on loopback addresses."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from types import SimpleNamespace
from typing import Any, TypeVar, cast

import pytest

from ostinato.api.gvk import NamespacedName
from ostinato.controllers import Dependencies
from ostinato.plane.network.netlink import Address
from ostinato.plane.network.services import proxy as module
from ostinato.plane.network.services import udp
from ostinato.plane.network.services.addresses import AddressInUse, AddressUnavailable
from ostinato.plane.network.services.proxy import Proxy
from ostinato.plane.network.services.table import Backend, BackendSet, Frontend
from ostinato.plane.network.services.tcp import ConnectionLimit, _reset
from ostinato.world import World
from ostinato.world.clock import RealClock

P = TypeVar("P", bound=asyncio.DatagramProtocol)
WEB, OTHER = NamespacedName("default", "web"), NamespacedName("default", "other")


class FakeNetwork:
    """`ServiceAddresses` in 127.0.0.0/8."""

    def __init__(self) -> None:
        self.taken: set[str] = set()
        self.refusals: dict[str, Exception] = {}
        self.closed = False

    def take(self, address: Address) -> None:
        if (refusal := self.refusals.get(str(address))) is not None:
            raise refusal
        assert str(address) not in self.taken
        self.taken.add(str(address))

    def release(self, address: Address) -> None:
        self.taken.remove(str(address))

    def socket(self, kind: int, address: Address) -> socket.socket:
        assert address.version == 4
        return socket.socket(socket.AF_INET, kind)

    def close(self) -> None:
        self.closed = True


class Cast:
    def __init__(self, proxy: Proxy, network: FakeNetwork) -> None:
        self.proxy = proxy
        self.network = network


@asynccontextmanager
async def proxying() -> AsyncIterator[Cast]:
    world, network = World.real(), FakeNetwork()
    proxy = Proxy(world, network)
    dependencies = cast("Dependencies", SimpleNamespace(world=world))
    running = asyncio.create_task(proxy.run(dependencies))
    await world.clock.sleep(0)  # established
    try:
        yield Cast(proxy, network)
    finally:
        running.cancel()
        await asyncio.wait([running])
        assert network.closed


def play(act: Callable[[Cast], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with asyncio.timeout(20), proxying() as cast_:
            await act(cast_)

    asyncio.run(whole())


def at(address: str, port: int, protocol: str = "TCP") -> Frontend:
    return Frontend(protocol, ipaddress.ip_address(address), port)


def free_port(kind: int = socket.SOCK_STREAM) -> int:
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.77.0.1", 0))
        return int(probe.getsockname()[1])


@asynccontextmanager
async def saying(word: bytes) -> AsyncIterator[Backend]:
    """TCP backend that replies with its word and what it received."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(word + b":" + await reader.read())
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield Backend("127.0.0.1", server.sockets[0].getsockname()[1])


async def ask(frontend: Frontend, data: bytes = b"hello") -> bytes:
    reader, writer = await asyncio.open_connection(str(frontend.address), frontend.port)
    try:
        writer.write(data)
        writer.write_eof()
        return await reader.read()
    finally:
        writer.close()


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    clock = RealClock()
    while not await condition():
        await clock.sleep(0.001)


def test_connections_are_relayed_with_half_close() -> None:
    async def act(on: Cast) -> None:
        web = at("127.77.0.1", free_port())
        async with saying(b"one") as one, saying(b"two") as two:
            await on.proxy.update(WEB, {web: BackendSet((one, two))})
            assert on.network.taken == {"127.77.0.1"}
            assert {await ask(web) for _ in range(2)} == {b"one:hello", b"two:hello"}
            long = b"x" * 3_000_000
            assert (await ask(web, long))[4:] == long

    play(act)


def test_a_frontend_follows_its_table() -> None:
    async def act(on: Cast) -> None:
        web = at("127.77.0.1", free_port())
        async with saying(b"one") as one, saying(b"two") as two:
            await on.proxy.update(WEB, {web: BackendSet((one,))})
            assert await ask(web) == b"one:hello"
            await on.proxy.update(WEB, {web: BackendSet((two,))})
            assert await ask(web) == b"two:hello"
            await on.proxy.update(WEB, {web: BackendSet(())})
            with pytest.raises(ConnectionRefusedError):
                await ask(web)
            assert on.network.taken == {"127.77.0.1"}
            await on.proxy.update(WEB, {web: BackendSet((one,))})
            assert await ask(web) == b"one:hello"
            await on.proxy.update(WEB, {})
            assert on.network.taken == set()
            with pytest.raises(ConnectionRefusedError):
                await ask(web)

    play(act)


def test_a_connection_outlives_its_endpoint_and_ends_with_its_service() -> None:
    async def act(on: Cast) -> None:
        web = at("127.77.0.1", free_port())
        async with saying(b"one") as one:
            await on.proxy.update(WEB, {web: BackendSet((one,))})
            connections = [await asyncio.open_connection("127.77.0.1", web.port) for _ in range(2)]
            for _, writer in connections:
                writer.write(b"a")
                await writer.drain()
            await on.proxy.update(WEB, {web: BackendSet(())})
            (first, first_writer), (second, second_writer) = connections
            first_writer.write_eof()
            assert await first.read() == b"one:a"
            await on.proxy.update(WEB, {})
            with pytest.raises(ConnectionResetError):
                await second.read()
            for writer in (first_writer, second_writer):
                writer.close()

    play(act)


def test_the_next_endpoint_is_tried_and_without_any_the_client_is_reset() -> None:
    async def act(on: Cast) -> None:
        web, dead = at("127.77.0.1", free_port()), Backend("127.0.0.1", free_port())
        async with saying(b"one") as one:
            await on.proxy.update(WEB, {web: BackendSet((dead, one))})
            assert [await ask(web) for _ in range(4)] == [b"one:hello"] * 4
            await on.proxy.update(WEB, {web: BackendSet((dead,))})
            with pytest.raises(ConnectionResetError):
                await ask(web)

    play(act)


def test_connections_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ConnectionLimit", lambda: ConnectionLimit(1))

    async def act(on: Cast) -> None:
        web = at("127.77.0.1", free_port())
        async with saying(b"one") as one:
            await on.proxy.update(WEB, {web: BackendSet((one,))})
            reader, writer = await asyncio.open_connection("127.77.0.1", web.port)
            with pytest.raises(ConnectionResetError):
                await ask(web)
            writer.write_eof()
            assert await reader.read() == b"one:"
            writer.close()

            async def answered() -> bool:
                try:
                    return await ask(web) == b"one:hello"
                except ConnectionResetError:
                    return False

            await until(answered)

    play(act)


def test_a_service_address_is_not_used_as_backend() -> None:
    async def act(on: Cast) -> None:
        web, other = at("127.77.0.1", free_port()), at("127.77.0.2", free_port())
        async with saying(b"one") as one:
            await on.proxy.update(WEB, {web: BackendSet((one,))})
            await on.proxy.update(OTHER, {other: BackendSet((Backend("127.77.0.1", web.port),))})
            with pytest.raises(ConnectionRefusedError):
                await ask(other)

    play(act)


def test_an_address_in_use_is_logged_once_and_retried(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "RETRY_INTERVAL", 0.01)

    async def act(on: Cast) -> None:
        on.network.refusals["127.77.0.1"] = AddressInUse("another process on this machine serves 127.77.0.1")
        web, node_port = at("127.77.0.1", free_port()), at("0.0.0.0", free_port())
        async with saying(b"one") as one:
            await on.proxy.update(WEB, {web: BackendSet((one,)), node_port: BackendSet((one,))})
            assert await ask(at("127.0.0.1", node_port.port)) == b"one:hello"
            assert on.network.taken == set()
            await on.proxy.update(WEB, {web: BackendSet((one,)), node_port: BackendSet((one,))})
            (record,) = [each for each in caplog.records if each.levelno == logging.WARNING]
            why = "another process on this machine serves 127.77.0.1"
            assert record.getMessage() == (
                f"Service address in use, retrying service=default/web address=127.77.0.1 error={why}"
            )
            on.network.refusals.clear()

            async def answered() -> bool:
                try:
                    return await ask(web) == b"one:hello"
                except ConnectionRefusedError:
                    return False

            await until(answered)

    play(act)


def test_unavailable_addresses_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    async def act(on: Cast) -> None:
        for number in (1, 2):
            on.network.refusals[f"127.77.0.{number}"] = AddressUnavailable("requires root")
        await on.proxy.update(WEB, {at("127.77.0.1", 80): BackendSet(())})
        await on.proxy.update(OTHER, {at("127.77.0.2", 80): BackendSet(())})
        assert [record.getMessage() for record in caplog.records] == [
            "Service addresses unavailable, serving node ports only error=requires root"
        ]

    play(act)


def test_a_port_in_use_is_logged_and_retried(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(module, "RETRY_INTERVAL", 0.01)

    async def act(on: Cast) -> None:
        with socket.create_server(("127.77.0.1", 0)) as somebody:
            web = at("127.77.0.1", int(somebody.getsockname()[1]))
            async with saying(b"one") as one:
                await on.proxy.update(WEB, {web: BackendSet((one,))})
                assert "error=Address already in use" in caplog.text
                somebody.close()

                async def answered() -> bool:
                    try:
                        return await ask(web) == b"one:hello"
                    except OSError:
                        return False

                await until(answered)

    play(act)


def test_of_two_services_with_one_frontend_the_first_has_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "RETRY_INTERVAL", 0.01)

    async def act(on: Cast) -> None:
        web = at("127.77.0.1", free_port())
        async with saying(b"one") as one, saying(b"two") as two:
            await on.proxy.update(WEB, {web: BackendSet((one,))})
            await on.proxy.update(OTHER, {web: BackendSet((two,))})
            assert await ask(web) == b"one:hello"
            assert f"service=default/other frontend={web} owner=default/web" in caplog.text
            await on.proxy.update(WEB, {})

            async def answered() -> bool:
                try:
                    return await ask(web) == b"two:hello"
                except ConnectionRefusedError:
                    return False

            await until(answered)

    play(act)


class Echo(asyncio.DatagramProtocol):
    """UDP backend that replies with its word and the datagram."""

    def __init__(self, word: bytes) -> None:
        self._word = word
        self.clients: set[Any] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, address: Any) -> None:
        self.clients.add(address)
        self._transport.sendto(self._word + b":" + data, address)


class Asker(asyncio.DatagramProtocol):
    def __init__(self) -> None:
        self.answers: asyncio.Queue[bytes] = asyncio.Queue()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, address: Any) -> None:
        self.answers.put_nowait(data)

    async def ask(self, data: bytes) -> bytes:
        self._transport.sendto(data)
        return await self.answers.get()


def test_datagrams_of_a_client_go_to_one_endpoint_while_it_exists() -> None:
    async def act(on: Cast) -> None:
        loop = asyncio.get_running_loop()
        dns = at("127.77.0.1", free_port(socket.SOCK_DGRAM), "UDP")
        async with AsyncExitStack() as stack:

            async def endpoint(protocol: P, **where: Any) -> tuple[P, int]:
                transport, _ = await loop.create_datagram_endpoint(lambda: protocol, **where)
                stack.callback(transport.close)
                return protocol, transport.get_extra_info("sockname")[1]

            echoes = [await endpoint(Echo(word), local_addr=("127.0.0.1", 0)) for word in (b"one", b"two")]
            backends = [Backend("127.0.0.1", port) for _, port in echoes]
            await on.proxy.update(WEB, {dns: BackendSet(tuple(backends))})
            askers = [(await endpoint(Asker(), remote_addr=("127.77.0.1", dns.port)))[0] for _ in range(2)]
            answers = [[await asker.ask(b"q") for _ in range(3)] for asker in askers]
            assert sorted(answers) == [[b"one:q"] * 3, [b"two:q"] * 3]
            assert [len(echo.clients) for echo, _ in echoes] == [1, 1]
            await on.proxy.update(WEB, {dns: BackendSet((backends[1],))})
            assert [await asker.ask(b"r") for asker in askers] == [b"two:r"] * 2

    play(act)


def test_idle_flows_expire_and_the_least_recently_used_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(udp, "_MAX_FLOWS", 2)
    monkeypatch.setattr(udp, "_IDLE_TIMEOUT", 0.05)

    async def act(on: Cast) -> None:
        loop = asyncio.get_running_loop()
        dns = at("127.77.0.1", free_port(socket.SOCK_DGRAM), "UDP")
        async with AsyncExitStack() as stack:
            transport, echo = await loop.create_datagram_endpoint(lambda: Echo(b"one"), local_addr=("127.0.0.1", 0))
            stack.callback(transport.close)
            backend = Backend("127.0.0.1", transport.get_extra_info("sockname")[1])
            await on.proxy.update(WEB, {dns: BackendSet((backend,))})
            place = on.proxy._listening[dns].listener
            assert isinstance(place, udp.UdpListener)
            for _ in range(3):
                transport, asker = await loop.create_datagram_endpoint(Asker, remote_addr=("127.77.0.1", dns.port))
                stack.callback(transport.close)
                assert await asker.ask(b"q") == b"one:q"
            assert len(echo.clients) == 3
            assert len(place._flows) == 2

            async def forgotten() -> bool:
                return not place._flows

            await until(forgotten)
            assert await asker.ask(b"r") == b"one:r"

    play(act)


def test_a_connection_that_is_closed_already_is_reset_without_an_error() -> None:
    uvloop = pytest.importorskip("uvloop")

    async def main() -> None:
        server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
        async with server:
            _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.close()
            await writer.wait_closed()
            _reset(writer)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
