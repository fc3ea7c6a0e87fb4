"""The proxy subresources of Pods, Services and nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
from tests.stage.api import Api, asking

from ostinato.api.errors import ServiceUnavailable
from ostinato.server.backends.forwarding import Backend, forward
from ostinato.server.request import Answer, Request, Response, Stream
from ostinato.world import World

PODS = "/api/v1/namespaces/default/pods"
SERVICES = "/api/v1/namespaces/default/services"
NODES = "/api/v1/nodes"


def _pod(name: str = "p") -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


@asking
async def test_unreachable_targets_have_distinct_errors(api: Api) -> None:
    await api.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    await api.post(PODS, _pod())
    assert (await api.get(f"{PODS}/none/proxy/")).message == 'pods "none" not found'
    assert (await api.get(f"{PODS}/ftp:p:80/proxy/")).message == 'invalid pod request "ftp:p:80"'
    for address in ("127.0.0.1", "169.254.0.1", "0.0.0.0"):
        await api.merge(f"{PODS}/p/status", {"status": {"podIP": address, "podIPs": [{"ip": address}]}})
        assert (await api.get(f"{PODS}/p/proxy/")).message == "address not allowed"
    await api.post(SERVICES, {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80, "name": "web"}]}})
    assert (await api.get(f"{SERVICES}/s:81/proxy/")).message == 'no service port 81 found for service "s"'
    await api.post("/api/v1/namespaces/default/endpoints", {"metadata": {"name": "s"}})
    assert (await api.get(f"{SERVICES}/s:web/proxy/")).message == 'no endpoints available for service "s"'
    await api.post(NODES, {"metadata": {"name": "n"}})
    assert (await api.get(f"{NODES}/n/proxy/")).message == "no preferred addresses found; known addresses: []"


@asking
async def test_an_endpoint_address_that_is_not_its_pods_is_skipped(api: Api) -> None:
    await api.post(SERVICES, {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}})
    subset = {"addresses": [{"ip": "10.9.9.9"}], "ports": [{"port": 80}]}
    await api.post("/api/v1/namespaces/default/endpoints", {"metadata": {"name": "s"}, "subsets": [subset]})
    assert (await api.get(f"{SERVICES}/s/proxy/")).message == 'no endpoints available for service "s"'


@asking
async def test_a_local_node_receives_the_path_after_proxy(api: Api) -> None:
    async def agent(request: Request) -> Answer:
        return Response(200, b'{"asked": "%s"}' % f"{request.path}?{request.query_string}".encode())

    await api.post(NODES, {"metadata": {"name": "n"}})
    api.server.nodes.add("n", agent)
    assert (await api.get(f"{NODES}/n/proxy/stats/summary?x=y")).body == {"asked": "/stats/summary?x=y"}


@asking
async def test_only_reads_are_redirected_to_the_trailing_slash(api: Api) -> None:
    async def agent(request: Request) -> Answer:
        return Response(200, b'{"asked": "%s %s"}' % (request.method.encode(), request.path.encode()))

    await api.post(NODES, {"metadata": {"name": "n"}})
    api.server.nodes.add("n", agent)
    for method in ("GET", "HEAD"):
        request = Request(method, f"{NODES}/n/proxy", "x=y", {"authorization": "Bearer admin"})
        answer = await api.server.handle(request)
        assert (answer.status, dict(answer.headers)["Location"]) == (301, f"{NODES}/n/proxy/?x=y")
    for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
        assert (await api.ask(method, f"{NODES}/n/proxy")).body == {"asked": f"{method} /"}


Peer = Callable[[bytes], bytes]


def _with_peer(answer: Peer, test: Callable[[Backend], Awaitable[None]]) -> None:
    """Run a test against a peer that reads one request and sends a response."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        sizes = [line.split(b":")[1] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")]
        writer.write(answer(head + await reader.readexactly(int(sizes[0]) if sizes else 0)))
        writer.close()

    async def run() -> None:
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            await test(Backend(["127.0.0.1"], server.sockets[0].getsockname()[1], "127.0.0.1"))

    asyncio.run(run())


