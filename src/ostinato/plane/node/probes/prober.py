"""Prober: runs exec, HTTP, TCP and gRPC checks against containers, for probes and lifecycle hooks."""

from __future__ import annotations

import asyncio
import shlex
import ssl
from collections.abc import Sequence
from typing import Final, Protocol, runtime_checkable

from ostinato.http.byte_stream import ByteStream, PlainStream
from ostinato.http.encoding import clean_target, request_head
from ostinato.http.errors import InvalidHttp
from ostinato.http.exchange import read_response
from ostinato.http.hosts import join_host_port
from ostinato.http.tls_stream import TlsStream
from ostinato.kinds.core_v1 import Container, GRPCAction, HTTPGetAction, Pod, TCPSocketAction
from ostinato.plane.node.probes.grpc_health import check_health
from ostinato.plane.node.probes.outcome import Outcome
from ostinato.plane.node.probes.probe_results import ProbeResults
from ostinato.plane.node.runtimes import ExecError, Runtime
from ostinato.world import Clock

_MOST_OUTPUT: Final = 10 * 1024
_BROKEN: Final = "net/http: HTTP/1.x transport connection broken"


@runtime_checkable
class SyncExec(Protocol):
    """A runtime with a synchronous exec, such as the CRI's ExecSync, that enforces a timeout itself."""

    async def run(self, pod: Pod, container: str, command: Sequence[str], within: float | None) -> tuple[int, bytes]:
        """Return exit code and output; TimeoutError after `within` seconds, `ExecError` if it cannot be run."""


class Prober:
    """Runs checks against the containers of one node."""

    def __init__(self, runtime: Runtime, clock: Clock, results: ProbeResults | None = None) -> None:
        """`results`: counts the results of probes. Defaults to a new one."""
        self._runtime = runtime
        self._clock = clock
        self.results = ProbeResults() if results is None else results

    async def command(self, pod: Pod, container: str, command: Sequence[str], timeout: float | None) -> Outcome:  # noqa: ASYNC109
        run = self._runtime.run if isinstance(self._runtime, SyncExec) else self._run
        try:
            code, output = await run(pod, container, command, timeout)
        except ExecError as error:
            return Outcome("error", str(error))
        except TimeoutError:
            text = " ".join(shlex.quote(each) if " " in each else each for each in command)
            return Outcome("failure", f'command timed out: "{text}" timed out after {timeout:g}s')
        return Outcome("success" if code == 0 else "failure", output[:_MOST_OUTPUT].decode(errors="replace"))

    async def _run(self, pod: Pod, container: str, command: Sequence[str], within: float | None) -> tuple[int, bytes]:
        session = await self._runtime.exec(pod, container, command, stdin=False, tty=False)
        output = bytearray()
        try:
            async with self._clock.timeout(within):
                while (chunk := await session.read()) is not None:
                    if len(output) < _MOST_OUTPUT:
                        output += chunk[1]
                return await session.wait(), bytes(output)
        finally:
            await session.close()

    async def http(
        self,
        asked: HTTPGetAction,
        container: Container,
        address: str,
        timeout: float | None,  # noqa: ASYNC109
        agent: str = "kube-probe/1.36",
    ) -> Outcome:
        """Send a GET request; success is a status from 200 to 399."""
        port = port_of(asked.port, container)
        if port is None:
            return Outcome("error", f"couldn't find port: {asked.port!r} in container {container.name}")
        scheme, host = (asked.scheme or "HTTP").lower(), asked.host or address
        path = asked.path or ""
        path = path if path.startswith("/") else f"/{path}"
        url = f"{scheme}://{join_host_port(host, port)}{path}"
        fields = [(each.name, each.value) for each in asked.http_headers]
        names = {name.lower() for name, _ in fields}
        default = (("Host", join_host_port(host, port)), ("User-Agent", agent), ("Accept", "*/*"))
        fields = [*(each for each in default if each[0].lower() not in names), *fields, ("Connection", "close")]
        try:
            async with self._clock.timeout(timeout):
                status = await _get(host, port, path, fields, scheme == "https")
        except TimeoutError:
            text = f'Get "{url}": context deadline exceeded (Client.Timeout exceeded while awaiting headers)'
            return Outcome("failure", text)
        except (OSError, ValueError) as error:
            return Outcome("failure", f'Get "{url}": {_dialled(host, port, error)}')
        if 200 <= status < 400:
            return Outcome("success")
        return Outcome("failure", f"HTTP probe failed with statuscode: {status}")

    async def tcp(self, asked: TCPSocketAction, container: Container, address: str, timeout: float | None) -> Outcome:  # noqa: ASYNC109
        port = port_of(asked.port, container)
        if port is None:
            return Outcome("error", f"couldn't find port: {asked.port!r} in container {container.name}")
        host = asked.host or address
        try:
            async with self._clock.timeout(timeout):
                _, writer = await asyncio.open_connection(host, port)
        except TimeoutError:
            return Outcome("failure", f"dial tcp {join_host_port(host, port)}: i/o timeout")
        except OSError as error:
            return Outcome("failure", _dialled(host, port, error))
        writer.close()
        return Outcome("success")

    async def grpc(self, asked: GRPCAction, address: str, timeout: float) -> Outcome:  # noqa: ASYNC109
        return await check_health(address, asked.port, asked.service or "", timeout, self._clock)


def port_of(asked: int | str, container: Container) -> int | None:
    """Resolve a port number or name; None if it is invalid or unknown."""
    if isinstance(asked, int):
        return asked if 0 < asked < 65536 else None
    for port in container.ports:
        if port.name == asked:
            return port.container_port
    return int(asked) if asked.isascii() and asked.isdigit() and 0 < int(asked) < 65536 else None


async def _get(host: str, port: int, path: str, fields: Sequence[tuple[str, str]], secure: bool) -> int:
    """Send a GET request, and return the status of the response."""
    request = request_head("GET", clean_target(path), fields)
    stream: ByteStream
    if secure:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE  # as in kubelet
        stream = await TlsStream.to(host, port, context, host)
    else:
        stream = await PlainStream.to(host, port)
    try:
        await stream.write(request)
        return (await read_response(stream, lenient_line_ends=True)).status
    finally:
        stream.close()


def _dialled(host: str, port: int, error: Exception) -> str:
    if isinstance(error, InvalidHttp):
        return f"{_BROKEN}: {error}"
    if isinstance(error, ConnectionError) and str(error) in ("EOF", "unexpected EOF"):
        return str(error)
    if isinstance(error, ConnectionRefusedError):
        return f"dial tcp {join_host_port(host, port)}: connect: connection refused"
    if isinstance(error, OSError):
        return f"dial tcp {join_host_port(host, port)}: {(error.strerror or str(error)).lower()}"
    return str(error)
