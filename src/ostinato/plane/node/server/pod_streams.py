"""Logs, exec, attach and port-forward of a node's API, with kubelet's paths and error texts.

| path | response |
|---|---|
| `/containerLogs/NAMESPACE/POD/CONTAINER` | log of a container |
| `/exec/NAMESPACE/POD/CONTAINER` | command in a container, over WebSocket or SPDY |
| `/run/NAMESPACE/POD/CONTAINER?cmd=` | output of a command in a container (POST) |
| `/attach/NAMESPACE/POD/CONTAINER` | streams of a container |
| `/portForward/NAMESPACE/POD` | connections to ports |
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Protocol, runtime_checkable
from urllib.parse import unquote

from ostinato.api.errors import APIError
from ostinato.api.gvk import NamespacedName
from ostinato.api.time import Time, TimeError
from ostinato.kinds.core_v1 import Container, ContainerStatus, Pod
from ostinato.plane.node.containers.log_paths import log_of
from ostinato.plane.node.runtimes import ExecError, Runtime
from ostinato.plane.node.server.log_reader import LogOptions, read_log
from ostinato.server.request import Answer, Request, Response, Stream, text_response
from ostinato.server.request.options import boolean, integer
from ostinato.streams import channels, ports, spdy_command
from ostinato.streams.session import Command, Session, SessionError
from ostinato.world import World

FindPod = Callable[[NamespacedName], Awaitable[Pod | None]]


@runtime_checkable
class OwnNetwork(Protocol):
    """A runtime whose Pods have their own networks."""

    async def connect(self, pod: Pod, port: int) -> ports.Link:
        """Connect to a port of a Pod; OSError if that fails."""


class RequestError(Exception):
    """A request that is answered with an error status and text."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class PodStreams:
    """Serves the Pods of the nodes of this process."""

    def __init__(self, world: World, find: FindPod, runtimes: Mapping[str, Runtime], logs: Path | None) -> None:
        """`runtimes`: by node name. `logs`: log directory; None if containers are simulated."""
        self._world = world
        self._find = find
        self._runtimes = runtimes
        self._logs = logs

    async def handle(self, request: Request) -> Answer:
        try:
            return await self._answer(request)
        except RequestError as refused:
            return text_response(refused.status, str(refused))

    async def _answer(self, request: Request) -> Answer:
        what, *names = [unquote(part) for part in request.path.strip("/").split("/")]
        if what == "portForward" and len(names) in (2, 3):
            return self._forward(request, *await self._pod(names[0], names[1], "pod does not exist"))
        if len(names) not in (3, 4):  # optionally with a uid before the container
            raise RequestError(404, "404 page not found")
        namespace, name, container = names[0], names[1], names[-1]
        if what == "containerLogs":
            pod, _ = await self._pod(namespace, name, f'pod "{name}" does not exist')
            return await self._log(request, pod, container)
        if what not in ("exec", "attach", "run"):
            raise RequestError(404, "404 page not found")
        pod, runtime = await self._pod(namespace, name, "pod does not exist")
        if what == "run":
            return await self._run(request, pod, runtime, container)
        return self._command(what, request, pod, runtime, container)

    async def _pod(self, namespace: str, name: str, missing: str) -> tuple[Pod, Runtime]:
        pod = await self._find(NamespacedName(namespace, name))
        runtime = None if pod is None else self._runtimes.get(pod.spec.node_name or "")
        if pod is None or runtime is None:
            raise RequestError(404, missing)
        return pod, runtime

    # Logs

    async def _log(self, request: Request, pod: Pod, container: str) -> Answer:
        options = self._log_options(request)
        if _spec_of(pod, container) is None:
            raise RequestError(404, f'container "{container}" not found in pod "{pod.metadata.name}"')
        attempt = _logged_attempt(pod, container, previous=_flag(request, "previous"))
        if self._logs is None:
            raise RequestError(400, f'container "{container}" in pod "{pod.metadata.name}" is simulated and has no log')

        async def is_running() -> bool:
            now = await self._find(NamespacedName(pod.metadata.namespace, pod.metadata.name))
            status = None if now is None or now.metadata.uid != pod.metadata.uid else _status_of(now, container)
            return status is not None and _is_running(status) and status.restart_count == attempt

        path = log_of(self._logs, pod, container, attempt)
        return Stream(200, read_log(path, options, self._world.clock, is_running), "text/plain", patient=True)

    def _log_options(self, request: Request) -> LogOptions:
        try:
            seconds, lines, most = (_number(request, name) for name in ("sinceSeconds", "tailLines", "limitBytes"))
            since = Time.parse(text) if (text := request.parameter("sinceTime")) else None
        except (APIError, TimeError):
            raise RequestError(400, '{"message": "Unable to decode query."}') from None
        if (lines or 0) < 0 or (most is not None and most < 1) or (seconds is not None and seconds < 1):
            raise RequestError(422, '{"message": "Invalid request."}')
        if seconds is not None:
            since = Time.of(self._world.clock.now() - timedelta(seconds=min(seconds, _LONG_AGO)))
        return LogOptions(
            follow=_flag(request, "follow"),
            timestamps=_flag(request, "timestamps"),
            since=since,
            tail_lines=lines,
            limit_bytes=most,
        )

    # Commands

    def _command(self, what: str, request: Request, pod: Pod, runtime: Runtime, container: str) -> Answer:
        spec, status = _spec_of(pod, container), _status_of(pod, container)
        stdin, stdout, stderr, tty = (_flag(request, name) for name in ("input", "output", "error", "tty"))
        words = request.query.get("command", [])
        if not (stdin or stdout or stderr):
            raise RequestError(400, "you must specify at least 1 of stdin, stdout, stderr")
        if spec is None or status is None or not _is_running(status):
            full = f"{pod.metadata.name}_{pod.metadata.namespace}"
            missing = f'container not found ("{container}")'
            raise RequestError(500, missing if what == "exec" else f"container {container} not found in pod {full}")
        if what == "exec" and not words:
            raise RequestError(400, "you must specify at least one command for the container")
        if what == "attach":
            tty = bool(spec.tty)

        async def begin() -> Session:
            try:
                if what == "exec":
                    return await runtime.exec(pod, container, words, stdin=stdin, tty=tty)
                return await runtime.attach(pod, container, stdin=stdin, tty=tty)
            except ExecError as error:
                raise SessionError(str(error)) from None

        doing = "executing command in" if what == "exec" else "attaching to"
        command = Command(open=begin, what=doing, stdin=stdin, stdout=stdout, stderr=stderr, tty=tty)
        if _is_websocket(request):
            return channels.command_upgrade(command, _websocket_protocol(request, channels.PROTOCOLS))
        return spdy_command.command_upgrade(command, _spdy_protocol(request, spdy_command.PROTOCOLS), self._world.clock)

    async def _run(self, request: Request, pod: Pod, runtime: Runtime, container: str) -> Answer:
        """Run a command without a shell and return what it writes, standard error included."""
        if request.method != "POST":
            raise RequestError(405, "405: Method Not Allowed")
        status, command = _status_of(pod, container), request.parameter("cmd")
        if _spec_of(pod, container) is None or status is None or not _is_running(status):
            raise RequestError(500, f'container not found ("{container}")')
        try:
            session = await runtime.exec(pod, container, command.split(" "), stdin=False, tty=False)
        except ExecError as error:
            raise RequestError(500, str(error)) from None
        output = bytearray()
        try:
            while (piece := await session.read()) is not None:
                output += piece[1]
                if len(output) > _MOST_OUTPUT:
                    raise RequestError(500, f"the command wrote more than {_MOST_OUTPUT} bytes")
            code = await session.wait()
        finally:
            await session.close()
        if code:
            text = output.decode(errors="replace")
            raise RequestError(500, f"command '{command}' exited with {code}: {text}")
        return Response(200, bytes(output), "text/plain; charset=utf-8")

    # Ports

    def _forward(self, request: Request, pod: Pod, runtime: Runtime) -> Answer:
        if pod.status.phase != "Running":
            raise RequestError(500, f'pod not found ("{pod.metadata.name}_{pod.metadata.namespace}")')
        about = f"{pod.metadata.name}, uid {pod.metadata.uid}"

        async def dial(port: int) -> ports.Link:
            if isinstance(runtime, OwnNetwork):
                return await runtime.connect(pod, port)
            try:
                return await ports.TcpLink.to("127.0.0.1", port)
            except ConnectionRefusedError:
                raise ConnectionRefusedError(f"dial tcp4 127.0.0.1:{port}: connect: connection refused") from None

        if not _is_websocket(request):
            _spdy_protocol(request, (ports.PROTOCOL,))
            return ports.spdy_upgrade(dial, about)
        protocol = _websocket_protocol(request, (ports.TUNNEL, *ports.CHANNELS))
        if protocol == ports.TUNNEL:
            return ports.tunnel_upgrade(dial, about)
        try:
            wanted = ports.parse_ports(request.query.get("port", []))
        except ValueError as error:
            raise RequestError(400, str(error)) from None
        return ports.channels_upgrade(wanted, dial, about, protocol)


