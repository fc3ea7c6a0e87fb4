"""A client at a small steady rate beside other load: the latency of single requests and of cluster-wide lists.

    python -m bench.probe KUBECONFIG OUTPUT [--get 5] [--create 1] [--list 0.1]

- Rates are per second: gets of one ConfigMap, creates of ConfigMaps, each of which is deleted after, and lists of all
  Pods as JSON, one at a time. Answers are read, not decoded: the probe takes little from the load.
- A request is sent at its time even if an earlier one has no answer yet, except lists.
- OUTPUT has a line of JSON for each request: its start in seconds, what it was, milliseconds, bytes, and an error.
- Runs until SIGTERM.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import signal
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import IO

import msgspec

from ostinato.client import Client, Config
from ostinato.client.transport.protocol import Request, TransportError, path_of
from ostinato.manager.running import loop_factory

NAMESPACE = "probe"
GET, CREATE, DELETE, LIST = "get", "create", "delete", "list"


class Sample(msgspec.Struct):
    """A request: when it began (seconds of the monotonic clock), what it was and how long it took."""

    at: float
    what: str
    ms: float
    size: int = 0
    error: str = ""


class Probe:
    def __init__(self, client: Client, output: IO[bytes]) -> None:
        self._client = client
        self._output = output
        self._maps = path_of("api", "v1", "namespaces", NAMESPACE, "configmaps")
        self._tasks: set[asyncio.Task[None]] = set()

    async def prepare(self) -> None:
        await self._send("POST", "/api/v1/namespaces", _named("Namespace", NAMESPACE))
        await self._send("POST", self._maps, _named("ConfigMap", "subject"))

    async def run(self, get: float, create: float, lists: float) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._at_rate(get, lambda _: self._timed(GET, "GET", f"{self._maps}/subject")))
            group.create_task(self._at_rate(create, self._write))
            group.create_task(self._lists(lists))

    async def _write(self, number: int) -> None:
        name = f"probe-{number}"
        await self._timed(CREATE, "POST", self._maps, _named("ConfigMap", name))
        await self._timed(DELETE, "DELETE", f"{self._maps}/{name}")

    async def _lists(self, rate: float) -> None:
        while True:
            began = time.monotonic()
            await self._timed(LIST, "GET", "/api/v1/pods")
            await asyncio.sleep(max(0.0, 1 / rate - (time.monotonic() - began)))

    async def _at_rate(self, rate: float, act: Callable[[int], Awaitable[None]]) -> None:
        began = time.monotonic()
        for number in itertools.count():
            await asyncio.sleep(max(0.0, began + number / rate - time.monotonic()))
            task = asyncio.ensure_future(act(number))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _timed(self, what: str, method: str, path: str, body: bytes = b"") -> None:
        sample, began = Sample(time.monotonic(), what, 0.0), time.perf_counter()
        try:
            sample.size = await self._send(method, path, body)
        except (TransportError, OSError) as error:
            sample.error = f"{type(error).__name__}: {error}"[:200]
        sample.ms = (time.perf_counter() - began) * 1000
        self._output.write(msgspec.json.encode(sample) + b"\n")
        self._output.flush()

    async def _send(self, method: str, path: str, body: bytes = b"") -> int:
        headers = [("Accept-Encoding", "identity"), *([("Content-Type", "application/json")] if body else [])]
        request = Request(method, path, headers=headers, body=body)
        async with await self._client.transport.request(request) as answer:
            size = 0
            async for chunk in answer.chunks():
                size += len(chunk)
            if answer.status >= 300:
                raise TransportError(f"status {answer.status}")
            return size


def _named(kind: str, name: str) -> bytes:
    data = {"data": {"text": "x" * 900}} if kind == "ConfigMap" else {}
    return json.dumps({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, **data}).encode()


async def _main(options: argparse.Namespace) -> None:
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None
    loop.add_signal_handler(signal.SIGTERM, task.cancel)
    with options.output.open("ab") as output:
        async with Client.connect(Config.load(path=options.kubeconfig)) as client:
            probe = Probe(client, output)
            await probe.prepare()
            print("ready", flush=True)
            with contextlib.suppress(asyncio.CancelledError):
                await probe.run(options.get, options.create, options.list)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kubeconfig", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--get", type=float, default=5.0)
    parser.add_argument("--create", type=float, default=1.0)
    parser.add_argument("--list", type=float, default=0.1)
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(_main(parser.parse_args()))


if __name__ == "__main__":
    main()
