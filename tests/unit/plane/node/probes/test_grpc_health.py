"""gRPC health checks, as kubelet does them."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from tests.unit.grpc.grpc_server import Exchange, GrpcServer, Serve

from ostinato.kinds.core_v1 import GRPCAction
from ostinato.plane.node.probes.outcome import Outcome
from ostinato.plane.node.probes.prober import Prober
from ostinato.world import World

NO_RUNTIME = cast("Any", None)  # gRPC probes do not use it


def probe(serve: Serve, service: str = "", within: float = 10.0) -> tuple[Outcome, GrpcServer]:
    async def main() -> tuple[Outcome, GrpcServer]:
        server = GrpcServer(serve)
        listening = await asyncio.start_server(server.connected, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        try:
            prober = Prober(NO_RUNTIME, World.real().clock)
            outcome = await prober.grpc(GRPCAction(port=port, service=service), "127.0.0.1", within)
        finally:
            server.hang_up()
            listening.close()
            await listening.wait_closed()
        return Outcome(outcome.result, outcome.output.replace(str(port), "PORT")), server

    return asyncio.run(main())


def answering(response: bytes, status: int = 0, message: str = "") -> Serve:
    async def serve(call: Exchange) -> None:
        await call.answer(*([] if status else [response]), status=status, message=message)

    return serve


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (b"\x08\x01", Outcome("success", "service healthy")),
        (b"\x08\x02", Outcome("failure", 'service unhealthy (responded with "NOT_SERVING")')),
        (b"\x08\x03", Outcome("failure", 'service unhealthy (responded with "SERVICE_UNKNOWN")')),
        (b"", Outcome("failure", 'service unhealthy (responded with "UNKNOWN")')),
        (b"\x08\x09", Outcome("failure", 'service unhealthy (responded with "9")')),
    ],
)
def test_a_service_that_is_serving_is_healthy(response: bytes, expected: Outcome) -> None:
    assert probe(answering(response))[0] == expected


@pytest.mark.parametrize(
    ("service", "request_"), [("", b""), ("a.b", b"\x0a\x03a.b"), ("x" * 200, b"\x0a\xc8\x01" + b"x" * 200)]
)
def test_the_service_is_named_in_the_request(service: str, request_: bytes) -> None:
    outcome, server = probe(answering(b"\x08\x01"), service)
    assert outcome.result == "success"
    (exchange,) = server.exchanges
    assert exchange.method == "/grpc.health.v1.Health/Check"
    assert bytes(exchange.request)[5:] == request_


def test_errors_of_the_server_are_failures() -> None:
    missing = probe(answering(b"", 12, "unknown service grpc.health.v1.Health"))[0]
    assert missing == Outcome(
        "failure",
        "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): "
        "unknown service grpc.health.v1.Health",
    )
    unknown = probe(answering(b"", 5, "unknown service"))[0]
    assert unknown.output == "error: health rpc probe failed: rpc error: code = NotFound desc = unknown service"


def test_a_server_that_does_not_answer_fails_in_time() -> None:
    async def never(_call: Exchange) -> None:
        await asyncio.Event().wait()

    assert probe(never, within=0.5)[0] == Outcome("failure", "timeout: health rpc did not complete within 0.5s")


def test_a_port_without_a_server_fails_in_time() -> None:
    async def main() -> Outcome:
        return await Prober(NO_RUNTIME, World.real().clock).grpc(GRPCAction(port=1), "127.0.0.1", 0.2)

    text = 'timeout: failed to connect service "127.0.0.1:1" within 0.2s: context deadline exceeded'
    assert asyncio.run(main()) == Outcome("failure", text)


def test_a_server_of_another_protocol_fails_in_time() -> None:
    async def main() -> Outcome:
        async def serve(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            writer.close()

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            return await Prober(NO_RUNTIME, World.real().clock).grpc(GRPCAction(port=port), "127.0.0.1", 0.2)

    outcome = asyncio.run(main())
    assert outcome.result == "failure"
    assert "failed to connect service" in outcome.output
