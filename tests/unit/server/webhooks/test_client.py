"""How webhooks are called: connections, certificates, time, size, and the words for what goes wrong."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.stage.server import started_server

from ostinato.server.access.authority import Authority
from ostinato.server.request import Request, Response, User
from ostinato.server.resources.core.services.locator import ServiceLocator
from ostinato.server.resources.strategy import Json
from ostinato.server.webhooks import client as client_module
from ostinato.server.webhooks.client import WebhookClient
from ostinato.server.webhooks.target import CallError, Service, UnusableTarget, target_of
from ostinato.server.webhooks.trust import check_host
from ostinato.world import World
from ostinato.world.simulated.simulation import Simulation

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Peer:
    """A webhook's side: answers requests in turn, and keeps what it was sent."""

    def __init__(self, *answers: bytes) -> None:
        self.answers = list(answers)
        self.heads: list[str] = []
        self.bodies: list[bytes] = []
        self.connections = 0

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while self.answers:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                self.heads.append(head)
                length = int(head.lower().partition("content-length: ")[2].partition("\r\n")[0])
                self.bodies.append(await reader.readexactly(length))
                answer = self.answers.pop(0)
                writer.write(answer)
                if b"Connection: close" in answer or answer == b"":
                    break
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        writer.close()


class Scene:
    def __init__(self, port: int, bundle: str, ask: Callable[..., Awaitable[bytes]]) -> None:
        self.port = port
        self.bundle = bundle
        self._ask = ask

    async def ask(self, review: bytes = b"{}", seconds: int = 5, *, path: str = "/hook", **client: str) -> bytes:
        config: Json = {"url": f"https://127.0.0.1:{self.port}{path}", "caBundle": self.bundle, **client}
        return await self._ask(config, review, seconds)

    async def fails(self, seconds: int = 5, **client: str) -> str:
        with pytest.raises(CallError) as failed:
            await self.ask(b"{}", seconds, **client)
        return str(failed.value).replace(str(self.port), "PORT")


def play(directory: Path, peer: Serve, test: Callable[[Scene], Awaitable[None]], hosts: tuple[str, ...] = ()) -> None:
    async def main() -> None:
        world = World.real()
        authority = Authority(world, directory)
        pair = authority.server("hook", list(hosts or ("127.0.0.1", "hook.default.svc")))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair.certificate, pair.key)
        server = await asyncio.start_server(peer, "127.0.0.1", 0, ssl=context)
        port = server.sockets[0].getsockname()[1]
        client = WebhookClient(world.clock, lambda service: ("127.0.0.1", port))
        bundle = base64.b64encode(authority.files.certificate.read_bytes()).decode()
        async with asyncio.timeout(30), server:
            await test(Scene(port, bundle, client.post_review))
            client.close()
        world.executor.close()

    asyncio.run(main())


URL = 'Post "https://127.0.0.1:PORT/hook?timeout=5s": '


def test_a_review_is_posted_and_the_response_returned(tmp_path: Path) -> None:
    peer = Peer(OK)

    async def test(scene: Scene) -> None:
        assert await scene.ask(b'{"kind":"Review"}', path="//a/./b/") == b"{}"
        assert peer.bodies == [b'{"kind":"Review"}']
        first, *rest = peer.heads[0].split("\r\n")
        assert first == "POST /a/b?timeout=5s HTTP/1.1"
        assert f"Host: 127.0.0.1:{scene.port}" in rest
        assert "Content-Type: application/json" in rest

    play(tmp_path, peer, test)


def test_a_connection_is_used_again(tmp_path: Path) -> None:
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
    peer = Peer(OK, chunked, OK)

    async def test(scene: Scene) -> None:
        for _ in range(3):
            assert await scene.ask() == b"{}"
        assert peer.connections == 1

    play(tmp_path, peer, test)


def test_a_connection_serves_all_paths_of_a_host_but_not_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer = Peer(OK, OK, OK)

    async def test(scene: Scene) -> None:
        await scene.ask(path="/a")
        await scene.ask(path="/b")
        assert peer.connections == 1
        monkeypatch.setattr(client_module, "_IDLE", 0.0)
        await scene.ask(path="/a")
        assert peer.connections == 2

    play(tmp_path, peer, test)


