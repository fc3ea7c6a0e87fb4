"""Node with processes as containers: time until a Deployment is available, and the cost of idle Pods.

    python -m bench.node [--rounds 20] [--pods 100] [--seconds 20] [--real PROGRAM]

- `--real`: a program that starts Kubernetes with kubelet and containerd, measured in the same rounds. `PROGRAM up DIR
  --node` writes `admin.kubeconfig` and `pids` (lines of PID and name) to DIR and has a node `localhost`; `PROGRAM down
  DIR` stops it.
- The idle measurement covers the node agent (`ostinato node` in its own process, or kubelet with containerd) and,
  separately, the shims.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import NamedTuple

from bench.usage import Process
from ostinato.api.meta import LabelSelector, ObjectMeta
from ostinato.client import Client, Config, is_deleted
from ostinato.kinds.apps_v1 import Deployment, DeploymentSpec
from ostinato.kinds.core_v1 import Container, Node, PodSpec, PodTemplateSpec, ServiceAccount

_PATIENCE = 600.0
_SCRIPT = "trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done"


class Contender(NamedTuple):
    """A control plane with one node, and the processes of its agent."""

    name: str
    node: str
    kubeconfig: Path
    agent: Callable[[], list[int]]
    keepers: Callable[[], list[int]]


def deployment(name: str, replicas: int) -> Deployment:
    labels = {"app": name}
    container = Container(name="main", image="busybox:1", command=["sh", "-c", _SCRIPT])
    pod = PodSpec(containers=[container], termination_grace_period_seconds=2)
    template = PodTemplateSpec(metadata=ObjectMeta(labels=labels), spec=pod)
    return Deployment(
        metadata=ObjectMeta(name=name),
        spec=DeploymentSpec(replicas=replicas, selector=LabelSelector(match_labels=labels), template=template),
    )


# The contenders


@contextmanager
def ours(directory: Path, *, alone: bool) -> Iterator[Contender]:
    """Start `ostinato up` with one node. `alone`: run its agent in a separate process."""
    state, node = directory / "state", directory / "node"
    up = ["up", "--state", str(state), "--listen", "127.0.0.1:0", "--runtime", "process"]
    with _ready(*up, "--nodes", "0" if alone else "1") as plane, ExitStack() as stack:
        agent = plane
        kubeconfig = state / "admin.kubeconfig"
        if alone:
            join = ["node", "--kubeconfig", str(kubeconfig), "--name", "node-1", "--state", str(node)]
            agent = stack.enter_context(_ready(*join, "--listen", "127.0.0.1:0"))
        found = (node if alone else state).rglob
        yield Contender(
            "ostinato",
            "node-1",
            kubeconfig,
            lambda: [agent.pid],
            lambda: [json.loads(each.read_text())["shim"] for each in found("state.json")],
        )


@contextmanager
def _ready(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen([sys.executable, "-m", "ostinato.cli", *arguments], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        if "ready" not in process.stdout.readline():
            raise SystemExit(f"ostinato {arguments[0]} did not start")
        yield process
    finally:
        process.terminate()
        process.wait(60)


@contextmanager
def real(program: Path, directory: Path) -> Iterator[Contender]:
    subprocess.run([program, "up", directory, "--node"], check=True, stdout=subprocess.DEVNULL)
    try:
        pids = {name: int(pid) for pid, name in map(str.split, (directory / "pids").read_text().splitlines())}
        yield Contender(
            "kubelet and containerd",
            "localhost",
            directory / "admin.kubeconfig",
            lambda: [pids["kubelet"], pids["containerd"]],
            lambda: _started_with("containerd-shim", str(directory)),
        )
    finally:
        subprocess.run([program, "down", directory], check=True, stdout=subprocess.DEVNULL)


def _started_with(*words: str) -> list[int]:
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = each.read_text()
        except OSError:  # it has ended
            continue
        if all(word in command for word in words):
            found.append(int(each.parent.name))
    return found


@asynccontextmanager
async def connected(contender: Contender) -> AsyncIterator[Client]:
    """Wait until the node is ready."""
    async with Client.connect(Config.load(path=contender.kubeconfig, namespace="default")) as client:
        await client.wait_for(Node, contender.node, "Ready", timeout=_PATIENCE)
        await client.wait_for(ServiceAccount, "default", lambda found: found is not None, timeout=_PATIENCE)
        yield client


# From apply to available


async def available(client: Client, name: str, replicas: int) -> float:
    """Return the seconds until a new Deployment is available."""
    began = time.monotonic()
    await client.create(deployment(name, replicas))

    def holds(found: Deployment | None) -> bool:
        return found is not None and found.status.available_replicas == replicas

    await client.wait_for(Deployment, name, holds, timeout=_PATIENCE)
    return time.monotonic() - began


async def gone(client: Client, name: str) -> None:
    await client.delete(Deployment, name, propagation="Foreground")
    await client.wait_for(Deployment, name, is_deleted, timeout=_PATIENCE)  # and so are its Pods


async def race(contenders: Sequence[Contender], rounds: int) -> None:
    took: dict[str, list[float]] = {each.name: [] for each in contenders}
    async with AsyncExitStack() as stack:
        clients = {each.name: await stack.enter_async_context(connected(each)) for each in contenders}
        for number in range(rounds + 1):
            for name, client in clients.items():
                seconds = await available(client, f"web-{number}", 3)
                await gone(client, f"web-{number}")
                if number:  # the first is to warm up
                    took[name].append(seconds)
    print(f"\na Deployment of 3 Pods, from apply to available, {rounds} rounds")
    reference = _percentile(took[contenders[-1].name], 50)
    for name, rounds_of_one in took.items():
        half, most = _percentile(rounds_of_one, 50), _percentile(rounds_of_one, 99)
        ratio = f"   {reference / half:5.2f} x {contenders[-1].name}" if len(contenders) > 1 else ""
        print(f"  {name:<24} p50 {half:6.3f} s   p99 {most:6.3f} s{ratio}")


def _percentile(values: Sequence[float], percent: int) -> float:
    """Return the smallest value that is not exceeded by this percentage of the values."""
    return sorted(values)[math.ceil(len(values) * percent / 100) - 1]


# At rest


async def rest(contender: Contender, pods: int, seconds: float) -> None:
    async with connected(contender) as client:
        before = [Process(pid).memory() for pid in contender.agent()]
        took = await available(client, "many", pods)
        await asyncio.sleep(5)  # what follows a start is over
        agents = [Process(pid) for pid in contender.agent()]
        began = sum(each.cpu() for each in agents)
        await asyncio.sleep(seconds)
        used = (sum(each.cpu() for each in agents) - began) / seconds
        memory = sum(each.memory() for each in agents)
        keepers = contender.keepers()
        print(
            f"  {contender.name:<24} available after {took:5.1f} s; agent: {used:6.2%} of a core, "
            f"{memory:4.0f} MB ({sum(before):.0f} before); {len(keepers)} keepers: {sum(map(_share, keepers)):4.0f} MB"
        )
        await gone(client, "many")


def _share(pid: int) -> float:
    """Return the proportional set size of a process in MB."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--pods", type=int, default=100, help="number of idle Pods; 0 skips that part")
    parser.add_argument("--seconds", type=float, default=20.0, help="length of the idle measurement")
    parser.add_argument("--real", type=Path, help="program that starts Kubernetes with a node")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary, ExitStack() as stack:
        directory = Path(temporary)
        others = [stack.enter_context(real(options.real, directory / "real"))] if options.real else []
        if not others:
            print("skipped kubelet: give --real PROGRAM", file=sys.stderr)
        with ours(directory / "together", alone=False) as contender:
            asyncio.run(race([contender, *others], options.rounds))
        if options.pods:
            print(f"\n{options.pods} Pods on one node, idle for {options.seconds:g} s")
            with ours(directory / "apart", alone=True) as contender:
                asyncio.run(rest(contender, options.pods, options.seconds))
            for other in others:
                asyncio.run(rest(other, options.pods, options.seconds))


if __name__ == "__main__":
    main()
