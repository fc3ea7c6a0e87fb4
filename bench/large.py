"""A large cluster on one machine: 50,000 Pods on 5,000 nodes, with the latency of the API while it happens.

    python -m bench.large [--nodes 5000] [--deployments 500] [--replicas 100] [--results FILE]

- `ostinato up` with simulated nodes and its defaults. Deployments are created; when all Pods are available they stay so
  for a while, and are deleted.
- `bench.probe` runs beside it in its own process, over HTTPS: gets, creates and deletes of single objects, and
  cluster-wide lists of all Pods. Kubernetes' own objectives are 1 s for single objects and 30 s for cluster-wide lists,
  at the 99th percentile.
- Nothing may be lost: every Pod is running, on a node, and is the same Pod as when it became available.
- Needs about 12 GB of memory for 50,000 Pods. Writes JSON, by default to bench/results/large.json.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from bench import plane, probe
from bench.plane import Load
from bench.suite import machine
from bench.suite.results import RESULTS, Machine, Origin, rounded
from bench.usage import Peak, Processes
from ostinato.client import Client, Config
from ostinato.client.transport.protocol import Request

FILE = RESULTS / "large.json"
WINDOW = 10.0  # seconds of one point of the latency plot
STEADY = 30.0
OBJECTIVES = {probe.GET: 1000.0, probe.CREATE: 1000.0, probe.DELETE: 1000.0, probe.LIST: 30_000.0}  # ms
_EVERY = 2.0
_PATIENCE = 3600.0


class Latency(msgspec.Struct):
    """Of one sort of requests, in milliseconds."""

    count: int
    errors: int
    p50: float
    p99: float
    most: float


class Point(msgspec.Struct):
    """The state at one time: seconds from the creation, Pods there and available, slowest request of the window."""

    at: float
    pods: int
    available: int
    slowest: dict[str, float] = {}


class Large(msgspec.Struct, kw_only=True):
    """The run, as it is stored."""

    origin: Origin
    machine: Machine
    nodes: int
    pods: int
    joined: float
    available: float  # seconds until all were
    deleted: float
    cpu: float  # seconds, of all processes, for both, with the heartbeats and the probe meanwhile
    rest: float | None = None  # per cent of a core between both: heartbeats and the probe
    memory: float  # MB at the worst
    lost: int  # Pods that were not running, or not the same, at the end of the steady phase
    most_on_a_node: int
    latencies: dict[str, Latency]
    points: list[Point]


@contextmanager
def probing(kubeconfig: Path, output: Path) -> Iterator[None]:
    command = [sys.executable, "-m", "bench.probe", str(kubeconfig), str(output)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        if not process.stdout.readline():
            raise SystemExit("bench.probe did not start")
        yield
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Watching:
    """Counts Pods while a step runs."""

    def __init__(self, client: Client, began: float) -> None:
        self.points: list[Point] = []
        self._client = client
        self._began = began

    async def until(self, available: int | None = None, pods: int | None = None, seconds: float = _PATIENCE) -> None:
        """Record the counts until one is reached, at most this long. Raises TimeoutError if it is not reached."""
        end = time.monotonic() + seconds
        while True:
            point = Point(
                at=time.monotonic() - self._began,
                pods=await plane.count_pods(self._client),
                available=await plane.count_available(self._client),
            )
            self.points.append(point)
            print(f"{point.at:7.1f} s {point.pods:>7} Pods {point.available:>7} available", file=sys.stderr, flush=True)
            if available == point.available or pods == point.pods:
                return
            if time.monotonic() > end:
                if available is None and pods is None:
                    return
                raise TimeoutError(f"{point.available} available, {point.pods} Pods after {seconds:g} s")
            await asyncio.sleep(_EVERY)


class _Meta(msgspec.Struct):
    uid: str


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _Status(msgspec.Struct):
    phase: str = ""


class _Pod(msgspec.Struct):
    metadata: _Meta
    spec: _Spec
    status: _Status


class _PodList(msgspec.Struct):
    items: list[_Pod]


async def running(client: Client) -> dict[str, str]:
    """Return the node of each running Pod, by uid."""
    async with await client.transport.request(Request("GET", "/api/v1/pods", timeout=300)) as answer:
        found = msgspec.json.decode(await answer.read(), type=_PodList)
    return {each.metadata.uid: each.spec.node_name for each in found.items if each.status.phase == "Running"}


async def measure(client: Client, pids: Sequence[int], load: Load, kubeconfig: Path, samples: Path) -> Large:
    usage = Processes(pids)
    began = time.monotonic()
    await plane.until(lambda: plane.count_ready(client), load.nodes, _PATIENCE)
    joined = time.monotonic() - began
    with Peak(usage.memory) as peak, probing(kubeconfig, samples):
        cpu, began = usage.cpu(), time.monotonic()
        watching = Watching(client, began)
        await plane.create(client, load)
        await watching.until(available=load.pods)
        available, cpu = time.monotonic() - began, usage.cpu() - cpu
        first = await running(client)
        used, resting = usage.cpu(), time.monotonic()
        await watching.until(seconds=STEADY)
        rest = (usage.cpu() - used) / (time.monotonic() - resting) * 100
        last = await running(client)
        used, deleting = usage.cpu(), time.monotonic()
        await plane.delete(client, load)
        await watching.until(pods=0)
        deleted = time.monotonic() - deleting
        cpu += usage.cpu() - used
    taken = read(samples)
    return Large(
        origin=machine.origin(),
        machine=machine.describe(),
        nodes=load.nodes,
        pods=load.pods,
        joined=joined,
        available=available,
        deleted=deleted,
        cpu=cpu,
        rest=rest,
        memory=peak.megabytes,
        lost=load.pods - len(set(first) & set(last)),
        most_on_a_node=max(Counter(last.values()).values(), default=0),
        latencies=latencies(taken),
        points=thinned(watching.points, taken, began),
    )


def read(samples: Path) -> list[probe.Sample]:
    return [msgspec.json.decode(line, type=probe.Sample) for line in samples.read_bytes().splitlines()]


def latencies(taken: Sequence[probe.Sample]) -> dict[str, Latency]:
    found = {}
    for what in OBJECTIVES:
        times = sorted(each.ms for each in taken if each.what == what and not each.error)
        if times:
            errors = sum(each.what == what and bool(each.error) for each in taken)
            p50, p99 = times[len(times) // 2], times[min(len(times) - 1, len(times) * 99 // 100)]
            found[what] = Latency(len(times), errors, p50, p99, times[-1])
    return found


def thinned(points: Sequence[Point], taken: Sequence[probe.Sample], began: float) -> list[Point]:
    """Return one point per window, with the slowest request of each sort that began in it."""
    made: dict[int, Point] = {}
    for point in points:
        made[int(point.at // WINDOW)] = point
    for window, point in made.items():
        for each in taken:
            if int((each.at - began) // WINDOW) == window:
                point.slowest[each.what] = max(each.ms, point.slowest.get(each.what, 0.0))
    return [made[each] for each in sorted(made)]


async def _main(pids: list[int], kubeconfig: Path, load: Load, samples: Path) -> Large:
    async with Client.connect(Config.load(path=kubeconfig)) as client:
        return await measure(client, pids, load, kubeconfig, samples)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--deployments", type=int, default=500)
    parser.add_argument("--replicas", type=int, default=100)
    parser.add_argument("--results", type=Path, default=FILE)
    options = parser.parse_args()
    load = Load(options.nodes, options.deployments, options.replicas)
    began, used = time.monotonic(), machine.used_by_others()
    with tempfile.TemporaryDirectory() as temporary, plane.ours(load.nodes, Path(temporary)) as (pids, kubeconfig):
        found = asyncio.run(_main(pids, kubeconfig, load, Path(temporary) / "samples"))
    others = (machine.used_by_others() - used) / (time.monotonic() - began)
    found.origin = msgspec.structs.replace(found.origin, others=round(others, 2))
    options.results.write_bytes(msgspec.json.format(msgspec.json.encode(rounded(found)), indent=1) + b"\n")
    print(
        f"{found.nodes} nodes joined in {found.joined:.0f} s; {found.pods} Pods available in {found.available:.0f} s, "
        f"deleted in {found.deleted:.0f} s, {found.lost} lost; CPU {found.cpu:.0f} s, peak memory {found.memory:.0f} MB"
    )
    for what, each in found.latencies.items():
        missed = "" if each.p99 <= OBJECTIVES[what] and not each.errors else "  missed"
        print(
            f"  {what:<8}{each.count:>6} requests, {each.errors} errors, p50 {each.p50:.0f} ms, p99 {each.p99:.0f} ms, "
            f"most {each.most:.0f} ms; objective {OBJECTIVES[what]:.0f} ms{missed}"
        )
    sys.exit(bool(found.lost))


if __name__ == "__main__":
    main()