def test_a_connection_that_has_ended_meanwhile_is_replaced(tmp_path: Path) -> None:
    ended = asyncio.Event()
    counted = 0

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal counted
        counted += 1
        await reader.readuntil(b"\r\n\r\n{}")
        writer.write(OK)
        await writer.drain()
        writer.close()
        ended.set()

    async def test(scene: Scene) -> None:
        assert await scene.ask() == b"{}"
        await ended.wait()
        assert await scene.ask() == b"{}"
        assert counted == 2

    play(tmp_path, peer, test)


def test_an_answer_may_end_with_its_connection(tmp_path: Path) -> None:
    peer = Peer(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{}", OK)

    async def test(scene: Scene) -> None:
        assert await scene.ask() == b"{}"
        assert await scene.ask() == b"{}"
        assert peer.connections == 2

    play(tmp_path, peer, test)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            b"HTTP/1.1 500 X\r\nContent-Length: 4\r\n\r\nboom",
            'an error on the server ("boom") has prevented the request from succeeding',
        ),
        (
            b"HTTP/1.1 404 X\r\nContent-Length: 0\r\n\r\n",
            "the server could not find the requested resource",
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
            "0-length response with status code: 200 and content type: application/json",
        ),
        (b"", f"{URL}EOF"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\n{}", f"{URL}unexpected EOF"),
    ],
)
def test_invalid_responses_have_kube_apiservers_messages(tmp_path: Path, answer: bytes, message: str) -> None:
    async def test(scene: Scene) -> None:
        assert await scene.fails() == message

    play(tmp_path, Peer(answer), test)


def test_retry_after_is_honoured(tmp_path: Path) -> None:
    peer = Peer(b"HTTP/1.1 503 X\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n", OK)

    async def test(scene: Scene) -> None:
        assert await scene.ask() == b"{}"

    play(tmp_path, peer, test)


def test_silence_is_waited_for_no_longer_than_it_may_take(tmp_path: Path) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async def test(scene: Scene) -> None:
        assert await scene.fails(seconds=1) == (
            'Post "https://127.0.0.1:PORT/hook?timeout=1s": context deadline exceeded'
        )

    play(tmp_path, silent, test)


def test_an_endless_answer_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "_MOST_BODY", 1000)

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n{}")
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        try:
            while True:
                writer.write(b"x" * 500)
                await writer.drain()
        except ConnectionError:
            pass

    async def test(scene: Scene) -> None:
        assert await scene.fails() == f"{URL}the response has more than 1000 bytes"

    play(tmp_path, endless, test)


def test_untrusted_webhooks_are_not_called(tmp_path: Path) -> None:
    peer = Peer(OK)

    async def test(scene: Scene) -> None:
        (tmp_path / "other").mkdir()
        other = Authority(World.real(), tmp_path / "other").files.certificate.read_bytes()
        verify = f"{URL}tls: failed to verify certificate: x509: "
        unknown = f"{verify}certificate signed by unknown authority"
        assert await scene.fails(caBundle=base64.b64encode(other).decode()) == unknown
        assert await scene.fails(caBundle="") == unknown
        assert peer.heads == []

    play(tmp_path, peer, test)


def test_a_certificate_must_match_the_host(tmp_path: Path) -> None:
    peer = Peer(OK)

    async def test(scene: Scene) -> None:
        verify = f"{URL}tls: failed to verify certificate: x509: "
        assert await scene.fails() == (
            f"{verify}cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs"
        )
        assert peer.heads == []

    play(tmp_path, peer, test, hosts=("hook.example.com",))


@pytest.mark.parametrize(
    ("names", "host", "fault"),
    [
        ([("DNS", "a.example.com")], "a.example.com", ""),
        ([("DNS", "*.example.com")], "A.example.com", ""),
        ([("DNS", "*.example.com")], "b.a.example.com", "certificate is valid for *.example.com, not b.a.example.com"),
        ([("DNS", "a"), ("DNS", "b")], "c", "certificate is valid for a, b, not c"),
        ([("IP Address", "10.0.0.1")], "10.0.0.2", "certificate is valid for 10.0.0.1, not 10.0.0.2"),
        ([("IP Address", "0:0:0:0:0:0:0:1")], "::1", ""),
        ([("IP Address", "10.0.0.1")], "a", "certificate is not valid for any names, but wanted to match a"),
        ([], "common", "certificate relies on legacy Common Name field, use SANs instead"),
    ],
)
def test_the_names_of_a_certificate(names: list[tuple[str, str]], host: str, fault: str) -> None:
    certificate = {"subject": ((("commonName", "common"),),), "subjectAltName": tuple(names)}
    if not fault:
        check_host(certificate, host)
        return
    with pytest.raises(CallError) as failed:
        check_host(certificate, host)
    assert str(failed.value) == f"tls: failed to verify certificate: x509: {fault}"


