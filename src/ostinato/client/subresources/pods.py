"""Pods: what can be done with a running one besides reading and writing it.

    await client.pods.log("web-0", tail_lines=20)
    async for line in client.pods.follow("web-0"): ...
    done = await client.pods.run("web-0", ["cat", "/etc/hostname"])
    await client.pods.evict("web-0")

A Pod is named as everywhere: by a name in the client's namespace, with `namespace=`, or by anything that has both.
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
    - `container`: needed where a Pod has several.
    - `previous`: of the run before this one. Defaults to False.
    - `tail_lines`, `since_seconds`, `since_time`, `limit_bytes`: how much. Defaults to all.
    - `timestamps`: begin each line with its time. Defaults to False.
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
        """What a container has written so far."""
        call = self._log_call(self._target(name, namespace, "log"), options)
        response = await self._requests.exchange.open(call)
        return (await response.read()).decode(errors="replace")

    async def follow(
        self, name: Key, *, namespace: str | None = None, **options: Unpack[LogOptions]
    ) -> AsyncIterator[str]:
        """The lines that a container writes, from now to its end. Close the iterator to stop before that."""
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
        """Run a command in a container. A terminal has one stream for all that is written."""
        if isinstance(command, str) or not command:
            raise ValueError(f"a command is a list of words, got {command!r}; ['sh', '-c', …] runs a line")
        query = [("command", word) for word in command]
        return await self._process(self._target(name, namespace, "exec"), query, container, stdin=stdin, tty=tty)

    async def attach(
        self, name: Key, *, namespace: str | None = None, container: str = "", stdin: bool = False, tty: bool = False
    ) -> Process:
        """The streams of what a container runs already."""
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
        """Run a command to its end. `stdin` is all of its input."""
        async with await self.exec(
            name, command, namespace=namespace, container=container, stdin=stdin is not None
        ) as started:
            return await (started.complete() if stdin is None else started.communicate(stdin))

    async def port_forward(self, name: Key, port: int, *, namespace: str | None = None) -> PortForward:
        """A connection to a port of a Pod."""
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
        """Delete a Pod as far as its disruption budgets allow; TooManyRequests if they do not."""
        from ostinato.kinds.policy_v1 import Eviction  # noqa: PLC0415 - loads only where it is needed

        options = DeleteOptions(
            dry_run=["All"] if dry_run else [],
            grace_period_seconds=grace_period,
            preconditions=Preconditions(uid=uid) if uid else None,
        )
        target = self._target(name, namespace, "eviction")
        eviction = Eviction(metadata=_metadata(target), delete_options=options)
        await self._requests.send("POST", target, Content(body=to_json(eviction)))

    async def bind(self, name: Key, node: str, *, namespace: str | None = None, uid: str = "") -> None:
        """Let a Pod run on a node: what schedulers do. With `uid`, only if it is still the same Pod."""
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
        raise TypeError(f"unknown option {min(unknown)!r}; there are {', '.join(_LOG_PARAMETERS)}")
    return [(_LOG_PARAMETERS[name], _log_text(value)) for name, value in options.items()]


def _log_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(Time.of(value)) if isinstance(value, datetime) else str(value)
