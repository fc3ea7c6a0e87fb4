"""The run: servers, rounds and result tables."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.apiserver import ours, real
from bench.operators import resync
from bench.operators.contenders import (
    AT_ONCE,
    CREATING,
    EMBEDDED,
    KOPF_NAME,
    ON_OURS,
    OSTINATO,
    POSTING,
    RUNTIME,
    WORKERS,
    Commands,
    commands,
    environment,
    named,
    one_process,
)
from bench.operators.filling import Filling
from bench.operators.process import Figures, OperatorProcess
from ostinato.client import Client, Config, ConfigError
from ostinato.client.transport.protocol import TransportError
from ostinato.kinds.core_v1 import Namespace
from ostinato.manager.running import loop_factory

LONGEST = 900  # seconds that an operator may take

# What is to be reached: times controller-runtime's rate, and times kopf's.
REAL, OURS = "kube-apiserver", "ostinato apiserver"
RATE_OF_RUNTIME, CPU_OF_KOPF, MEMORY_OF_KOPF, RATE_OF_KOPF = 1.0, 0.3, 0.4, 5.0


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare operators that do the same work.")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--real", type=Path, help="program that starts kube-apiserver and etcd")
    where.add_argument("--kubeconfig", type=Path, help="kubeconfig of a running server")
    parser.add_argument("--objects", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", action="append", help="contenders whose name begins with this; may be repeated")
    parser.add_argument("--skip-embedded", action="store_true", help="with --real: skip Ostinato's server")
    parser.add_argument("--resync", type=int, metavar="OBJECTS", help="measure a resync of this many objects instead")
    options = parser.parse_args()
    if options.resync:
        resync.main(options.resync)
        return
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        found, reasons = commands(directory)
        chosen = {name: each for name, each in found.items() if _is_chosen(name, options.only)}
        for title, server in _servers(options, directory):
            with server as kubeconfig:
                here = {name: each for name, each in chosen.items() if name not in ON_OURS or title == OURS}
                with asyncio.Runner(loop_factory=loop_factory()) as runner:
                    results = runner.run(_rounds(kubeconfig, here, options, directory, reasons))
            print(table(title, options.objects, results), flush=True)
    for name, reason in reasons.items():
        print(f"skipped {name}: {reason}")


def _is_chosen(name: str, only: list[str] | None) -> bool:
    return not only or any(name.startswith(each) for each in only)


Server = contextlib.AbstractContextManager[Path]


def _servers(options: argparse.Namespace, directory: Path) -> Iterator[tuple[str, Server]]:
    """Yield each server's name and kubeconfig."""
    if options.kubeconfig:
        yield str(options.kubeconfig), contextlib.nullcontext(options.kubeconfig)
        return
    if options.real:
        yield REAL, _real(options.real, directory / "real")
    if not options.skip_embedded:
        yield OURS, _ours(directory)


@contextlib.contextmanager
def _real(program: Path, directory: Path) -> Iterator[Path]:
    directory.mkdir()
    with real(program, directory):
        yield directory / "admin.kubeconfig"


@contextlib.contextmanager
def _ours(directory: Path) -> Iterator[Path]:
    home = directory / "ours"
    home.mkdir()
    with ours(home, directory / "bytecode"):
        yield home / "state" / "admin.kubeconfig"


async def _rounds(
    kubeconfig: Path, chosen: Commands, options: argparse.Namespace, directory: Path, reasons: dict[str, str]
) -> dict[str, Figures]:
    results: dict[str, Figures] = {}
    numbers = itertools.count()
    for _ in range(options.rounds):
        for name, command in chosen.items():
            namespace = f"operators-{next(numbers)}"
            log = directory / f"{namespace}.log"
            try:
                if name in EMBEDDED:
                    figures = await _embedded(directory / namespace, command, namespace, options.objects, log)
                else:
                    filled = [each.format(kubeconfig=kubeconfig, namespace=namespace) for each in command]
                    figures = await beside(kubeconfig, filled, namespace, options.objects, log)
            except (OperatorFailed, AssertionError) as error:
                reasons[name] = str(error)
                continue
            print(f"  {name}: {figures.rate:.0f} /s, {figures.cpu:.2f} ms, {figures.memory:.0f} MB", file=sys.stderr)
            results[name] = figures.or_better(results.get(name, figures))
    return results


class OperatorFailed(Exception):  # noqa: N818 - what happened
    """An operator did not complete its task."""


async def beside(kubeconfig: Path, command: list[str], namespace: str, count: int, log: Path) -> Figures:
    """Measure an operator in a separate process."""
    async with Filling(kubeconfig, namespace) as filling:
        await filling.fill(count)
        try:
            converged = asyncio.create_task(filling.converged(count))
            began = time.monotonic()
            async with OperatorProcess(command, environment(kubeconfig, namespace), log) as operator:
                return await _measured(operator, converged, began, filling, count)
        finally:
            await filling.empty()


