"""Specs: their names, selection, and the processes of the suite that run them.

A process of the suite takes seconds of CPU time to start: each runs several specs. Specs marked [Serial] run alone,
after all others.
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from tests.conformance.suite import Suite

_CONFORMANCE: Final = r"\[Conformance\]"
_SERIAL: Final = "[Serial]"
_UNFINISHED: Final = ("interrupted", "aborted", "timedout")  # states of specs that the process may not have completed
_ARGUMENTS: Final = (
    "--provider=skeleton",
    "--allowed-not-ready-nodes=-1",
    "--minStartupPods=0",
    "--disable-log-dump",
    "--dump-logs-on-failure=false",
    "--ginkgo.no-color",
    "--ginkgo.v",
    "--ginkgo.grace-period=5s",
)


@dataclass(frozen=True)
class Outcome:
    """The result of a spec. `state`: "passed", "failed", "skipped", "timedout", ..."""

    state: str
    seconds: float
    message: str
    log: str

    @property
    def has_passed(self) -> bool:
        return self.state == "passed"


def conformance_specs(suite: Suite) -> list[str]:
    """Return the names of all conformance specs."""
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory) / "report.json"
        command = [str(suite.program("e2e.test")), "--ginkgo.dry-run", f"--ginkgo.focus={_CONFORMANCE}"]
        subprocess.run(
            [*command, f"--ginkgo.json-report={report}", "--provider=skeleton", "--kubeconfig=/dev/null"],
            cwd=directory,
            capture_output=True,
            check=False,
        )
        return sorted({_name(spec) for spec in _spec_reports(report) if spec["State"] == "passed"})


class SpecRunner:
    """Runs specs. `seconds`: the longest that one may take."""

    def __init__(self, suite: Suite, kubeconfig: Path, logs: Path, seconds: int) -> None:
        self._suite = suite
        self._kubeconfig = kubeconfig
        self._logs = logs
        self._seconds = seconds
        self._lock = threading.Lock()
        self._number = 0
        self._processes: set[subprocess.Popen[bytes]] = set()  # running ones
        self._is_stopped = False

    def run(
        self, specs: Sequence[str], jobs: int, batch: int, on_result: Callable[[str, Outcome], None]
    ) -> dict[str, Outcome]:
        """Run specs in `jobs` processes at a time, `batch` specs each; call `on_result` for each result.

        An exception, such as that of a signal, ends the processes.
        """
        self._logs.mkdir(parents=True, exist_ok=True)
        results: dict[str, Outcome] = {}

        def work(names: Sequence[str]) -> None:
            for name, outcome in self._outcomes(names).items():
                with self._lock:
                    results[name] = outcome
                    on_result(name, outcome)

        parallel = [name for name in specs if _SERIAL not in name]
        batches = [parallel[start : start + batch] for start in range(0, len(parallel), batch)]
        serial = [name for name in specs if _SERIAL in name]
        with ThreadPoolExecutor(jobs) as pool:
            try:
                list(pool.map(work, batches))
                for start in range(0, len(serial), batch):
                    pool.submit(work, serial[start : start + batch]).result()
            except BaseException:
                self._stop()
                raise
        return results

    def _stop(self) -> None:
        with self._lock:
            self._is_stopped = True
            for process in self._processes:
                process.kill()

    def _outcomes(self, names: Sequence[str]) -> dict[str, Outcome]:
        """Run a batch; specs that its process did not complete run again, one at a time."""
        found = self._process(names)
        if len(names) > 1:
            for name in names:
                if name not in found or found[name].state in _UNFINISHED:
                    found |= self._process([name])
        return {name: found.get(name) or Outcome("lost", 0.0, "the suite's process ended", "") for name in names}

    def _process(self, names: Sequence[str]) -> dict[str, Outcome]:
        with self._lock:
            if self._is_stopped:
                return {}
            self._number += 1
            log = self._logs / f"{self._number:03}.log"
        limit = self._seconds + 60 * (len(names) - 1)
        with tempfile.TemporaryDirectory() as directory, log.open("wb") as output:
            report = Path(directory) / "report.json"
            command = [
                str(self._suite.program("e2e.test")),
                *_ARGUMENTS,
                f"--kubeconfig={self._kubeconfig}",
                f"--kubectl-path={self._suite.program('kubectl')}",
                f"--ginkgo.focus= ({'|'.join(re.escape(name) for name in names)})$",
                f"--ginkgo.json-report={report}",
                f"--ginkgo.timeout={limit}s",
            ]
            self._wait_for(command, Path(directory), output, limit + 60)
            reports = _spec_reports(report)
        return {
            _name(spec): Outcome(
                spec["State"],
                round(spec["RunTime"] / 1e9, 1),
                spec.get("Failure", {}).get("Message", "").strip(),
                str(log),
            )
            for spec in reports
            if _name(spec) in names and not _is_not_run(spec)
        }

    def _wait_for(self, command: Sequence[str], directory: Path, output: IO[bytes], seconds: float) -> None:
        """Run a process to its end; killed after `seconds`."""
        with self._lock:
            if self._is_stopped:
                return
            process = subprocess.Popen(
                command, cwd=directory, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )
            self._processes.add(process)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        finally:
            with self._lock:
                self._processes.discard(process)


def _spec_reports(report: Path) -> list[dict[str, Any]]:
    try:
        suites = json.loads(report.read_bytes())
    except (OSError, ValueError):
        return []
    return [spec for spec in suites[0]["SpecReports"] or () if spec["LeafNodeType"] == "It"]


def _is_not_run(spec: dict[str, Any]) -> bool:
    """Return whether a spec was left out by the selection, or because the process was interrupted before it."""
    message = spec.get("Failure", {}).get("Message", "")
    return spec["State"] in ("pending", "skipped") and (not message or "interrupt" in message.lower())


def _name(spec: dict[str, Any]) -> str:
    return " ".join([*(spec["ContainerHierarchyTexts"] or ()), spec["LeafNodeText"]])
