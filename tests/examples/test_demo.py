"""`ostinato demo` as a process: its steps, its SVG, and that nothing remains afterwards."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

SECONDS = 60
COMMAND = [sys.executable, "-m", "ostinato.cli", "demo"]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Its temporary files are in a directory of their own."""
    return {**os.environ, "TMPDIR": str(tmp_path), "PYTHONIOENCODING": "utf-8"}


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_the_demo_runs_every_step_and_removes_everything(environment: dict[str, str], tmp_path: Path) -> None:
    done = subprocess.run(COMMAND, capture_output=True, text=True, timeout=SECONDS, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    output = re.sub(r" +", " ", done.stdout)
    steps = [
        r"you apply Deployment web 3 replicas",
        r"deployment-controller creates ReplicaSet web-\w+ 3 replicas",
        r"replicaset-controller creates (3 Pods|Pod)",
        r"scheduler binds .* to node-1",
        r"kubelet starts ",
        r"✓ 3 of 3 available",
        r"└─ ● ReplicaSet web-\w+ 3/3 ready",
        r"└─ ● Pod web-\S+ Running on node-1, process \d+",
        r"\$ kill -9 \d+",
        r"kubelet detects the exit of Pod \w+ exit code 137",
        r"kubelet restarts Pod \w+",
        r"✓ container restarted",
        r"deployment-controller scales ReplicaSet web-\w+ 3 → 5 replicas",
        r"✓ 5 of 5 available",
        r"you change Deployment web web:1 → web:2",
        r"deployment-controller creates ReplicaSet web-\w+ 5 replicas",
        r"replicaset-controller deletes ",
        r"✓ 5 of 5 updated",
        r"you delete Deployment web",
        r"garbage-collector deletes (5 Pods|Pod)",
        r"kubelet removes ",
        r"✓ all objects deleted",
        r"Delete it: all objects deleted \d+ ms █+",
    ]
    at = 0
    for step in steps:
        found = re.compile(step).search(output, at)
        assert found is not None, f"{step!r} is missing after {output[max(0, at - 80) : at]!r} in:\n{done.stdout}"
        at = found.end()
    assert "\x1b" not in done.stdout, "no colours where there is no terminal"
    assert not [each for each in re.findall(r"process (\d+)", output) if is_alive(int(each))]
    assert list(tmp_path.iterdir()) == []


def test_the_svg_shows_the_output(environment: dict[str, str], tmp_path: Path) -> None:
    picture = tmp_path / "demo.svg"
    command = [*COMMAND, "--picture", str(picture)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    drawn = [
        "".join(text.itertext()).replace(" ", "")
        for text in ElementTree.parse(picture).iter("{http://www.w3.org/2000/svg}text")
    ]
    shown = [line.replace(" ", "") for line in done.stdout.splitlines() if line]
    assert drawn[1:] == shown, "after the title of the window"


def test_an_unwritable_svg_is_rejected_before_the_demo_runs(environment: dict[str, str]) -> None:
    command = [*COMMAND, "--picture", "/nowhere/at/all.svg"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False, env=environment)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "ostinato demo: --picture /nowhere/at/all.svg: cannot write this file\n"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_demo_removes_everything(
    number: signal.Signals, code: int, environment: dict[str, str], tmp_path: Path
) -> None:
    with subprocess.Popen(
        COMMAND, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, encoding="utf-8"
    ) as demo:
        assert demo.stdout is not None
        assert demo.stderr is not None
        processes: list[int] = []
        for line in demo.stdout:
            processes += [int(each) for each in re.findall(r"process (\d+)", line)]
            if "kill -9" in line:
                break
        assert [is_alive(each) for each in processes[1:]] == [True, True], "the first has been killed"
        demo.send_signal(number)
        assert demo.wait(SECONDS) == code, demo.stderr.read()
        assert "Traceback" not in demo.stderr.read()
    assert not [each for each in processes if is_alive(each)]
    assert list(tmp_path.iterdir()) == []
