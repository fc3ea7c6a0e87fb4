"""`ostinato explore`."""

from __future__ import annotations

from pathlib import Path

import pytest

from ostinato.cli.app import run

PROGRAM = """
from tests.unit.testing.explore.operators import careful, forgetful
del {other}
"""

SCENARIO = """
steps:
- create: {apiVersion: explored.dev/v1, kind: Pond, metadata: {name: b}, spec: {size: 1}}
- edit: {apiVersion: explored.dev/v1, kind: Pond, metadata: {name: b}, spec: {size: 2}}
- wait: 60
- delete: {apiVersion: explored.dev/v1, kind: Pond, metadata: {name: b}}
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return tmp_path / "explored_program.py"


def test_a_scenario_is_invented_and_the_failed_world_printed(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program.write_text(PROGRAM.format(other="careful"))
    assert run(["explore", str(program), "--worlds", "10"]) == 1
    text = capsys.readouterr().out
    assert 'edit Pond explored {"spec":{"size":2}}' in text
    assert "ConfigMap default/explored-two: missing" in text
    assert "replay: '1: crash-after @ create configmaps default/explored #1'" in text


def test_steps_are_read_from_a_file(program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program.write_text(PROGRAM.format(other="forgetful"))
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(SCENARIO)
    assert run(["explore", str(program), "--scenario", str(scenario), "--worlds", "5", "--only", "crash-after"]) == 0
    text = capsys.readouterr().out
    assert "5 worlds survived" in text
    assert "crash-after" in text


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("steps: []", "steps: missing"),
        ("steps: [{fly: {}}]", "fly: unknown step"),
        ("steps: [{create: {kind: Pond}}]", "want an object with apiVersion"),
        ("steps: [{create: {metadata: {name: a}}}]", "is missing"),
    ],
)
def test_a_malformed_scenario_is_refused(
    program: Path, tmp_path: Path, text: str, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    program.write_text(PROGRAM.format(other="careful"))
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(text)
    assert run(["explore", str(program), "--scenario", str(scenario)]) == 1
    assert problem in capsys.readouterr().err


def test_an_unknown_fault_is_refused(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program.write_text(PROGRAM.format(other="careful"))
    assert run(["explore", str(program), "--without", "rain"]) == 1
    assert "fault 'rain' does not exist" in capsys.readouterr().err
