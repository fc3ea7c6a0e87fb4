"""Python client and cache: single requests beside the official client; the first sync beside client-go and it."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import msgspec

from bench.first_sync import NAMESPACE, REFERENCE, commands, environment, fill, server, whole
from bench.first_sync_process import Figures
from bench.suite.context import Context

PODS, QUICK_PODS = 10_000, 1000
SECONDS, QUICK_SECONDS = 1.0, 0.3
OURS, OFFICIAL = "ostinato", "official client"


def measure(context: Context) -> None:
    pods = QUICK_PODS if context.quick else PODS
    with server(context.directory) as kubeconfig:
        asyncio.run(fill(kubeconfig, pods))
        if context.wants("client-get", "client-create", "client-list"):
            _calls(context, kubeconfig)
        if context.wants("sync-time", "sync-memory", "sync-official"):
            _sync(context, kubeconfig, pods)


def _calls(context: Context, kubeconfig: Path) -> None:
    seconds = QUICK_SECONDS if context.quick else SECONDS
    found: dict[str, list[dict[str, float]]] = {"ostinato": [], "official": []}
    for number in range(context.rounds):
        for name, results in found.items():
            command = [sys.executable, "-m", "bench.client_calls", name, str(kubeconfig), NAMESPACE, f"r{number}"]
            results.append(json.loads(_output([*command, str(seconds)])))
    for name in ("get", "create", "list"):
        ours, peer = ([each[name] for each in found[side]] for side in ("ostinato", "official"))
        context.values(f"client-{name}", ours, peer)


def _sync(context: Context, kubeconfig: Path, pods: int) -> None:
    chosen, reasons = commands(context.directory, kubeconfig, pods)
    sides: dict[str, list[Figures]] = {name: [] for name in (OURS, REFERENCE, OFFICIAL) if name in chosen}
    for _ in range(min(context.rounds, 3)):
        for name, results in sides.items():
            figures = msgspec.json.decode(_output(chosen[name]), type=Figures)
            results.append(whole(figures, pods))
    reason = reasons.get("client-go", "")
    ours, reference = sides[OURS], sides.get(REFERENCE, [])
    context.values("sync-time", [each.seconds for each in ours], [each.seconds for each in reference], reason)
    context.values(
        "sync-memory", [each.resident / 1e6 for each in ours], [each.resident / 1e6 for each in reference], reason
    )
    context.values("sync-official", [each.seconds for each in ours], [each.seconds for each in sides[OFFICIAL]])


def _output(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment())
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or [f"{command[2]} exited with {done.returncode}"])[-1])
    return done.stdout
