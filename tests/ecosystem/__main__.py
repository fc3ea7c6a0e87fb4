"""Run other projects' programs against `ostinato up`, as published: `python -m tests.ecosystem [NAME ...]`.

Each script in `programs/` installs nothing itself. Its head says what it needs, as comments:

    # program: Helm 4.3.1                              the row of docs/reference/compatibility.md
    # go: helm.sh/helm/v4/cmd/helm@v4.3.1              built into the cache; the script finds `helm` on PATH
    # kubectl: 1.24.3 1.35.10                          built as `kubectl-1.24.3`, `kubectl-1.35.10`
    # pip: kopf==1.45.2                                an environment of its own; the script calls `python`
    # npm: @kubernetes/client-node@1.4.0               a directory of its own; the script calls `node`
    # maven: io.fabric8:kubernetes-client:7.4.0        on CLASSPATH; the script calls `java FILE`
    # options: --runtime process                       of `ostinato up`; simulated nodes if there are none
    # timeout: 600                                     seconds that the script may take; 300 if there is no line

It runs in an empty directory with KUBECONFIG set, and passes if it ends with 0. It must end what it starts.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.cluster.planes import PlaneProcess
from tests.ecosystem.preparing import Needs, NotAvailableError, prepare, read_needs

_PROGRAMS = Path(__file__).parent / "programs"
_SIMULATED = ("--runtime", "simulated", "--nodes", "2")


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.ecosystem", description="Run programs against `ostinato up`."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="of scripts in programs/ (default: all)")
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "ostinato" / "ecosystem")
    parser.add_argument("--logs", type=Path, default=Path("ecosystem-logs"), help="what the programs print")
    options = parser.parse_args()
    options.logs.mkdir(parents=True, exist_ok=True)
    names = options.names or sorted(script.stem for script in _PROGRAMS.glob("*.sh"))
    failed = 0
    for name in names:
        needs = read_needs(_PROGRAMS / f"{name}.sh")
        began = time.monotonic()
        try:
            code = _run(name, needs, options.cache.resolve(), options.logs.resolve())
            result = "passes" if code == 0 else f"fails with {code}"
        except NotAvailableError as error:
            result = f"not available: {error}"
        failed += result != "passes"
        print(f"{name:<24} {needs.program:<40} {result} ({time.monotonic() - began:.0f} s)", flush=True)
    return int(failed > 0)


def _run(name: str, needs: Needs, cache: Path, logs: Path) -> int:
    environment = prepare(needs, name, cache)
    with tempfile.TemporaryDirectory(prefix=f"ostinato-{name}-", ignore_cleanup_errors=True) as place:
        plane = PlaneProcess(Path(place) / "plane", *(needs.options or _SIMULATED))
        work = Path(place) / "work"
        work.mkdir()
        plane.start()
        try:
            with (logs / f"{name}.log").open("w") as log:
                return subprocess.run(
                    ["bash", "-euo", "pipefail", str(_PROGRAMS / f"{name}.sh")],
                    cwd=work,
                    env={
                        **os.environ,
                        **environment,
                        "KUBECONFIG": str(plane.kubeconfig),
                        "HERE": str(_PROGRAMS),
                        "OSTINATO_PYTHON": sys.executable,
                    },
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    timeout=needs.timeout,
                    check=False,
                ).returncode
        except subprocess.TimeoutExpired:
            return 124
        finally:
            plane.stop()


if __name__ == "__main__":
    sys.exit(main())
