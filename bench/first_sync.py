"""First sync of a cache of Pods: time and memory, beside client-go, the official Python client and kopf's cache.

    python -m bench.first_sync [--pods 20000] [--rounds 2] [--kubeconfig FILE [--keep]]

- All contenders use the same server, one after another, each in its own process; the best round counts.
- The server is an `ostinato apiserver` with an in-memory store, started and filled here, unless `--kubeconfig` has
  another. That one must not run controllers, which would delete Pods without nodes and owners. Missing Pods are created
  in the namespace `first-sync` and deleted afterwards, unless `--keep` is given.
- client-go's informer (bench/go/informer) is built here; without Go it is skipped.
- The official client gets a tenth of the Pods, because it is slow: its figures are extrapolated, and marked.
- client-go keeps managedFields, Ostinato by default does not: a separate line shows what they cost.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from bench.cache import encoded
from bench.first_sync_process import Figures, pod_name
from ostinato.api.errors import AlreadyExists
from ostinato.client import Client, Config
from ostinato.client.views import MetadataOf, Unstructured
from ostinato.kinds.core_v1 import Pod

HERE = Path(__file__).resolve().parent
NAMESPACE = "first-sync"
WRITERS = 16
ENVIRONMENT = 14  # variables of a container
SHARE = 10  # the official client gets one Pod of so many
GO = HERE / "go" / "informer"
REFERENCE = "client-go, JSON"

# What is shown, and the best that the design asks for.
READS = {"typed get": 60, "metadata get": 5, "keys of an index": 5}
EVENTS, PAUSE = 50_000, 20
SECONDS, MEMORY, OFFICIAL = 1.0, 0.35, 10  # times client-go's JSON, and times faster than the official client


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--kubeconfig", type=Path, help="kubeconfig of the server (default: start one)")
    parser.add_argument("--keep", action="store_true", help="leave the Pods on the server")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        kubeconfig: Path = options.kubeconfig or stack.enter_context(server(directory))
        size = asyncio.run(fill(kubeconfig, options.pods))
        try:
            chosen, reasons = commands(directory, kubeconfig, options.pods)
            results: dict[str, Figures] = {}
            for _ in range(options.rounds):
                for name, command in chosen.items():
                    _run(name, command, results, reasons)
        finally:
            if options.kubeconfig and not options.keep:
                asyncio.run(_empty(kubeconfig))
    _print(results, options.pods, size)
    for name, reason in reasons.items():
        print(f"skipped {name}: {reason}")


@contextlib.contextmanager
def server(directory: Path) -> Iterator[Path]:
    """Start an empty server; yield its kubeconfig."""
    command = ["-m", "ostinato.cli", "apiserver", "--listen", "127.0.0.1:0", "--store", "memory"]
    process = subprocess.Popen(
        [sys.executable, *command, "--state", str(directory / "state")],
        stdout=subprocess.PIPE,
        env=environment(),
        text=True,
    )
    try:
        assert process.stdout is not None
        if not process.stdout.readline():
            raise SystemExit("ostinato apiserver did not start")
        yield directory / "state" / "admin.kubeconfig"
    finally:
        process.terminate()
        process.wait(10)


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join((str(HERE.parent), str(HERE.parent / "src")))}


# The Pods


async def fill(kubeconfig: Path, count: int) -> float:
    """Create the missing Pods; return the mean size of a Pod on the server, in bytes."""
    async with Client.connect(Config.load(path=kubeconfig, namespace=NAMESPACE)) as client:
        for each in _dependencies():
            with contextlib.suppress(AlreadyExists):
                await client.create(each)
        known = {each.metadata.name async for each in client.list(MetadataOf(Pod), namespace=NAMESPACE)}
        missing = (_pod(number) for number in range(count) if pod_name(number) not in known)

        async def write() -> None:
            for each in missing:
                await client.create(each)

        async with asyncio.TaskGroup() as group:
            for _ in range(WRITERS):
                group.create_task(write())
        some = await client.get(Unstructured.of("v1", "Pod"), pod_name(count // 2))
    return len(msgspec.json.encode(some))


async def _empty(kubeconfig: Path) -> None:
    async with Client.connect(Config.load(path=kubeconfig)) as client:
        await client.delete_all_of(Pod, namespace=NAMESPACE, grace_period=0)


def _dependencies() -> list[dict[str, Any]]:
    """Create the objects that admission of Pods requires."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": NAMESPACE}}
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}, account]


def _pod(number: int) -> dict[str, Any]:
    """Return a Pod to create: 5.7 kB on the server, without status, with managedFields."""
    pod: dict[str, Any] = msgspec.json.decode(encoded(number))
    metadata = pod["metadata"]
    for name in ("resourceVersion", "uid", "creationTimestamp", "generation", "managedFields"):
        del metadata[name]
    metadata["namespace"] = NAMESPACE
    del pod["spec"]["containers"][0]["env"][ENVIRONMENT:]
    pod["spec"].update(serviceAccountName="default", automountServiceAccountToken=False)
    return pod


