"""Advice to a program that `python ok.py` ran: it names ok.py."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

DEFINED = """
from ostinato import CustomResource, controller

class Thing(CustomResource, group="example.dev", version="v1"): ...

@controller(Thing)
async def things(thing, ctx):
    return 42

@controller(Thing)
async def others(thing, ctx): ...
"""


def stderr_of(text: str, place: Path) -> str:
    """Run `python ok.py` with this text, without a kubeconfig."""
    (place / "ok.py").write_text(text)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "HOME": str(place), "KUBECONFIG": ""}
    command = [sys.executable, "ok.py"]
    return subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False).stderr


def test_a_program_without_a_cluster_is_told_how_to_run_it_without_one(tmp_path: Path) -> None:
    error = stderr_of(DEFINED + "\nfrom ostinato import Manager\nManager().add(things).run()", tmp_path)
    assert error.splitlines()[-1].endswith("or run the embedded server: ostinato run ok.py --embedded")


def test_a_program_without_a_manager_is_told_how_to_run_it(tmp_path: Path) -> None:
    assert stderr_of(DEFINED, tmp_path) == (
        "ok.py defines controllers (things, others) and does not run them; use `ostinato run ok.py`, or end the file "
        "with Manager().add(things, others).run()\n"
    )


@pytest.mark.parametrize(
    "text",
    [
        "try:\n    things(None, None).send(None)\nexcept StopIteration: pass",  # a test of the function
        "from ostinato import Manager\nmanager = Manager()",
        "del things, others",
    ],
)
def test_other_programs_are_not_told(text: str, tmp_path: Path) -> None:
    assert stderr_of(DEFINED + text, tmp_path) == ""


def test_a_program_with_a_manager_that_is_not_run_is_told_how_to_run_it(tmp_path: Path) -> None:
    error = stderr_of(DEFINED + "\nfrom ostinato import Manager\nManager().add(things, others)", tmp_path)
    assert error == (
        "ok.py adds things, others to a manager and does not run it; call its run(), or use `ostinato run ok.py`\n"
    )


def test_a_program_that_fails_shows_its_error_only(tmp_path: Path) -> None:
    assert stderr_of(DEFINED + "raise LookupError('no')", tmp_path).splitlines()[-1] == "LookupError: no"
