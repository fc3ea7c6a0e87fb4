"""The command: sections one after another, each isolated, then the table and the results."""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bench.suite import machine
from bench.suite.context import Options, Report
from bench.suite.printed import table
from bench.suite.results import LATEST, Figure, Origin, Run, load, save
from bench.suite.table import ROWS, SECTIONS, rows_of
from bench.usage import family

ROOT = Path(__file__).resolve().parents[2]
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of prctl(2)
_STOPPING = 45.0  # seconds in which a section stops its contenders


def main(arguments: Sequence[str]) -> None:
    options = _parser().parse_args(arguments)
    rows = _chosen(options.only)
    if options.quick and options.merge and options.results is None:
        raise SystemExit("bench: --quick is not for the stored results; give --results FILE")
    asked = Options(
        rows=rows,
        quick=options.quick,
        rounds=options.rounds,
        real=options.real or "",
        peer_cache=options.peer_cache,
    )
    _adopt_orphans()
    origin = machine.origin()
    run = Run(origin=origin, machine=machine.describe(), versions=machine.versions(), quick=options.quick)
    began = time.monotonic()
    for name in SECTIONS:
        if any(row.key in rows for row in rows_of(name)):
            _measure(name, asked, run)
    run.seconds = time.monotonic() - began
    print(table(run))
    _store(run, options, is_whole=len(rows) == len(ROWS))
    sys.exit(any(each.problem and not each.ours for each in run.figures))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="Measure Ostinato beside its peers; print a table of ratios."
    )
    parser.add_argument("--only", action="append", metavar="ROW", help="row or section to measure; may be repeated")
    parser.add_argument("--quick", action="store_true", help="one short round each: to see that it works, not to quote")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--real", help="program that starts Kubernetes (default: $OSTINATO_REAL, or bench.peers)")
    parser.add_argument("--peer-cache", action="store_true", help="reuse stored measurements of slow peers")
    parser.add_argument("--results", type=Path, help=f"file to write (default: {LATEST.relative_to(ROOT)} if whole)")
    parser.add_argument("--merge", action="store_true", help="replace the measured rows in the file, keep the others")
    return parser


def _chosen(only: list[str] | None) -> list[str]:
    if not only:
        return list(ROWS)
    unknown = [each for each in only if each not in ROWS and each not in SECTIONS]
    if unknown:
        names = ", ".join((*SECTIONS, *ROWS))
        raise SystemExit(f"bench: no row or section {', '.join(unknown)}; there are: {names}")
    return [row.key for row in ROWS.values() if row.key in only or row.section in only]


def _measure(name: str, options: Options, run: Run) -> None:
    """Run a section; add what it reports to the run, and a problem for each row that it does not report."""
    wanted = [row.key for row in rows_of(name) if row.key in options.rows]
    print(f"{name}: {', '.join(wanted)}", file=sys.stderr, flush=True)
    began, used = time.monotonic(), machine.used_by_others()
    with tempfile.TemporaryDirectory(prefix="ostinato-bench-") as temporary:
        output, log = Path(temporary) / "output", Path(temporary) / "log"
        reason = _process(name, options, output, log)
        others = (machine.used_by_others() - used) / (time.monotonic() - began)
        origin = msgspec.structs.replace(run.origin, others=round(others, 2))
        _collect(output, run, origin)
    found = {each.row for each in run.figures}
    for key in wanted:
        if key not in found:
            run.figures.append(Figure(row=key, problem=reason or "not reported", origin=origin))
    run.sections[name] = time.monotonic() - began
    print(f"{name}: {run.sections[name]:.0f} s{'; ' + reason if reason else ''}", file=sys.stderr, flush=True)


def _process(name: str, options: Options, output: Path, log: Path) -> str:
    """Run the process of a section to its end; return why it failed, or nothing."""
    command = [sys.executable, "-m", "bench.suite.section", name, str(output), msgspec.json.encode(options).decode()]
    path = os.pathsep.join((str(ROOT), str(ROOT / "src")))
    environment = {**os.environ, "PYTHONPATH": path, "TMPDIR": str(output.parent)}  # deleted even if it is killed
    with log.open("wb") as stream:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=stream, stderr=stream)
    reason = ""
    try:
        process.wait(SECTIONS[name].limit)
    except subprocess.TimeoutExpired:
        reason = f"given up after {SECTIONS[name].limit:g} s"
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_STOPPING)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        _end_leftovers()
    if process.returncode and not reason:
        lines = log.read_text(errors="replace").strip().splitlines()
        reason = lines[-1] if lines else f"exited with {process.returncode}"
        sys.stderr.write("".join(f"  {line}\n" for line in lines[-12:]))
    return reason


def _collect(output: Path, run: Run, origin: Origin) -> None:
    if not output.exists():
        return
    for line in output.read_bytes().splitlines():
        report = msgspec.json.decode(line, type=Report)
        if report.figure is not None:
            run.figures.append(msgspec.structs.replace(report.figure, origin=origin))
        if report.plane is not None:
            run.growth.append(report.plane)
        run.versions.update(report.versions)


def _adopt_orphans() -> None:
    """Become the parent of processes whose parents end, so that none that a section started is lost sight of."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(_SUBREAPER, 1, 0, 0, 0)


def _end_leftovers() -> None:
    """End and reap all processes that this one, or a section, started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in family(os.getpid()) - {os.getpid()}:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        end = time.monotonic() + 10
        with contextlib.suppress(ChildProcessError):
            while time.monotonic() < end:
                if os.waitpid(-1, os.WNOHANG) == (0, 0):
                    time.sleep(0.05)


def _store(run: Run, options: argparse.Namespace, *, is_whole: bool) -> None:
    file: Path | None = options.results
    if options.merge:
        file = file or LATEST
        run = load(file).merged(run)
    elif file is None and is_whole and not options.quick:
        file = LATEST
    if file is not None:
        save(run, file)
        print(f"\nwritten to {file}; `python -m bench.report` makes the page", file=sys.stderr)