def test_a_service_webhook_is_verified_by_its_dns_name(tmp_path: Path) -> None:
    peer = Peer(OK)

    async def test(scene: Scene) -> None:
        service = {"namespace": "default", "name": "hook", "path": "/x", "port": 8443}
        config = {"service": service, "caBundle": scene.bundle}
        assert await scene._ask(config, b"{}", 5) == b"{}"
        assert "Host: hook.default.svc:8443\r\n" in peer.heads[0]
        assert peer.heads[0].startswith("POST /x?timeout=5s ")

    play(tmp_path, peer, test)


def test_nothing_listens(tmp_path: Path) -> None:
    async def test(scene: Scene) -> None:
        config = {"url": "https://127.0.0.1:1/hook", "caBundle": scene.bundle}
        with pytest.raises(CallError, match=r"dial tcp 127.0.0.1:1: connect: connection refused"):
            await scene._ask(config, b"{}", 5)

    play(tmp_path, Peer(), test)


@pytest.mark.parametrize("bundle", ["bm9uc2Vuc2U=", "ICAK"])
def test_a_bundle_without_certificates_is_of_no_use(tmp_path: Path, bundle: str) -> None:
    async def test(scene: Scene) -> None:
        with pytest.raises(UnusableTarget, match="unable to load root certificates: unable to parse bytes as PEM"):
            await scene.ask(caBundle=bundle)

    play(tmp_path, Peer(), test)


def test_a_target_is_where_a_client_configuration_points_to() -> None:
    assert target_of({"url": "https://example.com/a/"}).url(3) == "https://example.com/a?timeout=3s"
    assert target_of({"url": "https://example.com"}).port == 443
    service = target_of({"service": {"namespace": "n", "name": "s"}})
    assert service.url(10) == "https://s.n.svc:443/?timeout=10s"
    assert service.service == Service("n", "s", 443)


def test_a_service_is_found_by_its_endpoints() -> None:
    simulation = Simulation(0)

    async def main() -> None:
        async with started_server(simulation) as server:
            server.authenticator.add("t", User("admin", groups=("system:masters",)))

            async def post(path: str, body: str) -> None:
                headers = {"authorization": "Bearer t", "content-type": "application/json"}
                answer = await server.handle(Request("POST", path, "", headers, body=body.encode()))
                assert isinstance(answer, Response)
                assert answer.status == 201, answer.body

            locate = ServiceLocator(server.registry).locate
            wanted = Service("default", "hook", 443)
            with pytest.raises(CallError, match=r'^service "hook" not found$'):
                locate(wanted)
            spec = '{"ports":[{"name":"https","port":443,"targetPort":9443}]}'
            await post("/api/v1/namespaces/default/services", f'{{"metadata":{{"name":"hook"}},"spec":{spec}}}')
            with pytest.raises(CallError, match=r'^no service port 8443 found for service "hook"$'):
                locate(wanted._replace(port=8443))
            with pytest.raises(CallError, match=r'^no endpoints available for service "hook"$'):
                locate(wanted)
            slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
            labels = '{"kubernetes.io/service-name":"hook"}'
            await post(
                slices,
                f'{{"metadata":{{"name":"hook-0","labels":{labels}}},"addressType":"IPv6",'
                '"endpoints":[{"addresses":["fd00::2"]}],"ports":[{"name":"https","port":9443}]}',
            )
            assert locate(wanted) == ("fd00::2", 9443)  # better than none; the Service is of IPv4
            endpoints = (
                '[{"addresses":["10.1.0.1"],"conditions":{"ready":false}},'
                '{"addresses":["10.1.0.2"],"conditions":{"ready":true}}]'
            )
            await post(
                slices,
                f'{{"metadata":{{"name":"hook-1","labels":{labels}}},"addressType":"IPv4","endpoints":{endpoints},'
                '"ports":[{"name":"https","port":9443}]}',
            )
            assert locate(wanted) == ("10.1.0.2", 9443)

    simulation.run(main())
