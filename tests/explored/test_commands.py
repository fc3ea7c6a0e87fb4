"""`ostinato explore --command`: operators that are programs of their own, in real time."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from bench.operators import gadget

from ostinato.crd.definition import crd_of
from ostinato.testing.explore import Timing, create, edit
from ostinato.testing.explore import command as explored_commands
from ostinato.testing.explore.api import Options, run, subject_of
from ostinato.testing.explore.command import CommandRun
from ostinato.testing.explore.explorer import Explorer
from ostinato.testing.explore.operators import Operator
from ostinato.testing.explore.plan import Plan
from ostinato.testing.explore.world.outcome import Outcome
from tests.unit.testing.explore.operators import Pond, pond

TIMING = Timing(restart=0.2, calm=0.6, within=5.0, quiet=0.5, patience=1.5)
GO = Path(__file__).parents[2] / "bench" / "go" / "operator"
GADGET: dict[str, Any] = {
    "apiVersion": "bench.example.dev/v1",
    "kind": "Gadget",
    "metadata": {"name": "a"},
    "spec": {"text": "one"},
}
long = pytest.mark.skipif(
    "OSTINATO_EXPLORE_COMMANDS" not in os.environ, reason="OSTINATO_EXPLORE_COMMANDS=SECONDS explores for so long"
)


def explored(command: str, scenario: list[Any], definition: dict[str, Any], world: str) -> Outcome:
    options = Options(definitions=[definition], timing=TIMING)
    subject = subject_of(Operator([], ()), tuple(scenario), options)
    explorer = Explorer(subject, make_run=partial(CommandRun, command))
    assert explorer.prepare().problems == []
    return explorer.world(Plan.parse(world))


@long
def test_a_crash_between_two_writes_of_a_command_is_found(tmp_path: Path) -> None:
    program = tmp_path / "explored_command.py"
    program.write_text("from tests.unit.testing.explore.operators import forgetful\n")
    root = Path(__file__).parents[2]
    command = f"env PYTHONPATH={root} {sys.executable} -m ostinato.cli run {program} --kubeconfig {{kubeconfig}}"
    found = explored(command, [create(pond())], crd_of(Pond), "1: crash-after @ create configmaps default/a #1")
    assert [each.oracle for each in found.problems] == ["convergence"]
    assert found.problems[0].details == ("ConfigMap default/a-two: missing",)


@pytest.fixture(scope="session")
def go_operator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The operator of the benchmarks, built on first use; OSTINATO_GO_PROGRAMS names a place that outlives the run."""
    sources = b"".join(each.read_bytes() for each in sorted(GO.iterdir()))
    kept = os.environ.get("OSTINATO_GO_PROGRAMS") or str(tmp_path_factory.getbasetemp())
    program = Path(kept) / f"operator-{sha256(sources).hexdigest()[:12]}"
    if not program.exists():
        go = shutil.which("go")
        if go is None:
            pytest.skip("no Go to build the operator with")
        built = subprocess.run(
            [go, "build", "-trimpath", "-o", str(program), "."], cwd=GO, capture_output=True, text=True, check=False
        )
        if built.returncode:
            pytest.skip(f"the operator cannot be built here: {built.stderr[-500:]}")
    return program


def test_an_operator_of_controller_runtime_survives(go_operator: Path) -> None:
    command = f"{go_operator} {{kubeconfig}} default 1"
    world = (
        "1: lost-answer @ create configmaps default #1; crash-after @ update gadgets.bench.example.dev/status "
        "default/a #1; watch-cut @ event MODIFIED gadgets.bench.example.dev default/a #2"
    )
    found = explored(command, [create(GADGET), edit(GADGET, text="two")], gadget.definition(), world)
    assert found.problems == []
    assert len(found.dealt) == 3


@long
def test_an_operator_of_controller_runtime_survives_everything(go_operator: Path) -> None:
    options = Options(
        definitions=[gadget.definition()],
        timing=explored_commands.TIMING,
        only=explored_commands.FAULTS,
        budget=float(os.environ["OSTINATO_EXPLORE_COMMANDS"]),
        worlds=10_000,
    )
    steps = [create(GADGET), edit(GADGET, text="two")]
    program = partial(CommandRun, f"{go_operator} {{kubeconfig}} default 1")
    found = run(Operator([], ()), steps, options, make_run=program)
    assert found.failed is None, found.failed.text()
