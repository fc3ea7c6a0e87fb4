"""Two minutes of 16 writers and 24 watchers: no lost, duplicate or reordered event, and no growth of memory.

    python -m bench.apiserver_soak [--seconds 120]

The writers record the resourceVersion of each response; every watcher must receive each of these writes once, in that
order. Memory is sampled during the run: once the history is full it must not grow.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.apiserver import Target, build_load, load_command, ours

ALLOWED = 1.15  # how much more memory the second half may need than the first


def sample(process: subprocess.Popen[str], target: Target) -> list[float]:
    """Sample the server's memory every second until the load ends."""
    found = []
    while process.poll() is None:
        found.append(target.resident())
        time.sleep(1.0)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=120.0)
    options = parser.parse_args()
    go = shutil.which("go")
    if go is None:
        raise SystemExit("no `go` on PATH: the load generator cannot be built")
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        program = build_load(go, directory)
        with ours(directory, directory / "bytecode") as target:
            command = [*load_command(program, target, options.seconds), "-phases=soak", "-watchers=24"]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            memory = sample(process, target)
            assert process.stdout is not None
            said = process.stdout.read().strip()
    print(said)
    half = len(memory) // 2
    early, late = max(memory[: half + 1]), max(memory[half:])
    print(f"resident memory: {memory[0]:.0f} MB at first, up to {early:.0f} MB, then up to {late:.0f} MB")
    sys.exit('"errors":0' not in said or late > early * ALLOWED)


if __name__ == "__main__":
    main()
