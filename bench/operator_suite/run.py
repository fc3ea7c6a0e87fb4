"""Time both suites: `KUBEBUILDER_ASSETS=DIR python -m bench operator_suite`.

- DIR has `kube-apiserver` and `etcd`; without it, or without Go, the Go suite is not run.
- The Go suite is compiled before; compiling is not measured.
- Times are of whole runs, the best of five. Processor time includes kube-apiserver and etcd.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
GO = ROOT / "bench" / "go" / "envtest"
RUNS = 5


class Times(NamedTuple):
    wall: float
    processor: float


def main() -> None:
    load = os.getloadavg()[0]
    python = [sys.executable, "-m", "pytest", "-q", *plugin(), "bench/operator_suite/test_websites.py"]
    rows = [("pytest, ostinato.testing", measured(python, ROOT))]
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    go = shutil.which("go")
    if assets and go:
        with tempfile.TemporaryDirectory() as directory:
            binary = f"{directory}/suite.test"
            subprocess.run([go, "test", "-c", "-o", binary, "."], cwd=GO, check=True)
            rows.append(("envtest, kube-apiserver and etcd", measured([binary], GO)))
    print(f"30 tests, best of {RUNS} runs, seconds; load average before: {load:.1f}")
    print(f"{'':<36}{'wall':>8}{'processor':>12}")
    for name, times in rows:
        print(f"{name:<36}{times.wall:>8.2f}{times.processor:>12.2f}")
    if not (assets and go):
        print("envtest: not run; set KUBEBUILDER_ASSETS to a directory with kube-apiserver and etcd, and install Go")


def measured(command: Sequence[str], directory: Path) -> Times:
    runs = [run_once(command, directory) for _ in range(RUNS)]
    return Times(*map(min, zip(*runs, strict=True)))


def run_once(command: Sequence[str], directory: Path) -> Times:
    began = time.perf_counter()
    used: dict[int, float] = {}  # processor time by process, as last seen: not all are waited for by their parents
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(command, cwd=directory, stdout=output, stderr=subprocess.STDOUT, text=True)
        while process.poll() is None:
            used.update(_processor_times(process.pid))
            time.sleep(0.1)
        wall = time.perf_counter() - began
        if process.returncode:
            output.seek(0)
            sys.exit(f"{' '.join(command)}: {output.read()[-4000:]}")
    return Times(wall, sum(used.values()))


def _processor_times(root: int) -> dict[int, float]:
    """Return the processor time of a process and its descendants, in seconds."""
    times, parents = {}, {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = file.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        pid = int(file.parent.name)
        parents[pid] = int(fields[1])
        times[pid] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    family = {root}
    while more := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= more
    return {pid: seconds for pid, seconds in times.items() if pid in family}


def plugin() -> list[str]:
    """Name the plugin if this environment was installed before it existed."""
    known = {each.name for each in entry_points(group="pytest11")}
    return [] if "ostinato" in known else ["-p", "ostinato.testing.plugin"]
