"""Operators with the same task: beside kopf on Ostinato's server, beside controller-runtime on kube-apiserver."""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager
from pathlib import Path

from bench.apiserver import Target, ours, real
from bench.operators.contenders import AT_ONCE, CREATING, KOPF_NAME, POSTING, RUNTIME, Commands, commands, named
from bench.operators.process import Figures
from bench.operators.run import beside
from bench.peers import Missing
from bench.suite.context import Context
from ostinato.manager.running import loop_factory

OBJECTS, QUICK_OBJECTS = 3000, 100
ROUNDS = 3
WORKERS = 16


def measure(context: Context) -> None:
    found, reasons = commands(context.directory)
    mine, home = named(POSTING, AT_ONCE), context.place("ours")
    if context.wants("kopf-rate", "kopf-cpu", "kopf-memory"):
        server = ours(home, context.directory / "bytecode")
        pair = _Pair("kopf", mine, KOPF_NAME, reasons.get(KOPF_NAME, ""))
        pair.measure(context, found, server, home / "state" / "admin.kubeconfig")
    if context.wants("runtime-rate", "runtime-cpu", "runtime-memory"):
        pair = _Pair("runtime", named(CREATING, WORKERS), named(RUNTIME, WORKERS), reasons.get(RUNTIME, ""))
        try:
            place = context.place("real")
            pair.measure(context, found, real(context.kubernetes(), place), place / "admin.kubeconfig")
        except Missing as error:
            pair.report(context, {}, str(error))


class _Pair:
    """Two operators on one server."""

    def __init__(self, prefix: str, ours: str, peer: str, reason: str) -> None:
        self._prefix = prefix
        self._ours = ours
        self._peer = peer
        self._reason = reason  # why the peer cannot run

    def measure(
        self, context: Context, found: Commands, server: AbstractContextManager[Target], kubeconfig: Path
    ) -> None:
        with server, asyncio.Runner(loop_factory=loop_factory()) as runner:
            figures = runner.run(self._rounds(context, found, kubeconfig))
        self.report(context, figures, self._reason)

    async def _rounds(self, context: Context, found: Commands, kubeconfig: Path) -> dict[str, list[Figures]]:
        objects = QUICK_OBJECTS if context.quick else OBJECTS
        figures: dict[str, list[Figures]] = {self._ours: [], self._peer: []}
        for number in range(min(context.rounds, ROUNDS)):
            for each, measured in figures.items():
                if each not in found:
                    continue
                namespace = f"{self._prefix}-{number}-{len(measured)}-{'ours' if each == self._ours else 'peer'}"
                command = [word.format(kubeconfig=kubeconfig, namespace=namespace) for word in found[each]]
                log = context.directory / f"{namespace}.log"
                measured.append(await beside(kubeconfig, command, namespace, objects, log))
        return figures

    def report(self, context: Context, figures: dict[str, list[Figures]], reason: str) -> None:
        sides = [figures.get(self._ours, []), figures.get(self._peer, [])]
        for name in ("rate", "cpu", "memory"):
            ours, peer = ([getattr(each, name) for each in side] for side in sides)
            context.values(f"{self._prefix}-{name}", ours, peer, reason)
