"""Composites: `ostinato meta` and `@composite` beside metacontroller, with the same hook on the same API server.

    python -m bench.composites --original DIR/bin/metacontroller [--parents 1000] [--rounds 2]

- The parents exist before a contender starts. It creates two ConfigMaps for each and writes its status. The rate is
  that between the first status and the last call of the hook: changed children and statuses cause further syncs.
  "start" is the time until the first. CPU and memory are those of the contender's process, its start included.
- The hook is one process that answers over kept-alive HTTP. `@composite` calls the same function in-process.
- metacontroller runs without its client's rate limit (5 requests a second by default), once with each apply strategy.
- Contenders alternate; each has a namespace of its own. The best round counts.
"""

from __future__ import annotations

import argparse
import asyncio
import compileall
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from bench.operators.process import OperatorProcess
from ostinato.client import Client, Config, Unstructured
from ostinato.frontends.composite.meta.definitions import definitions

ROOT = Path(__file__).parents[1]
PARENT = Unstructured.of("bench.example.dev/v1", "Parent")
_SECONDS = 600


class Measured(NamedTuple):
    start: float  # seconds until the first status
    rate: float  # parents a second
    cpu: float  # milliseconds of processor a parent
    memory: float  # megabytes, at the worst

    def or_better(self, other: Measured) -> Measured:
        lower = [min(self[place], other[place]) for place in (0, 2, 3)]
        return Measured(lower[0], max(self.rate, other.rate), *lower[1:])


def children(parent: dict[str, Any]) -> list[dict[str, Any]]:
    """The function of all contenders."""
    name = parent["metadata"]["name"]
    labels = {"of": name}
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": f"{name}-{number}", "labels": labels},
            "data": {"size": str(parent["spec"]["size"]), "text": "x" * 200},
        }
        for number in range(2)
    ]


def definition() -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "parents.bench.example.dev"},
        "spec": {
            "group": "bench.example.dev",
            "names": {"kind": "Parent", "plural": "parents", "singular": "parent", "listKind": "ParentList"},
            "scope": "Namespaced",
            "versions": [{**version, "schema": {"openAPIV3Schema": schema}}],
        },
    }


def composite(contender: str, url: str) -> dict[str, Any]:
    return {
        "apiVersion": "metacontroller.k8s.io/v1alpha1",
        "kind": "CompositeController",
        "metadata": {"name": contender, "labels": {"contender": contender}},
        "spec": {
            "parentResource": {
                "apiVersion": "bench.example.dev/v1",
                "resource": "parents",
                "labelSelector": {"matchLabels": {"contender": contender}},
            },
            "childResources": [{"apiVersion": "v1", "resource": "configmaps", "updateStrategy": {"method": "InPlace"}}],
            "hooks": {"sync": {"version": "v1", "webhook": {"url": url}}},
        },
    }


