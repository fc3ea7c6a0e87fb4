"""HTTP probes."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from typing import Any, cast

import pytest

from ostinato.kinds.core_v1 import Container, HTTPGetAction, HTTPHeader
from ostinato.plane.node.probes.outcome import Outcome
from ostinato.plane.node.probes.prober import Prober
from ostinato.server.access.authority import Authority
from ostinato.world import World

BROKEN = "net/http: HTTP/1.x transport connection broken"
NO_RUNTIME = cast("Any", None)  # HTTP probes do not use it


def probe(
    response: bytes, action: HTTPGetAction | None = None, tls: ssl.SSLContext | None = None
) -> tuple[Outcome, bytes]:
    """Probe a server that sends `response` and closes; return the outcome without the port, and the request."""
    received = b""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal received
        received = await reader.readuntil(b"\r\n\r\n")
        writer.write(response)
        writer.close()

    async def main() -> Outcome:
        world = World.real()
        server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
        port = server.sockets[0].getsockname()[1]
        prober = Prober(NO_RUNTIME, world.clock)
        asked = action or HTTPGetAction(port=0, path="/healthz")
        asked.port = port
        async with server:
            outcome = await prober.http(asked, Container(name="c"), "127.0.0.1", 10)
        return Outcome(outcome.result, outcome.output.replace(str(port), "PORT"))

    return asyncio.run(main()), received


@pytest.mark.parametrize(
    "response",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.0 204 No Content\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: /\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 399 x\r\n\r\n",
        b"HTTP/1.1 200 OK\n\nok\n",
        b"HTTP/1.1 200 OK\nContent-Type: text/plain\n\r\nok\n",
    ],
)
def test_a_status_from_200_to_399_is_success(response: bytes) -> None:
    assert probe(response)[0] == Outcome("success")


@pytest.mark.parametrize(
    ("response", "output"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "HTTP probe failed with statuscode: 400"),
        (b"HTTP/1.1 503 x\r\nContent-Length: 9\r\n\r\nnot", "HTTP probe failed with statuscode: 503"),
        (b"", 'Get "http://127.0.0.1:PORT/healthz": EOF'),
        (b"HTTP/1.1 200 OK\r\n", 'Get "http://127.0.0.1:PORT/healthz": unexpected EOF'),
        (b"SSH-2.0\r\n", f'Get "http://127.0.0.1:PORT/healthz": {BROKEN}: malformed HTTP response "SSH-2.0"'),
    ],
)
def test_any_other_response_is_a_failure_with_its_reason(response: bytes, output: str) -> None:
    assert probe(response)[0] == Outcome("failure", output)


def test_headers_of_the_probe_replace_the_defaults() -> None:
    action = HTTPGetAction(
        port=0, path="a b", http_headers=[HTTPHeader(name="host", value="web"), HTTPHeader(name="X", value="1")]
    )
    outcome, request = probe(b"HTTP/1.1 200 OK\r\n\r\n", action)
    assert outcome.result == "success"
    lines = [b"GET /a%20b HTTP/1.1", b"User-Agent: kube-probe/1.36", b"Accept: */*", b"host: web", b"X: 1"]
    assert request == b"\r\n".join([*lines, b"Connection: close", b"", b""])


def test_a_header_cannot_add_others() -> None:
    action = HTTPGetAction(port=0, path="/", http_headers=[HTTPHeader(name="X", value="1\r\nHost: other")])
    outcome, request = probe(b"HTTP/1.1 200 OK\r\n\r\n", action)
    assert (outcome.result, request) == ("failure", b"")
    assert "a header contains a line break" in outcome.output


def test_the_certificate_is_not_verified(tmp_path: Path) -> None:
    pair = Authority(World.real(), tmp_path).server("server", ["other"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    assert probe(b"HTTP/1.1 200 OK\r\n\r\n", HTTPGetAction(port=0, scheme="HTTPS"), context)[0] == Outcome("success")
