"""API server beside kube-apiserver and etcd: the same load on both, alternating, in one run.

    python -m bench.apiserver [--real PROGRAM] [--rounds 2] [--seconds 5]

- Both serve over TLS and sync every write to the disk. A Go program, built first, sends the load over 16 connections.
- `--real`: a program that starts kube-apiserver and etcd. `PROGRAM up DIR --bare` writes `token` and
  `admin.kubeconfig` to DIR, `PROGRAM down DIR` stops them. Without it the comparison is skipped.
- The best round of each server counts: other load on the machine can only slow it down.
- Bytecode is compiled first, as for an installed package: a start from sources takes twice as long.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from bench.usage import Processes

HERE = Path(__file__).resolve().parent
TOKEN = "bench"


@dataclass
class Target:
    """A running server."""

    url: str
    token: str
    authority: Path
    pids: list[int]
    started: float  # seconds from the command to the first answer

    def resident(self) -> float:
        """Return the resident memory of its processes in megabytes."""
        return Processes(self.pids).memory() * 1.024 * 1.024


@dataclass
class Figures:
    """The best results of one server."""

    name: str
    values: dict[str, float] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def higher(self, key: str, value: float) -> None:
        self.values[key] = max(value, self.values.get(key, value))

    def lower(self, key: str, value: float) -> None:
        self.values[key] = min(value, self.values.get(key, value))


def build_load(go: str, directory: Path) -> Path:
    program = directory / "load"
    subprocess.run([go, "build", "-o", str(program), "."], cwd=HERE / "go" / "load", check=True)
    return program


def kubeconfig_authority(path: Path, into: Path) -> Path:
    cluster = yaml.safe_load(path.read_text())["clusters"][0]["cluster"]
    into.write_bytes(base64.b64decode(cluster["certificate-authority-data"]))
    return into


@contextmanager
def ours(directory: Path, bytecode: Path, *options: str) -> Iterator[Target]:
    """Start Ostinato's server; its bytecode is kept in a directory for the next start."""
    tokens = directory / "tokens.csv"
    tokens.write_text(f'{TOKEN},admin,1,"system:masters"\n')
    state = directory / "state"
    command = [sys.executable, "-m", "ostinato.cli", "apiserver", "--listen", "127.0.0.1:0", "--state", str(state)]
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent / "src"), "PYTHONPYCACHEPREFIX": str(bytecode)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    began = time.monotonic()
    process = subprocess.Popen(
        [*command, "--token-auth-file", str(tokens), *options], stdout=subprocess.PIPE, env=environment, text=True
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        started = time.monotonic() - began
        if not line:
            raise SystemExit("ostinato apiserver did not start")
        authority = kubeconfig_authority(state / "admin.kubeconfig", directory / "ca.crt")
        yield Target(line.split(" at ")[1].split()[0], TOKEN, authority, [process.pid], started)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(10)


@contextmanager
def real(program: Path | Sequence[str], directory: Path) -> Iterator[Target]:
    """Start kube-apiserver and etcd with a program, or with a command of several words."""
    command = [str(program)] if isinstance(program, Path) else list(program)
    began = time.monotonic()
    subprocess.run([*command, "up", str(directory), "--bare"], check=True, stdout=subprocess.DEVNULL)
    started = time.monotonic() - began
    try:
        config = yaml.safe_load((directory / "admin.kubeconfig").read_text())
        authority = kubeconfig_authority(directory / "admin.kubeconfig", directory / "bench-ca.crt")
        pids = [int(line.split()[0]) for line in (directory / "pids").read_text().splitlines()]
        token = (directory / "token").read_text().strip()
        yield Target(config["clusters"][0]["cluster"]["server"], token, authority, pids, started)
    finally:
        subprocess.run([*command, "down", str(directory)], check=False, stdout=subprocess.DEVNULL)


def load_command(program: Path, target: Target, seconds: float) -> list[str]:
    options = {"server": target.url, "ca": target.authority, "token": target.token, "seconds": seconds}
    return [str(program), *(f"-{name}={value}" for name, value in options.items())]


def load(program: Path, target: Target, seconds: float, *options: str) -> list[dict[str, Any]]:
    command = [*load_command(program, target, seconds), *options]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def measure(figures: Figures, target: Target, program: Path, seconds: float) -> None:
    figures.lower("start", target.started)
    figures.lower("idle", target.resident())
    for result in load(program, target, seconds):
        phase = result["phase"]
        if result["errors"]:
            figures.problems.append(f"{phase}: {result['errors']} errors, such as {result['error'][:200]}")
        if phase == "events":
            figures.lower("event p50", result["p50_ms"])
            figures.lower("event p99", result["p99_ms"])
        elif phase == "list":
            figures.higher("list", result["megabytes_per_second"])
        else:
            figures.higher(phase, result["per_second"])
            figures.lower(f"{phase} p99", result["p99_ms"])
    figures.lower("after", target.resident())


# The rows of the table: what is shown, which figure it is, its unit, whether more is better, the ratio to reach.
ROWS = [
    ("first start to ready", "first start", "s", False, 0.0),
    ("start to ready", "start", "s", False, 10.0),
    ("create 1 kB ConfigMap", "create", "/s", True, 2.0),
    ("get", "get", "/s", True, 4.0),
    ("LIST", "list", "MB/s", True, 6.0),
    ("update", "update", "/s", True, 1.5),
    ("merge patch", "patch", "/s", True, 1.5),
    ("server-side apply", "apply", "/s", True, 1.5),
    ("create 3 kB Pod", "create-pod", "/s", True, 2.0),
    ("delete", "delete", "/s", True, 1.0),
    ("create to event, 20 watchers, p50", "event p50", "ms", False, 1.0),
    ("create to event, 20 watchers, p99", "event p99", "ms", False, 1.0),
    ("resident memory, idle", "idle", "MB", False, 2.5),
    ("resident memory, after the load", "after", "MB", False, 2.5),
]


def table(mine: Figures, other: Figures | None) -> str:
    lines = [f"| work | {mine.name} |" + (f" {other.name} | times better | to reach |" if other else "")]
    lines.append("|---|---|" + ("---|---|---|" if other else ""))
    for title, key, unit, more, reach in ROWS:
        if key not in mine.values:
            continue
        line = f"| {title} | {_number(mine.values[key])} {unit} |"
        if other is not None:
            a, b = mine.values[key], other.values.get(key, other.values["start"])
            ratio = a / b if more else b / a
            line += f" {_number(b)} {unit} | {ratio:.1f} | {reach:g}{'' if ratio >= reach else ' **missed**'} |"
        lines.append(line)
    return "\n".join(lines)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--real", type=Path, help="program that starts kube-apiserver and etcd")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=5.0, help="length of each phase")
    options = parser.parse_args()
    go = shutil.which("go")
    if go is None:
        raise SystemExit("no `go` on PATH: the load generator cannot be built")
    sides = [Figures("ostinato")]
    if options.real is None:
        print("skipped kube-apiserver: give --real PROGRAM\n", file=sys.stderr)
    elif not options.real.exists():
        print(f"skipped kube-apiserver: {options.real} does not exist\n", file=sys.stderr)
    else:
        sides.append(Figures("kube-apiserver + etcd"))
    with tempfile.TemporaryDirectory() as temporary:
        program = build_load(go, Path(temporary))
        bytecode, warm = Path(temporary) / "bytecode", Path(temporary) / "warm"
        warm.mkdir()
        with ours(warm, bytecode):
            pass
        for number in range(options.rounds):
            for figures in sides:
                directory = Path(temporary) / f"{len(figures.name)}-{number}"
                directory.mkdir()
                if figures is sides[0]:
                    with ours(directory, bytecode) as target:  # makes the certificates, as the other does each time
                        figures.lower("first start", target.started)
                side = ours(directory, bytecode) if figures is sides[0] else real(options.real, directory)
                with side as target:
                    measure(figures, target, program, options.seconds)
    print(table(sides[0], sides[1] if len(sides) > 1 else None))
    for figures in sides:
        for problem in figures.problems:
            print(f"{figures.name}: {problem}", file=sys.stderr)
    sys.exit(any(figures.problems for figures in sides))


if __name__ == "__main__":
    main()
