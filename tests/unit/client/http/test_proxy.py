"""HttpTransport through a proxy."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable

import pytest
import uvloop
from tests.unit.client.http import certificates
from tests.unit.client.http.servers import Socket as Listener
from tests.unit.client.http.servers import get, listening, run, server_context, serving, transport

from ostinato.client.config.secret import Secret
from ostinato.client.transport.protocol import ConnectionLost, Request

PASSWORD = "s3cret"
BASIC = b"proxy-authorization: basic dtpzm2nyzxq="  # u:s3cret, in lower case


async def proxy(socket: Listener, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Tunnels, and forwards plain requests; to those who know the password."""
    head = await socket.head(reader)
    if BASIC not in head.lower():
        writer.write(b"HTTP/1.1 407 Who are you?\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        return
    method, target, _ = head.split(b" ", 2)
    address = target.decode().removeprefix("http://").partition("/")[0]
    host, _, port = address.rpartition(":")
    if host.endswith(".invalid"):
        writer.write(b"HTTP/1.1 502 No such host\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        return
    there_reader, there_writer = await asyncio.open_connection(host, int(port))
    if method == b"CONNECT":
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
    else:
        there_writer.write(head)
    await asyncio.gather(_pump(reader, there_writer), _pump(there_reader, writer))


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while chunk := await reader.read(65536):
            writer.write(chunk)
            await writer.drain()
    except (ConnectionError, ssl.SSLError):
        pass
    finally:
        writer.close()


def test_a_server_is_reached_through_a_tunnel_and_the_proxy_sees_no_credentials() -> None:
    async def main() -> None:
        async with listening(proxy) as socket, serving() as served:
            through = Secret(f"http://u:{PASSWORD}@127.0.0.1:{socket.port}")
            async with transport(served.config(proxy=through, token=Secret("t0ken"))) as sender:
                assert await get(sender) == b"hello"
                assert await get(sender) == b"hello"
            assert socket.connections == 1
            assert socket.requests[0].startswith(f"CONNECT 127.0.0.1:{served.port} ".encode())
            assert b"t0ken" not in socket.requests[0]
            assert "Proxy-Authorization" not in served.headers

    run(main())


def test_a_plain_request_is_handed_to_the_proxy() -> None:
    async def main() -> None:
        async with listening(proxy) as socket, serving(plain=True) as served:
            through = Secret(f"http://u:{PASSWORD}@127.0.0.1:{socket.port}")
            async with transport(served.config(tls={"ca_data": b""}, proxy=through)) as sender:
                assert await get(sender, "/a") == b"hello"
            assert socket.requests[0].startswith(f"GET http://127.0.0.1:{served.port}/a ".encode())

    run(main())


def test_a_proxy_of_the_environment_is_used_but_not_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with listening(proxy) as socket, serving(pair=certificates.server("api.example.com")) as served:
            monkeypatch.setenv("HTTPS_PROXY", f"http://u:{PASSWORD}@127.0.0.1:{socket.port}")
            config = served.config(environment_proxies=True, tls={"server_name": "api.example.com"})
            async with transport(config) as sender:
                assert await get(sender) == b"hello"  # straight to 127.0.0.1
            assert socket.connections == 0
            elsewhere = served.config(environment_proxies=True, server=f"https://no-such-host.invalid:{served.port}")
            async with transport(elsewhere) as sender:
                with pytest.raises(ConnectionLost, match="the proxy responded with status 502"):
                    await get(sender)
            assert socket.requests[0].startswith(b"CONNECT no-such-host.invalid:")

    run(main())


@pytest.mark.parametrize("run_on", [run, uvloop.run])
def test_an_https_proxy_is_spoken_to_over_tls(run_on: Callable[..., None]) -> None:
    async def main() -> None:
        async def conversation(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await proxy(socket, reader, writer)

        socket = Listener(conversation)
        server = await asyncio.start_server(socket, "127.0.0.1", 0, ssl=server_context(certificates.server()))
        port = server.sockets[0].getsockname()[1]
        async with serving() as served:
            through = Secret(f"https://u:{PASSWORD}@127.0.0.1:{port}")
            async with transport(served.config(proxy=through)) as sender:
                assert await get(sender) == b"hello"
        server.close()
        assert socket.requests[0].startswith(b"CONNECT ")

    run_on(main())


def test_a_proxy_that_rejects_or_is_unreachable_is_reported_without_its_password() -> None:
    async def main() -> None:
        async with serving() as served:
            async with listening(proxy) as socket:
                through = Secret(f"http://other:{PASSWORD}@127.0.0.1:{socket.port}")
                async with transport(served.config(proxy=through)) as sender:
                    for method in ("GET", "PUT"):
                        with pytest.raises(
                            ConnectionLost, match="the proxy responded with status 407; check proxy-url"
                        ) as caught:
                            await sender.request(Request(method, "/"))
                        assert PASSWORD not in str(caught.value)
            async with transport(served.config(proxy=Secret(f"http://u:{PASSWORD}@127.0.0.1:1"))) as sender:
                with pytest.raises(ConnectionLost, match=r"the proxy cannot be reached: .*; check proxy-url") as caught:
                    await get(sender)
                assert PASSWORD not in str(caught.value)

    run(main())


def test_a_peer_that_is_not_a_proxy_is_an_error() -> None:
    async def cut(socket: Listener, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await socket.head(reader)
        writer.transport.abort()

    async def main() -> None:
        async with serving() as served:
            async with (
                listening(cut) as socket,
                transport(served.config(proxy=Secret(f"http://127.0.0.1:{socket.port}"))) as sender,
            ):
                with pytest.raises(ConnectionLost, match="no valid HTTP response from the proxy; check proxy-url"):
                    await get(sender)
            async with (
                serving(pair=certificates.server(signed_by="other")) as stranger,
                transport(served.config(proxy=Secret(stranger.url))) as sender,
            ):
                with pytest.raises(ConnectionLost, match=r"TLS handshake with the proxy failed: .*; check proxy-url"):
                    await get(sender)

    run(main())
