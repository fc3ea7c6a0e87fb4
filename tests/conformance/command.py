"""The command `tests/conformance/run`: builds the suite, starts a cluster, runs specs and reports."""

from __future__ import annotations

import argparse
import contextlib
import re
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from tests.conformance.cluster import running_cluster
from tests.conformance.containerd import running_containerd
from tests.conformance.images import ImageBuilder
from tests.conformance.report import ResultFile, first_line, summary, write_report
from tests.conformance.specs import Outcome, SpecRunner, conformance_specs
from tests.conformance.suite import MissingError, Suite, default_directory

_HERE: Final = Path(__file__).parent
LISTS: Final = {name: _HERE / f"{name}.txt" for name in ("dual", "quick", "simulated")}


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # clean up
    suite = Suite(options.cache)
    try:
        suite.build()
        if options.build:
            return 0
        if options.runtime == "containerd":
            ImageBuilder(suite).build()
        specs = selected(suite, options)
        with _directory(options.directory) as directory, _kubeconfig(suite, options, directory) as kubeconfig:
            file = ResultFile(directory / "results.jsonl")
            results = {name: outcome for name, outcome in file.passed().items() if name in specs}

            def on_result(name: str, outcome: Outcome) -> None:
                file.add(name, outcome)
                _print(name, outcome)

            runner = SpecRunner(suite, kubeconfig, directory / "logs", options.seconds)
            missing = [name for name in specs if name not in results]
            results |= runner.run(missing, options.jobs, options.batch, on_result)
    except MissingError as error:
        print(error, file=sys.stderr)
        return 2
    print(summary(results))
    if options.report is not None:
        command = f"tests/conformance/run {' '.join(sys.argv[1:] if arguments is None else arguments)}"
        kind = options.runtime if options.ip_family == "ipv4" else f"{options.runtime}, {options.ip_family}"
        write_report(options.report, kind, command, results)
    return 0 if all(each.has_passed for each in results.values()) else 1


def selected(suite: Suite, options: argparse.Namespace) -> list[str]:
    """Return the specs that the options select."""
    if options.list is None:
        names = conformance_specs(suite)
    else:
        path = LISTS.get(options.list) or Path(options.list)
        names = [line for line in path.read_text().splitlines() if line]
    names = [name for name in names if re.search(options.focus, name)]
    return [name for name in names if not (options.skip and re.search(options.skip, name))]


@contextlib.contextmanager
def _directory(given: Path | None) -> Iterator[Path]:
    if given is not None:
        given.mkdir(parents=True, exist_ok=True)
        yield given.resolve()
        return
    with tempfile.TemporaryDirectory(prefix="conformance-", ignore_cleanup_errors=True) as directory:
        yield Path(directory)


@contextlib.contextmanager
def _kubeconfig(suite: Suite, options: argparse.Namespace, directory: Path) -> Iterator[Path]:
    """Yield the kubeconfig of the cluster to test, which is started if none is given."""
    if options.kubeconfig is not None:
        yield options.kubeconfig.resolve()
        return
    nodes = ["--nodes", str(options.nodes), "--runtime", options.runtime, "--ip-family", options.ip_family]
    with contextlib.ExitStack() as stack:
        if options.runtime == "containerd":
            daemon = running_containerd(suite, directory / "containerd", is_dual_stack=options.ip_family == "dual")
            socket = stack.enter_context(daemon)
            nodes += ["--containerd", str(socket)]
        yield stack.enter_context(running_cluster(directory, nodes))


def _print(name: str, outcome: Outcome) -> None:
    result = "passed" if outcome.has_passed else first_line(outcome)
    print(f"{outcome.seconds:7.1f} s  {name}: {result}", flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tests/conformance/run", description="Run Kubernetes' conformance suite against `ostinato up`."
    )
    add = parser.add_argument
    add("--runtime", choices=["containerd", "simulated"], default="containerd", help="runtime of the nodes")
    add("--nodes", type=int, default=2, metavar="N", help="number of nodes (default: 2)")
    add("--ip-family", choices=["ipv4", "dual"], default="ipv4", help="IP families of the cluster (default: ipv4)")
    add("--kubeconfig", type=Path, metavar="FILE", help="test this cluster instead of a new one")
    add("--list", metavar="NAME|FILE", help="run the specs of a list: dual, quick, simulated, or a file (default: all)")
    add("--focus", default="", metavar="REGEX", help="run only specs whose names match")
    add("--skip", default="", metavar="REGEX", help="leave out specs whose names match")
    add("--jobs", type=int, default=4, metavar="N", help="processes of the suite at a time (default: 4)")
    add("--batch", type=int, default=6, metavar="N", help="specs per process (default: 6)")
    add("--seconds", type=int, default=300, metavar="S", help="longest duration of a spec (default: 300)")
    add("--directory", type=Path, metavar="DIR", help="keep logs and results there, and continue if it has some")
    add("--report", type=Path, metavar="FILE", help="write counts and failed specs into a JSON file")
    add("--build", action="store_true", help="only build the suite")
    help_cache = "programs and images of the suite (default: OSTINATO_CONFORMANCE, or the user's cache directory)"
    add("--cache", type=Path, default=default_directory(), metavar="DIR", help=help_cache)
    return parser