_MOST_OUTPUT = 16 << 20  # bytes of /run
_LONG_AGO = 10**9  # seconds; bounds sinceSeconds


def _logged_attempt(pod: Pod, container: str, *, previous: bool) -> int:
    """Return the attempt whose log is requested; `RequestError` if there is none."""
    whose = f'container "{container}" in pod "{pod.metadata.name}"'
    status = _status_of(pod, container)
    if status is None:
        raise RequestError(400, f"{whose} is not available")
    state, last = status.state, status.last_state
    ended = None if last is None else last.terminated
    has_ended = ended is not None and bool(ended.container_id)
    if state is not None and (
        state.running is not None or (state.terminated is not None and state.terminated.container_id)
    ):
        if previous and not has_ended:
            raise RequestError(400, f"previous terminated {whose} not found")
        return status.restart_count - (1 if previous else 0)
    if has_ended:  # waiting for its restart
        return status.restart_count
    if previous:
        raise RequestError(400, f"previous terminated {whose} not found")
    if state is None or state.waiting is None:
        raise RequestError(400, f"{whose} is " + ("waiting to start - no logs yet" if state is None else "terminated"))
    reasons = {
        "ErrImagePull": "image can't be pulled",
        "ImagePullBackOff": "trying and failing to pull image",
    }
    reason = state.waiting.reason or ""
    raise RequestError(400, f"{whose} is waiting to start: {reasons.get(reason, reason)}")


