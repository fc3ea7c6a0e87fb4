"""Control plane under load: Deployments on simulated nodes, until all Pods are available and until all are deleted.

    python -m bench.plane [--nodes 1000] [--deployments 100] [--replicas 100] [--store sqlite|memory]

`ostinato up` runs in its own process; its total usage (API server, controllers, scheduler, nodes) is measured. For
comparison, kube-apiserver, etcd, kube-controller-manager, kube-scheduler and kwok 0.8 on two cores: of 10,000 Pods on
1,000 nodes 9,213 were available after 400 s; deleting them took 145 s; in total 757 s of CPU and 2.4 GB of memory.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ostinato.api.meta import LabelSelector, ObjectMeta
from ostinato.api.quantity import Quantity
from ostinato.client import Client, Config
from ostinato.client.views import MetadataOf
from ostinato.kinds.apps_v1 import Deployment, DeploymentSpec
from ostinato.kinds.core_v1 import Container, Node, Pod, PodSpec, PodTemplateSpec, ResourceRequirements

_TICKS = os.sysconf("SC_CLK_TCK")
_PATIENCE = 900.0


class Process:
    """Resource usage of a process."""

    def __init__(self, pid: int) -> None:
        self._directory = Path("/proc") / str(pid)

    def cpu(self) -> float:
        fields = (self._directory / "stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def memory(self, which: str = "VmRSS") -> float:
        """Return memory in MB."""
        for line in (self._directory / "status").read_text().splitlines():
            if line.startswith(which):
                return int(line.split()[1]) / 1024
        return 0.0


@contextmanager
def plane(nodes: int, store: str, directory: Path) -> Iterator[tuple[Process, Path]]:
    """Start `ostinato up` with this number of nodes."""
    state = directory / "state"
    command = [sys.executable, "-m", "ostinato.cli", "up", "--nodes", str(nodes), "--state", str(state)]
    command += [
        "--runtime",
        "simulated",
        "--listen",
        "127.0.0.1:0",
        *(["--store", "memory"] if store == "memory" else []),
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        if not process.stdout.readline():
            raise SystemExit("ostinato up did not start")
        yield Process(process.pid), state / "admin.kubeconfig"
    finally:
        process.terminate()
        process.wait(60)


def deployment(number: int, replicas: int) -> Deployment:
    labels = {"app": f"web-{number}"}
    container = Container(
        name="main",
        image="registry.example.com/web:1",
        resources=ResourceRequirements(requests={"cpu": Quantity("100m"), "memory": Quantity("64Mi")}),
    )
    template = PodTemplateSpec(metadata=ObjectMeta(labels=labels), spec=PodSpec(containers=[container]))
    return Deployment(
        metadata=ObjectMeta(name=f"web-{number}", labels={"bench": "plane"}),
        spec=DeploymentSpec(replicas=replicas, selector=LabelSelector(match_labels=labels), template=template),
    )


async def until(condition: Callable[[], Awaitable[tuple[bool, str]]], every: float = 1.0) -> float:
    """Wait for a condition and return the seconds; print its progress."""
    began = time.monotonic()
    while True:
        holds, said = await condition()
        took = time.monotonic() - began
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{took:6.1f} s  {said}      ")
        if holds:
            return took
        if took > _PATIENCE:
            raise SystemExit(f"timed out: {said}")
        await asyncio.sleep(every)


async def measure(client: Client, process: Process, options: argparse.Namespace) -> None:
    wanted = options.deployments * options.replicas

    async def joined() -> tuple[bool, str]:
        nodes = await client.list(Node)
        ready = sum(
            any(each.type == "Ready" and each.status == "True" for each in node.status.conditions) for node in nodes
        )
        return ready == options.nodes, f"{ready} nodes"

    async def available() -> tuple[bool, str]:
        found = await client.list(Deployment, labels="bench=plane")
        count = sum(each.status.available_replicas or 0 for each in found)
        return count == wanted, f"{count} available"

    async def gone() -> tuple[bool, str]:
        async for page in client.list(MetadataOf(Pod), page_size=1).pages():  # a whole list would be part of the load
            count = len(page.items) + (page.metadata.remaining_item_count or 0)
            return count == 0, f"{count} Pods left"
        return True, "no Pods left"

    print(f"{options.nodes} nodes joined in {await until(joined):.1f} s, {process.memory():.0f} MB")
    for title, act, condition in (
        ("available", _create(client, options), available),
        ("deleted", _delete(client, options), gone),
    ):
        cpu = process.cpu()
        began = time.monotonic()
        await act
        await until(condition)
        took, used = time.monotonic() - began, process.cpu() - cpu
        print(
            f"{wanted} Pods {title} in {took:.1f} s ({wanted / took:.0f}/s), "
            f"CPU {used:.1f} s ({used / wanted * 1000:.2f} ms a Pod), resident {process.memory():.0f} MB"
        )
    cpu = process.cpu()
    await asyncio.sleep(10)
    print(f"idle: {(process.cpu() - cpu) * 10:.1f} % of a core; peak memory {process.memory('VmHWM'):.0f} MB")


async def _create(client: Client, options: argparse.Namespace) -> None:
    await asyncio.gather(*(client.create(deployment(each, options.replicas)) for each in range(options.deployments)))


async def _delete(client: Client, options: argparse.Namespace) -> None:
    await asyncio.gather(
        *(client.delete(Deployment, f"web-{each}", propagation="Background") for each in range(options.deployments))
    )


async def _main(options: argparse.Namespace) -> None:
    with (
        tempfile.TemporaryDirectory() as temporary,
        plane(options.nodes, options.store, Path(temporary)) as (
            process,
            kubeconfig,
        ),
    ):
        async with Client.connect(Config.load(path=kubeconfig)) as client:
            await measure(client, process, options)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--deployments", type=int, default=100)
    parser.add_argument("--replicas", type=int, default=100)
    parser.add_argument("--store", choices=["sqlite", "memory"], default="sqlite")
    asyncio.run(_main(parser.parse_args()))


if __name__ == "__main__":
    main()