def serve_hook() -> None:
    """Answer `POST /` for ever; prints the port. `GET /` returns the time of the last request."""

    last = 0.0  # time of the last request

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal last
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                if head.startswith(b"GET"):
                    writer.write(b"%f\n" % last)
                    writer.close()
                    return
                last = time.monotonic()
                length = next(
                    int(line.split(b":")[1])
                    for line in head.split(b"\r\n")
                    if line.lower().startswith(b"content-length")
                )
                document = json.loads(await reader.readexactly(length))
                answer = {"children": children(document["parent"]), "status": {"done": True}}
                body = json.dumps(answer).encode()
                start = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
                writer.write(start + body)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def main() -> None:
        server = await asyncio.start_server(connected, "127.0.0.1", 0)
        print(server.sockets[0].getsockname()[1], flush=True)
        await server.serve_forever()

    asyncio.run(main())


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def served(*command: str) -> Iterator[str]:
    """Run a process, and yield its first line."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline()
        finally:
            process.terminate()


def command_of(contender: str, kubeconfig: Path, original: Path | None) -> list[str]:
    python = [sys.executable, "-m", "ostinato.cli"]
    if contender.startswith("ostinato-meta"):
        return [*python, "meta", "--kubeconfig", str(kubeconfig), f"--target-label-selector=contender={contender}"]
    if contender.startswith("ostinato-composite"):
        return [*python, "run", "bench/composite_function.py", "--kubeconfig", str(kubeconfig)]
    strategy = "server-side-apply" if "ssa" in contender else "dynamic-apply"
    return [
        str(original),
        f"-kubeconfig={kubeconfig}",
        f"-target-label-selector=contender={contender}",
        "-client-go-qps=100000",
        "-client-go-burst=100000",
        f"-apply-strategy={strategy}",
        f"-metrics-address=127.0.0.1:{free_port()}",
        f"-health-probe-bind-address=127.0.0.1:{free_port()}",
    ]


async def quiet(url: str) -> float:
    """Wait until the hook gets no more requests; return the time of the last one."""
    while True:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rstrip("/").rpartition(":")[2]))
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        last = float(await reader.readline())
        writer.close()
        if time.monotonic() - last > 1:
            return last
        await asyncio.sleep(0.2)


@asynccontextmanager
async def filled(client: Client, namespace: str, contender: str, count: int) -> AsyncIterator[None]:
    await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})

    async def create(number: int) -> None:
        name = f"p{number}"
        metadata = {"name": name, "namespace": namespace, "labels": {"contender": contender}}
        spec = {"size": number, "selector": {"matchLabels": {"of": name}}}
        await client.create(
            {"apiVersion": "bench.example.dev/v1", "kind": "Parent", "metadata": metadata, "spec": spec}
        )

    for start in range(0, count, 50):
        await asyncio.gather(*(create(number) for number in range(start, min(start + 50, count))))
    try:
        yield
    finally:
        for kind in (PARENT, Unstructured.of("v1", "ConfigMap")):
            await client.delete_all_of(kind, namespace=namespace)


async def all_done(client: Client, namespace: str, count: int) -> tuple[float, float]:
    """Wait until all parents have their status; return when the first and the last had it."""
    done: set[str] = set()
    first = 0.0
    async with client.watch(PARENT, namespace=namespace) as events:
        async for event in events:
            if (event.object.get("status") or {}).get("done"):
                done.add(event.object["metadata"]["name"])
                first = first or time.monotonic()
            if len(done) == count:
                break
    return first, time.monotonic()


async def measured(
    client: Client, contender: str, url: str, options: argparse.Namespace, kubeconfig: Path, n: int
) -> Measured:
    namespace, log = f"bench-{n}", kubeconfig.parent / f"{contender}-{n}.log"
    async with filled(client, namespace, contender, options.parents):
        if "composite" not in contender:
            await client.apply(composite(contender, url), force=True, field_manager="bench")
        command = command_of(contender, kubeconfig, options.original)
        began = time.monotonic()
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "OSTINATO_BENCH_CONTENDER": contender}
        async with OperatorProcess(command, environment, log) as process:
            async with asyncio.timeout(_SECONDS):
                first, last = await all_done(client, namespace, options.parents)
                if "composite" not in contender:
                    last = max(last, await quiet(url))
            cpu = process.processor_seconds() * 1000 / options.parents
            figures = Measured(first - began, (options.parents - 1) / (last - first), cpu, process.most_memory())
        if "composite" not in contender:
            await client.delete(Unstructured.of("metacontroller.k8s.io/v1alpha1", "CompositeController"), contender)
    return figures


async def compare(options: argparse.Namespace, kubeconfig: Path, url: str) -> dict[str, Measured]:
    contenders = ["ostinato-meta", "ostinato-composite"]
    if options.original is not None:
        contenders = ["metacontroller", "metacontroller-ssa", *contenders]
    best: dict[str, Measured] = {}
    async with Client.connect(Config.load(path=kubeconfig)) as client:
        await client.apply(definition(), force=True, field_manager="bench")
        for each in definitions():
            await client.apply(each, force=True, field_manager="bench")
        await asyncio.sleep(2)
        for n in range(options.rounds):
            for place, contender in enumerate(contenders):
                figures = await measured(client, contender, url, options, kubeconfig, n * len(contenders) + place)
                best[contender] = figures.or_better(best.get(contender, figures))
    return best


def main() -> None:
    if sys.argv[1:] == ["hook"]:
        serve_hook()
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--original", type=Path, help="metacontroller's binary")
    parser.add_argument("--parents", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    compileall.compile_dir(ROOT / "src", quiet=2, workers=0)  # as of an installed package
    with tempfile.TemporaryDirectory() as directory:
        state = Path(directory) / "state"
        up = (
            sys.executable,
            "-m",
            "ostinato.cli",
            "up",
            "--state",
            str(state),
            "--listen",
            "127.0.0.1:0",
            "--nodes",
            "0",
        )
        with served(*up), served(sys.executable, "-m", "bench.composites", "hook") as port:
            best = asyncio.run(compare(options, state / "admin.kubeconfig", f"http://127.0.0.1:{port.strip()}/"))
    print(f"{'':20} {'start s':>8} {'parents/s':>10} {'CPU ms':>8} {'MB':>6}")
    for name, best_of in best.items():
        print(f"{name:20} {best_of.start:8.1f} {best_of.rate:10.0f} {best_of.cpu:8.2f} {best_of.memory:6.0f}")


if __name__ == "__main__":
    main()