def _spec_of(pod: Pod, name: str) -> Container | None:
    spec = pod.spec
    every: Sequence[Container] = [*spec.init_containers, *spec.containers, *spec.ephemeral_containers]  # type: ignore[list-item]
    return next((each for each in every if each.name == name), None)


def _status_of(pod: Pod, name: str) -> ContainerStatus | None:
    status = pod.status
    every = (*status.container_statuses, *status.init_container_statuses, *status.ephemeral_container_statuses)
    return next((each for each in every if each.name == name), None)


def _is_running(status: ContainerStatus) -> bool:
    return status.state is not None and status.state.running is not None


def _flag(request: Request, name: str) -> bool:
    return bool(request.query_string) and name in request.query and boolean(request.parameter(name))


def _number(request: Request, name: str) -> int | None:
    text = request.parameter(name)
    return integer(text) if text else None


def _is_websocket(request: Request) -> bool:
    return request.headers.get("upgrade", "").lower() == "websocket"


def _websocket_protocol(request: Request, known: Sequence[str]) -> str:
    words = channels.offered(request.headers)
    chosen = channels.choose(words, known)
    if chosen is None:
        raise RequestError(
            400, f"requested protocol(s) are not supported: [{' '.join(words)}]; supports [{' '.join(known)}]"
        )
    return chosen


def _spdy_protocol(request: Request, known: Sequence[str]) -> str:
    """Negotiate the stream protocol; the oldest if the client does not offer any."""
    name = "x-stream-protocol-version"
    if request.headers.get("upgrade", "").lower() != spdy_command.SPDY.lower():
        raise RequestError(400, "Upgrade request required")
    first = request.headers.get(name, "")
    words = [word.strip() for line in request.repeated.get(name, [first]) for word in line.split(",") if word.strip()]
    chosen = channels.choose(words, known)
    if chosen is None:
        raise RequestError(
            403, f"unable to upgrade: unable to negotiate protocol: client supports {words}, server accepts {[*known]}"
        )
    return chosen or known[-1]
