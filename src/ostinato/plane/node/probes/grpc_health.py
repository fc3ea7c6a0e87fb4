"""gRPC health checks (grpc.health.v1), with kubelet's messages."""

from __future__ import annotations

import asyncio
from typing import Final

from ostinato.grpc import Code, Connection, Limits, RpcError, go_error, request_head
from ostinato.http.hosts import join_host_port
from ostinato.plane.node.probes.outcome import Outcome
from ostinato.world import Clock

_METHOD: Final = "/grpc.health.v1.Health/Check"
_STATUSES: Final = ("UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN")
_RETRY_SECONDS: Final = 1.0  # between attempts to connect


async def check_health(host: str, port: int, service: str, within: float, clock: Clock) -> Outcome:
    """Ask a server for the health of a service; "" is the server itself."""
    address = join_host_port(host, port)
    until = clock.monotonic() + within
    try:
        async with clock.timeout(within):
            connection = await _connect(host, port, clock)
    except TimeoutError:
        text = f'timeout: failed to connect service "{address}" within {within:g}s: context deadline exceeded'
        return Outcome("failure", text)
    try:
        head = request_head(_METHOD, address)
        answer = await connection.call(_METHOD, head, _request(service), until - clock.monotonic())
    except RpcError as error:
        return Outcome("failure", _failure(error, within))
    finally:
        connection.abort()
    status = _status_of(answer)
    if status == "SERVING":
        return Outcome("success", "service healthy")
    return Outcome("failure", f'service unhealthy (responded with "{status}")')


async def _connect(host: str, port: int, clock: Clock) -> Connection:
    """Connect, however often it takes, as Go's gRPC library does. The caller sets the timeout."""
    loop = asyncio.get_running_loop()
    while True:
        connection: Connection | None = None
        try:
            _, connection = await loop.create_connection(lambda: Connection(clock, host, Limits()), host, port)
            await connection.ready()
        except (OSError, RpcError):
            await clock.sleep(_RETRY_SECONDS)
        except BaseException:
            if connection is not None:
                connection.abort()
            raise
        else:
            return connection


def _failure(error: RpcError, within: float) -> str:
    if error.code == Code.UNIMPLEMENTED:
        return f"error: this server does not implement the grpc health protocol (grpc.health.v1.Health): {error}"
    if error.code == Code.DEADLINE_EXCEEDED:
        return f"timeout: health rpc did not complete within {within:g}s"
    return f"error: health rpc probe failed: {go_error(error)}"


def _request(service: str) -> bytes:
    """Encode a HealthCheckRequest: field 1 is the service."""
    name = service.encode()
    size, rest = bytearray(), len(name)
    while rest > 0x7F:
        size.append(rest & 0x7F | 0x80)
        rest >>= 7
    size.append(rest)
    return b"\x0a" + size + name if name else b""


def _status_of(answer: bytes) -> str:
    """Decode a HealthCheckResponse: field 1 is the status, 0 if it is missing."""
    value = answer[1] if answer[:1] == b"\x08" and len(answer) > 1 else 0
    return _STATUSES[value] if value < len(_STATUSES) else str(value)