async def _embedded(home: Path, command: list[str], namespace: str, count: int, log: Path) -> Figures:
    """Measure an operator in one process with its server; the operator starts when the objects exist."""
    kubeconfig = home / "admin.kubeconfig"
    filled = [each.format(state=home, namespace=namespace) for each in command]
    async with (
        OperatorProcess(filled, environment(kubeconfig, namespace), log) as operator,
        Filling(await _listening(kubeconfig), namespace) as filling,
    ):
        await filling.fill(count)
        converged = asyncio.create_task(filling.converged(count))
        used, began = operator.processor_seconds(), time.monotonic()
        operator.tell()
        return await _measured(operator, converged, began, filling, count, used)


async def _listening(kubeconfig: Path) -> Path:
    """Wait until the server answers; return its kubeconfig."""
    async with asyncio.timeout(30):
        while True:
            with contextlib.suppress(OSError, ConfigError, TransportError):
                async with Client.connect(Config.load(path=kubeconfig)) as client:
                    await client.get(Namespace, "default")
                    return kubeconfig
            await asyncio.sleep(0.05)


async def _measured(
    operator: OperatorProcess,
    converged: asyncio.Task[None],
    began: float,
    filling: Filling,
    count: int,
    used: float = 0.0,
) -> Figures:
    """Measure one run. `used`: processor time of the process before it began."""
    ended = asyncio.create_task(operator.ended())
    tasks: list[asyncio.Task[Any]] = [converged, ended]
    await asyncio.wait(tasks, timeout=LONGEST, return_when=asyncio.FIRST_COMPLETED)
    seconds = time.monotonic() - began
    if not converged.done():
        converged.cancel()
        raise OperatorFailed(ended.result() if ended.done() else f"it was not done after {LONGEST} s")
    ended.cancel()
    converged.result()
    processor = (operator.processor_seconds() - used) * 1000 / count
    figures = Figures(count / seconds, processor, operator.most_memory())
    await filling.check(count)
    return figures


# The table


def table(server: str, count: int, results: dict[str, Figures]) -> str:
    lines = [f"\n{count:,} custom resources on {server}: a ConfigMap and a status each\n"]
    lines.append("| operator | objects/s | CPU an object | most memory |")
    lines.append("|---|---|---|---|")
    for name, each in sorted(results.items()):
        lines.append(f"| {name} | {each.rate:.0f} | {each.cpu:.2f} ms | {each.memory:.0f} MB |")
    ratios = list(_ratios(server, results))
    if ratios:
        lines += ["", "| ostinato beside | ratio | to reach |", "|---|---|---|"]
        lines += ratios
    return "\n".join(lines)


def _ratios(server: str, results: dict[str, Figures]) -> Iterator[str]:
    kopf = results.get(KOPF_NAME)
    for workers in WORKERS:
        mine, other = results.get(named(OSTINATO, workers)), results.get(named(RUNTIME, workers))
        same = results.get(named(CREATING, workers))
        if same is not None and other is not None:
            ratio, reach = same.rate / other.rate, RATE_OF_RUNTIME if server == REAL else 0.0
            yield _line(f"rate, {named(RUNTIME, workers)}, the same requests", ratio, reach, is_good=ratio >= reach)
        if mine is None:
            continue
        if other is not None:
            yield _line(f"rate, {named(RUNTIME, workers)}, ours applying", mine.rate / other.rate, 0.0, is_good=True)
        if kopf is not None:
            label = named("ours", workers)
            cpu, memory = mine.cpu / kopf.cpu, mine.memory / kopf.memory
            yield _line(f"CPU, kopf ({label})", cpu, CPU_OF_KOPF, is_good=cpu <= CPU_OF_KOPF)
            yield _line(f"memory, kopf ({label})", memory, MEMORY_OF_KOPF, is_good=memory <= MEMORY_OF_KOPF)

    if kopf is None or server != OURS:
        return
    for way in (OSTINATO, CREATING, POSTING):
        for name in (*(named(way, workers) for workers in (WORKERS[-1], AT_ONCE)), one_process(way)):
            if name in results:
                rate = results[name].rate / kopf.rate
                yield _line(f"rate, kopf ({name})", rate, RATE_OF_KOPF, is_good=rate >= RATE_OF_KOPF)


def _line(title: str, ratio: float, reach: float, *, is_good: bool) -> str:
    return f"| {title} | {ratio:.2f} | {f'{reach:g}' if reach else '-'}{'' if is_good else ' **missed**'} |"
