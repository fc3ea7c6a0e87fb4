"""The machine, the sources and the versions of a run."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sqlite3
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from bench.operators.contenders import KOPF
from bench.peers import KWOK
from bench.suite.results import Machine, Origin

_IDLE = (3, 4, 8, 9)  # fields of /proc/stat that are not work, or counted twice: idle, iowait, guest, guest_nice
ROOT = Path(__file__).resolve().parents[2]


def origin() -> Origin:
    commit = _said("git", "rev-parse", "--short=8", "HEAD")
    changed = _said("git", "status", "--porcelain", "--untracked-files=no", "--", "src", "bench", ":!bench/results")
    return Origin(datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"), commit + ("+" if changed else ""))


def describe() -> Machine:
    return Machine(
        processor=_field(Path("/proc/cpuinfo"), "model name") or platform.processor(),
        cores=len(os.sched_getaffinity(0)),
        memory=int(_field(Path("/proc/meminfo"), "MemTotal").split()[0] or 0) / 1e6,
        system=f"{platform.system()} {platform.release().split('-')[0]}",
        load=os.getloadavg()[0],
    )


def used_by_others() -> float:
    """Return the processor time in seconds that programs other than this one and its ended children have used."""
    fields = Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    busy = sum(int(each) for number, each in enumerate(fields) if number not in _IDLE)
    return busy / os.sysconf("SC_CLK_TCK") - sum(os.times()[:4])


def versions() -> dict[str, str]:
    found = {
        "Python": platform.python_version(),
        "SQLite": sqlite3.sqlite_version,
        "Go": _said("go", "env", "GOVERSION").removeprefix("go"),
        "controller-runtime": _required("operator", "sigs.k8s.io/controller-runtime"),
        "client-go": _required("informer", "k8s.io/client-go"),
        "kwok": KWOK.removeprefix("v"),
        "kopf": _said(str(KOPF / "bin" / "python"), "-c", "import importlib.metadata as m; print(m.version('kopf'))"),
    }
    for name, package in (("official Python client", "kubernetes"), ("uvloop", "uvloop"), ("msgspec", "msgspec")):
        try:
            found[name] = version(package)
        except PackageNotFoundError:
            continue
    return {name: each for name, each in found.items() if each}


def _required(program: str, module: str) -> str:
    text = (ROOT / "bench" / "go" / program / "go.mod").read_text()
    match = re.search(rf"^\s*(?:require )?{re.escape(module)} v(\S+)", text, re.MULTILINE)
    return match[1] if match else ""


def _field(file: Path, name: str) -> str:
    if not file.exists():
        return "0" if name == "MemTotal" else ""
    for line in file.read_text().splitlines():
        if line.startswith(name):
            return " ".join(line.partition(":")[2].split())
    return ""


def _said(*command: str) -> str:
    if shutil.which(command[0]) is None:
        return ""
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
