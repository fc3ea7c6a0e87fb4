"""API server with its objects in etcd, beside kube-apiserver on the same etcd; two workers beside one."""

from __future__ import annotations

import re
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from bench.apiserver import build_load, ours, real
from bench.peers import Missing
from bench.suite.context import Context
from bench.suite.sections.load import alternate, phases

OURS, PEER, WORKERS = "ostinato", "kube-apiserver", "two workers"
ROUNDS = 3
PREFIXES = {OURS: "/one", WORKERS: "/two"}  # of keys, so that each server has objects of its own


def measure(context: Context) -> None:
    offered = subprocess.run(
        [sys.executable, "-m", "ostinato.cli", "apiserver", "--help"], capture_output=True, text=True, check=True
    ).stdout
    if "etcd" not in offered:
        raise Missing("`ostinato apiserver` has no store in etcd")
    program = build_load(context.go(), context.directory)
    with ExitStack() as stack:
        directory = context.place("real")
        peer = stack.enter_context(real(context.kubernetes(), directory))
        etcd, bytecode = _etcd(directory), context.directory / "bytecode"
        targets = {}
        if context.wants("workers-get", "workers-create") and "--workers" in offered:
            store = ["--store", f"{etcd}{PREFIXES[WORKERS]}", "--workers", "2"]
            targets[WORKERS] = stack.enter_context(ours(context.place("two"), bytecode, *store))
        store = ["--store", f"{etcd}{PREFIXES[OURS]}"]
        targets[OURS] = stack.enter_context(ours(context.place("one"), bytecode, *store))
        targets[PEER] = peer
        names = [key.partition("-")[2] for key in context.wanted()]
        values = alternate(context, program, targets, phases(names, ""), min(context.rounds, ROUNDS))
    for key in context.wanted():
        side, _, phase = key.partition("-")
        if side == "workers" and WORKERS not in values:
            context.values(key, [], problem="`ostinato apiserver` has no option --workers")
        elif side == "workers":
            context.values(key, values[WORKERS][phase], values[OURS][phase])
        else:
            context.values(key, values[OURS][phase], values[PEER][phase])


def _etcd(directory: Path) -> str:
    """Return the address of the etcd of a started kube-apiserver, as a store: etcd://HOST:PORT."""
    for line in (directory / "pids").read_text().splitlines():
        pid, name = line.split()
        if name == "etcd":
            flags = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
            found = next(each for each in flags if each.startswith("--listen-client-urls="))
            return re.sub("^.*=https?://", "etcd://", found)
    raise RuntimeError(f"no etcd in {directory / 'pids'}")
