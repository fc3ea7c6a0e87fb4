"""Time both suites: `KUBEBUILDER_ASSETS=DIR python -m bench operator_suite`.

- DIR has `kube-apiserver` and `etcd`; without it, or without Go, the Go suite is not run.
- The Go suite is compiled before; compiling is not measured.
- Times are of whole runs, the median of three. Processor time is of the test process, without kube-apiserver and etcd.
"""

from __future__ import annotations

import os
import resource
import shutil
import statistics
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
RUNS = 3


class Times(NamedTuple):
    wall: float
    processor: float


def main() -> None:
    python = [sys.executable, "-m", "pytest", "-q", *_plugin(), "bench/operator_suite/test_websites.py"]
    rows = [("pytest, ostinato.testing", measured(python, ROOT))]
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    go = shutil.which("go")
    if assets and go:
        with tempfile.TemporaryDirectory() as directory:
            binary = f"{directory}/suite.test"
            subprocess.run([go, "test", "-c", "-o", binary, "."], cwd=GO, check=True)
            rows.append(("envtest, kube-apiserver and etcd", measured([binary], GO)))
    print(f"30 tests, median of {RUNS} runs, seconds; load average before: {os.getloadavg()[0]:.1f}")
    print(f"{'':<36}{'wall':>8}{'processor':>12}")
    for name, times in rows:
        print(f"{name:<36}{times.wall:>8.2f}{times.processor:>12.2f}")
    if not (assets and go):
        print("envtest: not run; set KUBEBUILDER_ASSETS to a directory with kube-apiserver and etcd, and install Go")


def measured(command: Sequence[str], directory: Path) -> Times:
    runs = [_once(command, directory) for _ in range(RUNS)]
    return Times(*(statistics.median(column) for column in zip(*runs, strict=True)))


def _once(command: Sequence[str], directory: Path) -> Times:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    wall = time.perf_counter() - began
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stdout[-3000:]}{done.stderr[-1000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Times(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def _plugin() -> list[str]:
    """Name the plugin if this environment was installed before it existed."""
    known = {each.name for each in entry_points(group="pytest11")}
    return [] if "ostinato" in known else ["-p", "ostinato.testing.plugin"]