# The contenders


def commands(directory: Path, kubeconfig: Path, count: int) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Return the command of each contender, and the reasons for skipped ones."""
    python = [sys.executable, "-m", "bench.first_sync_process"]
    rest = [str(kubeconfig), NAMESPACE]
    commands = {
        "ostinato": [*python, "ostinato", *rest, str(count)],
        "ostinato, managedFields kept": [*python, "ostinato_managed_fields", *rest, str(count)],
        "kopf's way: dicts": [*python, "kopf", *rest, str(count)],
        "official client": [*python, "official", *rest, str(count // SHARE)],
    }
    program, reason = _built(directory)
    if reason:
        return commands, {"client-go": reason}
    go = {REFERENCE: [program, *rest, "json"], "client-go, protobuf": [program, *rest, "protobuf"]}
    return {**go, **commands}, {}


def _built(directory: Path) -> tuple[str, str]:
    """Build the client-go program; return it or the reason why not."""
    if shutil.which("go") is None:
        return "", "there is no go command"
    program = str(directory / "informer")
    build = subprocess.run(["go", "build", "-o", program, "."], cwd=GO, capture_output=True, text=True, check=False)
    return program, build.stderr.strip().splitlines()[-1] if build.returncode else ""


def _run(name: str, command: list[str], results: dict[str, Figures], reasons: dict[str, str]) -> None:
    """Run a contender once."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment())
    if done.returncode:
        reasons[name] = (done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"])[-1]
        return
    figures = msgspec.json.decode(done.stdout, type=Figures)
    results[name] = figures.or_better(results.get(name, figures))


# The tables


def _print(results: dict[str, Figures], pods: int, size: float) -> None:
    print(f"First sync of {pods:,} Pods of {size / 1000:.1f} kB, each contender in its own process")
    shown = {name: whole(figures, pods) for name, figures in results.items()}
    reference = shown.get(REFERENCE)
    ratio = f"   {'x ' + REFERENCE:>28}" if reference else ""
    print(f"  {'':<30}{'first sync':>12}{'CPU':>9}{'resident':>10}{'collected':>10}{'peak':>9}{'GC pause':>10}{ratio}")
    for name, each in shown.items():
        mark = "~" if each is not results[name] else ""
        pause = f"{each.pause:.0f} ms" if each.pause else "-"
        line = (
            f"  {name:<30}{mark + format(each.seconds, '.2f'):>10} s{each.cpu:>7.2f} s{_megabytes(each.resident)}"
            f"{_megabytes(each.collected)}{_megabytes(each.peak)[1:]}{pause:>10}"
        )
        if reference:
            line += (
                f"   {each.seconds / reference.seconds:7.2f} time"
                f"{each.resident / reference.resident:6.2f} res. {each.collected / reference.collected:5.2f} coll."
            )
        print(line)
    if any(each is not results[name] for name, each in shown.items()):
        print(
            "  ~ extrapolated from fewer Pods: time and memory beyond the start of the process grow with their number"
        )
    if "ostinato" in shown:
        _print_targets(shown)


def whole(figures: Figures, pods: int) -> Figures:
    """Extrapolate the figures of a contender that got fewer Pods."""
    if figures.objects >= pods or not figures.objects:
        return figures
    times = pods / figures.objects

    def grown(size: int) -> int:
        return int(figures.start + (size - figures.start) * times)

    return msgspec.structs.replace(
        figures,
        seconds=figures.seconds * times,
        cpu=figures.cpu * times,
        resident=grown(figures.resident),
        collected=grown(figures.collected),
        peak=grown(figures.peak),
        pause=figures.pause * times,
    )


def _megabytes(size: int) -> str:
    return f"{size / 1e6:>7,.0f} MB"


def _print_targets(shown: dict[str, Figures]) -> None:
    mine = shown["ostinato"]
    print("\nTargets")
    if (other := shown.get(REFERENCE)) is not None:
        _target("first sync, x client-go's JSON", mine.seconds / other.seconds, SECONDS, "")
        _target("resident, x client-go's JSON", mine.resident / other.resident, MEMORY, "")
        _target("the same after collections", mine.collected / other.collected, MEMORY, "")
    if (other := shown.get("official client")) is not None:
        _target(
            "first sync, times faster than the official client", other.seconds / mine.seconds, OFFICIAL, "", more=True
        )
    for name, most in READS.items():
        _target(name, mine.reads[name], most, "us")
    _target("watch events into two indexes, one core", mine.events, EVENTS, "/s", more=True)
    _target("longest garbage collection", mine.pause, PAUSE, "ms")


def _target(name: str, value: float, reach: float, unit: str, *, more: bool = False) -> None:
    missed = "" if (value >= reach if more else value <= reach) else "  missed"
    print(f"  {name:<52}{value:>12,.2f} {unit:<3} {'>=' if more else '<='} {reach:,g}{missed}")


if __name__ == "__main__":
    main()
