"""Subresources of Pods: logs, exec, attach, port-forward, eviction and binding.

    await client.pods.log("web-0", tail_lines=20)
    async for line in client.pods.follow("web-0"): ...
    done = await client.pods.run("web-0", ["cat", "/etc/hostname"])
    await client.pods.evict("web-0")

A Pod is identified by a name in the client's namespace, by a name and `namespace=`, or by a key with both.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import TypedDict, Unpack

from ostinato.api.codec import to_json
from ostinato.api.meta import DeleteOptions, ObjectMeta, Preconditions
from ostinato.api.object import KindInfo, kind_of
from ostinato.api.time import Time
from ostinato.client.discovery.paths import Key
from ostinato.client.options import Query
from ostinato.client.requests import Content, Requests, Target
from ostinato.client.subresources import port_forward, process
from ostinato.client.subresources.port_forward import PortForward
from ostinato.client.subresources.process import Completed, Process
from ostinato.client.transport.exchange import Call, response_error
from ostinato.client.transport.protocol import UpgradeRefused, WebSocket, lines


class LogOptions(TypedDict, total=False):
    """
    - `container`: required if the Pod has several.
    - `previous`: of the previous instance of the container. Defaults to False.
    - `tail_lines`, `since_seconds`, `since_time`, `limit_bytes`: limit the output. Default to all.
    - `timestamps`: begin each line with its timestamp. Defaults to False.
    """

    container: str
    previous: bool
    tail_lines: int
    since_seconds: int
    since_time: datetime
    limit_bytes: int
    timestamps: bool


class Pods:
    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    async def log(self, name: Key, *, namespace: str | None = None, **options: Unpack[LogOptions]) -> str:
        """Return the log of a container so far."""
        call = self._log_call(self._target(name, namespace, "log"), options)
        response = await self._requests.exchange.open(call)
        return (await response.read()).decode(errors="replace")

    async def follow(
        self, name: Key, *, namespace: str | None = None, **options: Unpack[LogOptions]
    ) -> AsyncIterator[str]:
        """Iterate over the log lines of a container until it terminates. Close the iterator to stop earlier."""
        call = self._log_call(self._target(name, namespace, "log"), options, follow=True)
        async with await self._requests.exchange.open(call) as response:
            async for line in lines(response.chunks()):
                yield line.decode(errors="replace")

    async def exec(
        self,
        name: Key,
        command: Sequence[str],
        *,
        namespace: str | None = None,
        container: str = "",
        stdin: bool = False,
        tty: bool = False,
    ) -> Process:
        """Start a command in a container. With `tty`, all output is on one stream."""
        if isinstance(command, str) or not command:
            raise ValueError(
                f"exec() command is {command!r}; pass a list of words, e.g. ['sh', '-c', …] for a shell command"
            )
        query = [("command", word) for word in command]
        return await self._process(self._target(name, namespace, "exec"), query, container, stdin=stdin, tty=tty)

    async def attach(
        self, name: Key, *, namespace: str | None = None, container: str = "", stdin: bool = False, tty: bool = False
    ) -> Process:
        """Attach to the running process of a container."""
        return await self._process(self._target(name, namespace, "attach"), [], container, stdin=stdin, tty=tty)

    async def run(
        self,
        name: Key,
        command: Sequence[str],
        *,
        namespace: str | None = None,
        container: str = "",
        stdin: bytes | None = None,
    ) -> Completed:
        """Run a command in a container, and wait for its end. `stdin`: the whole input."""
        async with await self.exec(
            name, command, namespace=namespace, container=container, stdin=stdin is not None
        ) as started:
            return await (started.complete() if stdin is None else started.communicate(stdin))

    async def port_forward(self, name: Key, port: int, *, namespace: str | None = None) -> PortForward:
        """Open a connection to a port of a Pod."""
        target = self._target(name, namespace, "portforward")
        socket = await self._upgrade(target, [("ports", str(port))], port_forward.PROTOCOLS)
        return PortForward(socket, port, f"port {port} of Pod {target.key}")

    async def evict(
        self,
        name: Key,
        *,
        namespace: str | None = None,
        grace_period: int | None = None,
        uid: str = "",
        dry_run: bool = False,
    ) -> None:
        """Evict a Pod. Raises TooManyRequests if its disruption budgets do not allow it now."""
        from ostinato.kinds.policy_v1 import Eviction  # noqa: PLC0415 - imported on first use

        options = DeleteOptions(
            dry_run=["All"] if dry_run else [],
            grace_period_seconds=grace_period,
            preconditions=Preconditions(uid=uid) if uid else None,
        )
        target = self._target(name, namespace, "eviction")
        eviction = Eviction(metadata=_metadata(target), delete_options=options)
        await self._requests.send("POST", target, Content(body=to_json(eviction)))

    async def bind(self, name: Key, node: str, *, namespace: str | None = None, uid: str = "") -> None:
        """Bind a Pod to a node, as schedulers do. `uid`: precondition. Defaults to none."""
        from ostinato.kinds.core_v1 import Binding, ObjectReference  # noqa: PLC0415

        target = self._target(name, namespace, "binding")
        binding = Binding(metadata=_metadata(target, uid), target=ObjectReference(kind="Node", name=node))
        await self._requests.send("POST", target, Content(body=to_json(binding)))

    def _target(self, name: Key, namespace: str | None, subresource: str) -> Target:
        return self._requests.target(_pods(), name, namespace, subresource)

    def _log_call(self, target: Target, options: LogOptions, *, follow: bool = False) -> Call:
        return Call(
            method="GET",
            path=target.path,
            query=_log_query(options) + ([("follow", "true")] if follow else []),
            accept="text/plain, application/json;q=0.9, */*;q=0.8",
            stream=follow,
            info=target.info,
            name=target.key.name,
            subresource=target.subresource,
        )

    async def _process(self, target: Target, query: Query, container: str, *, stdin: bool, tty: bool) -> Process:
        if container:
            query.append(("container", container))
        query += [("stdout", "true"), ("stderr", "false" if tty else "true")]
        query += [(name, "true") for name, wanted in (("stdin", stdin), ("tty", tty)) if wanted]
        socket = await self._upgrade(target, query, process.PROTOCOLS)
        return Process(socket, f"{target.subresource} in Pod {target.key}")

    async def _upgrade(self, target: Target, query: Query, protocols: Sequence[str]) -> WebSocket:
        call = Call(
            method="GET",
            path=target.path,
            query=query,
            stream=True,
            info=target.info,
            name=target.key.name,
            subresource=target.subresource,
        )
        try:
            return await self._requests.exchange.transport.websocket(call.request(), protocols)
        except UpgradeRefused as error:
            raise response_error(call, error.status, error.headers, error.body) from error


def _pods() -> KindInfo:
    from ostinato.kinds.core_v1 import Pod  # noqa: PLC0415

    return kind_of(Pod)


def _metadata(target: Target, uid: str = "") -> ObjectMeta:
    return ObjectMeta(name=target.key.name, namespace=target.key.namespace, uid=uid)


_LOG_PARAMETERS = {
    "container": "container",
    "previous": "previous",
    "tail_lines": "tailLines",
    "since_seconds": "sinceSeconds",
    "since_time": "sinceTime",
    "limit_bytes": "limitBytes",
    "timestamps": "timestamps",
}


def _log_query(options: LogOptions) -> Query:
    unknown = options.keys() - _LOG_PARAMETERS.keys()
    if unknown:
        raise TypeError(f"unknown option {min(unknown)!r}; use one of {', '.join(_LOG_PARAMETERS)}")
    return [(_LOG_PARAMETERS[name], _log_text(value)) for name, value in options.items()]


def _log_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(Time.of(value)) if isinstance(value, datetime) else str(value)
