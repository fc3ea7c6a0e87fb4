"""Control plane under load: Deployments on simulated nodes, until all Pods are available and until all are deleted.

    python -m bench.plane [--nodes 1000] [--deployments 100] [--replicas 100] [--store sqlite|memory] [--processes N]
    python -m bench.plane --peer default|raised [--real PROGRAM] [--cap 400]

- `ostinato up` runs in its own processes; the usage of all of them (API server, controllers, scheduler, nodes) counts.
- `--peer`: the same work on kube-apiserver, etcd, kube-controller-manager, kube-scheduler and kwok. `default` has the
  client rate limits of their own defaults, `raised` has 1,000 requests a second. `python -m bench.peers` builds them.
- `--cap`: seconds after which each of the two steps is given up; what was reached by then is reported.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from bench import kwok, peers
from bench.usage import Peak, Processes
from ostinato.api.meta import LabelSelector, ObjectMeta
from ostinato.api.quantity import Quantity
from ostinato.client import Client, Config
from ostinato.client.views import MetadataOf
from ostinato.kinds.apps_v1 import Deployment, DeploymentSpec
from ostinato.kinds.core_v1 import Container, Node, Pod, PodSpec, PodTemplateSpec, ResourceRequirements

OURS, DEFAULT, RAISED = "ostinato", "default", "raised"
REST = 10.0  # seconds of the measurement at rest
SETTLING = 5.0  # seconds before it
_PATIENCE = 900.0
_EVERY = 0.5


class Load(msgspec.Struct, frozen=True):
    """The work: Deployments of the same size."""

    nodes: int
    deployments: int
    replicas: int

    @property
    def pods(self) -> int:
        return self.deployments * self.replicas


class Step(msgspec.Struct):
    """What one step took. `reached` is less than the Pods if it was given up after `seconds`."""

    seconds: float
    reached: int
    cpu: float
    programs: dict[str, float] = {}  # `cpu` of each


class Measured(msgspec.Struct):
    """The run of one contender."""

    contender: str
    nodes: int
    pods: int
    joined: float  # seconds from the start until all nodes were ready
    rest: float | None  # per cent of a core, of the nodes without Pods; None: not measured
    available: Step
    deleted: Step
    memory: float  # MB at the worst, of all processes together


# The contenders

Contender = contextlib.AbstractContextManager[tuple[list[int], Path]]


@contextmanager
def ours(nodes: int, directory: Path, *options: str) -> Iterator[tuple[list[int], Path]]:
    """Start `ostinato up`; yield its PID and kubeconfig."""
    state = directory / "state"
    command = [sys.executable, "-m", "ostinato.cli", "up", "--nodes", str(nodes), "--state", str(state)]
    command += ["--runtime", "simulated", "--listen", "127.0.0.1:0", *options]
    with (directory / "up.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        assert process.stdout is not None
        if not process.stdout.readline():
            raise SystemExit(f"ostinato up did not start: {(directory / 'up.log').read_text()[-2000:]}")
        yield [process.pid], state / "admin.kubeconfig"
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def contender(
    name: str, nodes: int, directory: Path, real: str | None = None, options: tuple[str, ...] = ()
) -> Contender:
    """Start a contender by its name. Raises peers.Missing."""
    if name == OURS:
        return ours(nodes, directory, *options)
    return kwok.started(peers.kubernetes(real), nodes, directory, raised=name == RAISED)


# The work


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


async def create(client: Client, load: Load) -> None:
    await _each(load.deployments, lambda number: client.create(deployment(number, load.replicas)))


async def delete(client: Client, load: Load) -> None:
    await _each(load.deployments, lambda number: client.delete(Deployment, f"web-{number}", propagation="Background"))


async def _each(count: int, act: Callable[[int], Awaitable[object]], at_once: int = 16) -> None:
    numbers = iter(range(count))

    async def some() -> None:
        for number in numbers:
            await act(number)

    async with asyncio.TaskGroup() as group:
        for _ in range(at_once):
            group.create_task(some())


async def count_pods(client: Client) -> int:
    """Count with a list of one: a whole list would be part of the load."""
    async for page in client.list(MetadataOf(Pod), page_size=1).pages():
        return len(page.items) + (page.metadata.remaining_item_count or 0)
    return 0


async def count_available(client: Client) -> int:
    found = await client.list(Deployment, labels="bench=plane")
    return sum(each.status.available_replicas or 0 for each in found)


async def count_ready(client: Client) -> int:
    """Count the nodes that take Pods: ready, and without the taint of new nodes."""

    def is_ready(node: Node) -> bool:
        ready = any(each.type == "Ready" and each.status == "True" for each in node.status.conditions)
        return ready and not any(each.key == "node.kubernetes.io/not-ready" for each in node.spec.taints)

    return sum(map(is_ready, await client.list(Node)))


async def until(count: Callable[[], Awaitable[int]], wanted: int, cap: float, every: float = _EVERY) -> int:
    """Wait for a count, at most this long; return the last one. `every`: seconds between two counts."""
    began = time.monotonic()
    while True:
        found = await count()
        took = time.monotonic() - began
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{took:6.1f} s  {found} of {wanted}      ")
        if found == wanted or took > cap:
            return found
        await asyncio.sleep(every)


async def join(client: Client, nodes: int) -> float:
    """Wait until all nodes are ready; return the seconds."""
    began = time.monotonic()
    ready = await until(lambda: count_ready(client), nodes, _PATIENCE)
    if ready != nodes:
        raise SystemExit(f"{ready} of {nodes} nodes became ready")
    return time.monotonic() - began


async def measure(
    client: Client,
    name: str,
    pids: list[int],
    load: Load,
    *,
    cap: float = _PATIENCE,
    rests: bool = True,
    every: float = _EVERY,
) -> Measured:
    """Measure both steps. `rests`: and the nodes at rest, before them. `every`: seconds between two counts of Pods."""
    usage = Processes(pids)
    joined = await join(client, load.nodes)
    rest = await at_rest(usage) if rests else None

    async def step(act: Awaitable[None], count: Callable[[], Awaitable[int]], wanted: int) -> Step:
        cpu, programs, began = usage.cpu(), usage.cpu_by_program(), time.monotonic()
        await act
        reached = await until(count, wanted, cap, every)
        seconds, after = time.monotonic() - began, usage.cpu_by_program()
        used = {name: spent - programs.get(name, 0.0) for name, spent in after.items()}
        return Step(seconds=seconds, reached=reached, cpu=usage.cpu() - cpu, programs=used)

    with Peak(usage.memory) as peak:
        available = await step(create(client, load), lambda: count_available(client), load.pods)
        existing = await count_pods(client)
        deleted = await step(delete(client, load), lambda: count_pods(client), 0)
    deleted.reached = existing - deleted.reached
    return Measured(
        contender=name,
        nodes=load.nodes,
        pods=load.pods,
        joined=joined,
        rest=rest,
        available=available,
        deleted=deleted,
        memory=peak.megabytes,
    )


async def at_rest(usage: Processes) -> float:
    """Return the per cent of a core that is used while nothing happens."""
    await asyncio.sleep(SETTLING)
    cpu, began = usage.cpu(), time.monotonic()
    await asyncio.sleep(REST)
    return (usage.cpu() - cpu) / (time.monotonic() - began) * 100


def run(
    name: str,
    load: Load,
    *,
    real: str | None = None,
    cap: float = _PATIENCE,
    rests: bool = True,
    options: tuple[str, ...] = (),
) -> Measured:
    """Start a contender, measure it and stop it. `options`: of `ostinato up`. Raises peers.Missing."""

    async def connected(pids: list[int], kubeconfig: Path) -> Measured:
        async with Client.connect(Config.load(path=kubeconfig)) as client:
            return await measure(client, name, pids, load, cap=cap, rests=rests)

    with (
        tempfile.TemporaryDirectory() as temporary,
        contender(name, load.nodes, Path(temporary), real, options) as started,
    ):
        return asyncio.run(connected(*started))


def rest(name: str, nodes: int, *, real: str | None = None) -> float:
    """Start a contender without work; return the per cent of a core that it uses at rest. Raises peers.Missing."""

    async def connected(pids: list[int], kubeconfig: Path) -> float:
        async with Client.connect(Config.load(path=kubeconfig)) as client:
            await join(client, nodes)
            return await at_rest(Processes(pids))

    with tempfile.TemporaryDirectory() as temporary, contender(name, nodes, Path(temporary), real) as started:
        return asyncio.run(connected(*started))


def _print(each: Measured) -> None:
    rest = f", at rest {each.rest:.1f} % of a core" if each.rest is not None else ""
    print(f"{each.contender}: {each.nodes} nodes joined in {each.joined:.1f} s{rest}")
    for title, step in (("available", each.available), ("deleted", each.deleted)):
        print(
            f"{step.reached} of {each.pods} Pods {title} in {step.seconds:.1f} s "
            f"({step.reached / step.seconds:.0f}/s), "
            f"CPU {step.cpu:.1f} s ({step.cpu / max(step.reached, 1) * 1000:.2f} ms a Pod)"
        )
        for name, cpu in sorted(step.programs.items(), key=lambda each: -each[1]):
            print(f"    {name}: {cpu:.1f} s")
    print(f"peak memory {each.memory:.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--deployments", type=int, default=100)
    parser.add_argument("--replicas", type=int, default=100)
    parser.add_argument("--store", choices=["sqlite", "memory"], default="sqlite")
    parser.add_argument("--processes", type=int, help="option of ostinato up (default: its own)")
    parser.add_argument("--peer", choices=[DEFAULT, RAISED], help="measure Kubernetes with kwok instead")
    parser.add_argument("--real", help="program that starts Kubernetes (default: that of bench.peers)")
    parser.add_argument("--cap", type=float, default=_PATIENCE, help="seconds after which a step is given up")
    options = parser.parse_args()
    load = Load(options.nodes, options.deployments, options.replicas)
    try:
        more = ("--store", "memory") if options.store == "memory" else ()
        more += ("--processes", str(options.processes)) if options.processes else ()
        _print(run(options.peer or OURS, load, real=options.real, cap=options.cap, options=more))
    except peers.Missing as error:
        raise SystemExit(f"bench.plane: {error}") from None


if __name__ == "__main__":
    main()
