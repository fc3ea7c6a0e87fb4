"""`ostinato run --reload`: the controllers restart with their sources, the embedded cluster stays."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ostinato.world import World
from tests.cluster.running import SECONDS, Running, running

PROGRAM = """
import os, subprocess, sys
from ostinato import controller
from ostinato.kinds.core_v1 import Namespace

child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])

@controller(Namespace)
async def namespaces(namespace):
    if namespace.metadata.name == "default":
        print("text", namespace.metadata.uid, os.getpid(), child.pid, flush=True)
"""


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until(condition: Callable[[], bool], program: Running) -> None:
    clock = World.real().clock
    until = clock.monotonic() + SECONDS
    while not condition():
        assert clock.monotonic() < until, program.log()
        time.sleep(0.05)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc")
def test_a_change_restarts_the_controllers_and_keeps_the_cluster(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if request.config.getoption("--cluster"):
        pytest.skip("it brings its own server")
    file = tmp_path / "program.py"
    file.write_text(PROGRAM.replace("text", "first"))
    command = ("-m", "ostinato.cli", "run", "--reload", "--embedded", str(file))
    with running(tmp_path / "log", *command) as program:
        kubeconfig = Path(program.wait_for_output("--kubeconfig").split()[-1])
        first = program.wait_for_output("first").split()
        file.write_text("x = (\n")
        wait_until(lambda: "keeping the previous program; waiting for a change" in program.log(), program)
        assert re.search(r"program\.py, line 1: '\(' was never closed\n    x = \(", program.log())
        assert is_running(int(first[2]))
        file.write_text("raise LookupError('no')\n")  # compiles, and fails
        wait_until(lambda: "ended with exit code 1; waiting for a change" in program.log(), program)
        assert "LookupError: no" in program.log()
        file.write_text(PROGRAM.replace("text", "other"))
        second = program.wait_for_output("other").split()
        assert second[1] == first[1], "another cluster"
        assert not is_running(int(first[2]))
        assert not is_running(int(first[3])), "what the program started outlived it"
        program.process.send_signal(signal.SIGINT)
        assert program.process.wait(SECONDS) == 0, program.log()
        assert not is_running(int(second[2]))
        assert not is_running(int(second[3]))
        assert not kubeconfig.parent.exists()


BLOCKED = "import os, time\nprint('blocked', os.getpid(), flush=True)\nwhile True: time.sleep(1)\n"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc")
def test_the_program_ends_with_its_supervisor_even_if_it_blocks(tmp_path: Path) -> None:
    file = tmp_path / "blocked.py"
    file.write_text(BLOCKED)
    with running(tmp_path / "log", "-m", "ostinato.cli", "run", "--reload", str(file)) as program:
        pid = int(program.wait_for_output("blocked").split()[1])
        os.kill(program.process.pid, signal.SIGKILL)
        program.process.wait(SECONDS)
        wait_until(lambda: not is_running(pid), program)