async def _body(answer: Answer) -> bytes:
    assert isinstance(answer, Stream)
    return b"".join([chunk async for chunk in answer.chunks])


def test_a_request_is_forwarded_with_its_body_and_without_credentials() -> None:
    seen = []

    def answer(request: bytes) -> bytes:
        seen.append(request)
        head = b"HTTP/1.1 201 Created\r\nContent-Type: a/b\r\nX-Own: 1\r\nTransfer-Encoding: chunked\r\n\r\n"
        return head + b"2\r\nok\r\n0\r\n\r\n"

    async def test(place: Backend) -> None:
        headers = {"authorization": "Bearer secret", "content-type": "c/d", "host": "me", "x-mine": "yes"}
        request = Request("POST", "/api/v1/proxy/a", "b=c", headers, body=b"hello")
        told = await forward(request, place, "/a", World.real().clock)
        assert (told.status, told.content_type, list(told.headers)) == (201, "a/b", [("X-Own", "1")])
        assert await _body(told) == b"ok"

    _with_peer(answer, test)
    assert seen[0].startswith(b"POST /a?b=c HTTP/1.1\r\n")
    assert seen[0].endswith(b"\r\n\r\nhello")
    assert b"x-mine: yes" in seen[0]
    assert b"secret" not in seen[0]


@pytest.mark.parametrize(
    ("location", "shown"),
    [
        ("/there", "/x/proxy/there"),
        ("/there/?a=b#c", "/x/proxy/there/?a=b#c"),
        ("there", "there"),
        ("http://else/where", "http://else/where"),
        ("//else/where", "//else/where"),
        ("http://me/there", "http://me/x/proxy/there"),  # the requested host
        ("/x/proxy/there", "/x/proxy/there"),  # a backend that knows its proxy path
    ],
)
def test_a_redirection_leads_through_the_server_again(location: str, shown: str) -> None:
    def answer(request: bytes) -> bytes:
        return f"HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n".encode()

    async def test(place: Backend) -> None:
        request = Request("GET", "/x/proxy/here", headers={"host": "me"})
        told = await forward(request, place, "/here", World.real().clock)
        assert await _body(told) == b""
        assert dict(told.headers)["Location"] == shown

    _with_peer(answer, test)


def test_links_of_a_page_lead_through_the_server_again() -> None:
    def answer(request: bytes) -> bytes:
        page = b'<a href="/rewriteme">test</a><a href="http://else/x">else</a>'
        kind = b"Content-Type: text/html; charset=utf-8"
        return b"HTTP/1.1 200 OK\r\n%s\r\nContent-Length: %d\r\n\r\n%s" % (kind, len(page), page)

    async def test(place: Backend) -> None:
        request = Request("GET", "/x/proxy/here", headers={"host": "me"})
        told = await forward(request, place, "/here", World.real().clock)
        assert isinstance(told, Stream)
        assert told.length is None
        assert await _body(told) == b'<a href="/x/proxy/rewriteme">test</a><a href="http://else/x">else</a>'

    _with_peer(answer, test)


def test_a_target_that_does_not_speak_http_is_unavailable() -> None:
    async def test(place: Backend) -> None:
        with pytest.raises(ServiceUnavailable, match="error trying to reach service"):
            await forward(Request("GET", "/x/proxy/"), place, "/", World.real().clock)

    _with_peer(lambda _: b"220 mail\r\n\r\n", test)


def test_a_closed_port_is_named() -> None:
    async def test(place: Backend) -> None:
        async with await asyncio.start_server(lambda *_: None, "127.0.0.1", 0) as server:
            closed = server.sockets[0].getsockname()[1]
        with pytest.raises(ServiceUnavailable, match=f"dial tcp 127.0.0.1:{closed}: connect: connection refused"):
            await forward(
                Request("GET", "/x/proxy/"), msgspec.structs.replace(place, port=closed), "/", World.real().clock
            )

    _with_peer(lambda _: b"", test)
