"""What the live page costs: the same load without it, and with it and an open page.

    python -m bench.page [--nodes 1000] [--deployments 100] [--replicas 100] [--rounds 1]

- `ostinato up` with simulated nodes. The open page is a client in its own process that reads the stream, and asks for
  objects and nodes every ten seconds, as the front end does.
- Both begin after the same time at rest; which comes first alternates from round to round.
- Prints seconds until all Pods are available and until all are deleted, the ratio of both and that of the plane's own
  processor time, processor time and memory of the page's process under load, and its per cent of a core at rest; at the
  end, the median of the ratios.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import multiprocessing
import os
import statistics
import tempfile
import time
from pathlib import Path

import msgspec

from bench import plane
from bench.plane import Load, Measured
from bench.usage import Process, family
from ostinato.cli.page.asking import asked
from ostinato.client import Client, Config
from ostinato.http import unix_sockets
from ostinato.page.page import SOCKET
from ostinato.world import World

_EVERY = 10.0  # seconds between two reads of the objects
_COUNTED = 0.1  # seconds between two counts of Pods: the steps take a few seconds


class Cost(msgspec.Struct):
    """Of the page's process: per cent of a core at rest; seconds of processor time, and MB at the end of the load."""

    rest: float
    cpu: float
    memory: float
    streamed: int  # bytes that an open page received


def _page_process(pids: list[int]) -> Process:
    """Return the process of the page, one of those of `ostinato up`."""
    for pid in set().union(*map(family, pids)):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        if b"page" in words:
            return Process(pid)
    raise SystemExit("ostinato up has no process of the page")


def read_page(socket: Path, received: multiprocessing.sharedctypes.Synchronized[int]) -> None:
    """Be an open page until the process is terminated."""

    async def stream() -> None:
        reader, writer = await asyncio.open_unix_connection(sock=unix_sockets.connect(socket))
        writer.write(b"GET /api/stream HTTP/1.1\r\nHost: page\r\n\r\n")
        while data := await reader.read(1 << 20):
            received.value += len(data)

    async def ask() -> None:
        async with asked(socket, World.real()) as page:
            while True:
                await asyncio.sleep(_EVERY)
                await page.get("objects", {"limit": "1000"})
                await page.get("nodes")

    async def both() -> None:
        await asyncio.gather(stream(), ask())

    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(both())


async def _measured(client: Client, pids: list[int], load: Load, socket: Path | None) -> tuple[Measured, Cost | None]:
    """Measure with an open page at the socket, or without any."""
    await plane.join(client, load.nodes)
    await asyncio.sleep(plane.SETTLING)
    received = multiprocessing.Value("q", 0)
    with contextlib.ExitStack() as stack:
        page = None
        if socket is not None:
            page = _page_process(pids)
            browser = multiprocessing.Process(target=read_page, args=(socket, received), daemon=True)
            browser.start()
            stack.callback(browser.join)
            stack.callback(browser.terminate)
        await asyncio.sleep(2.0)
        before, began = page.cpu() if page else 0.0, time.monotonic()
        await asyncio.sleep(plane.REST)
        now = page.cpu() if page else 0.0
        rest = (now - before) / (time.monotonic() - began) * 100
        name = "without" if page is None else "with the page"
        measured = await plane.measure(client, name, pids, load, rests=False, every=_COUNTED)
        cost = None if page is None else Cost(rest, page.cpu() - now, page.memory("VmHWM"), received.value)
    return measured, cost


def measure(load: Load, *, paged: bool) -> tuple[Measured, Cost | None]:
    """Start a control plane, with an open page or without one, and measure it."""

    async def connected(pids: list[int], kubeconfig: Path) -> tuple[Measured, Cost | None]:
        async with Client.connect(Config.load(path=kubeconfig)) as client:
            return await _measured(client, pids, load, kubeconfig.parent / SOCKET if paged else None)

    with (
        tempfile.TemporaryDirectory() as temporary,
        plane.ours(load.nodes, Path(temporary), *(["--page", "127.0.0.1:0"] if paged else [])) as started,
    ):
        return asyncio.run(connected(*started))


def _print(name: str, each: Measured) -> None:
    print(
        f"{name:<14} available {each.available.seconds:6.2f} s, deleted {each.deleted.seconds:6.2f} s, "
        f"CPU {each.available.cpu + each.deleted.cpu:6.1f} s, memory {each.memory:6.0f} MB",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--deployments", type=int, default=100)
    parser.add_argument("--replicas", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    load = Load(options.nodes, options.deployments, options.replicas)
    print(f"{load.pods} Pods on {load.nodes} nodes, {os.cpu_count()} cores", flush=True)
    ratios: list[float] = []
    for number in range(options.rounds):
        found = {paged: measure(load, paged=paged) for paged in (number % 2 == 1, number % 2 == 0)}
        (without, _), (paged, cost) = found[False], found[True]
        _print(without.contender, without)
        _print(paged.contender, paged)
        ratios.append(_seconds(paged) / _seconds(without))
        assert cost is not None
        cpu = (paged.available.cpu + paged.deleted.cpu - cost.cpu) / (without.available.cpu + without.deleted.cpu)
        print(
            f"ratio {ratios[-1]:.3f} of seconds, {cpu:.3f} of CPU without the page's process; "
            f"page: {cost.rest:.1f} % of a core at rest, {cost.cpu:.1f} s of CPU under load, {cost.memory:.0f} MB at "
            f"most, {cost.streamed / 1e6:.1f} MB streamed",
            flush=True,
        )
    print(f"median of {options.rounds} rounds: {statistics.median(ratios):.3f} of seconds")


def _seconds(each: Measured) -> float:
    return each.available.seconds + each.deleted.seconds


if __name__ == "__main__":
    main()
