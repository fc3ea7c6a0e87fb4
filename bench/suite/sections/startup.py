"""Start of a control plane for tests, and a suite of tests on it, beside envtest."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from bench.envtest import Round, start_pair
from bench.operator_suite.run import GO, ROOT, plugin, run_once
from bench.peers import Missing, binaries
from bench.suite.context import Context
from ostinato.cli.envtest.assets import write_assets

SUITE_ROUNDS = 3


def measure(context: Context) -> None:
    reason, real = "", None
    try:
        real = binaries(context.kubernetes())
    except Missing as error:
        reason = str(error)
    if context.wants("start-time", "start-cpu", "start-memory"):
        _start(context, real, reason)
    if context.wants("suite-time"):
        _suite(context, real, reason)


def _start(context: Context, real: Path | None, reason: str) -> None:
    assets = {"ours": write_assets(context.directory / "assets")}
    if real is not None:
        assets["peer"] = real
    for each in assets.values():
        start_pair(each)  # files are read from the disk once, bytecode is written
    rounds: dict[str, list[Round]] = {name: [] for name in assets}
    for _ in range(context.rounds):
        for name, directory in assets.items():
            rounds[name].append(start_pair(directory))
    for row, field in (("start-time", "wall"), ("start-cpu", "cpu"), ("start-memory", "memory")):
        ours, peer = ([getattr(each, field) for each in rounds.get(name, [])] for name in ("ours", "peer"))
        context.values(row, ours, peer, reason)


def _suite(context: Context, real: Path | None, reason: str) -> None:
    commands = {"ours": [sys.executable, "-m", "pytest", "-q", *plugin(), "bench/operator_suite/test_websites.py"]}
    if real is not None:
        try:
            binary = str(context.directory / "suite.test")
            subprocess.run([context.go(), "test", "-c", "-o", binary, "."], cwd=GO, check=True)
            os.environ["KUBEBUILDER_ASSETS"] = str(real)
            commands["peer"] = [binary]
        except Missing as error:
            reason = str(error)
    walls: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(min(context.rounds, SUITE_ROUNDS)):
        for name, command in commands.items():
            walls[name].append(run_once(command, ROOT if name == "ours" else GO).wall)
    context.values("suite-time", walls["ours"], walls.get("peer", []), reason)
