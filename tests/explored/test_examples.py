"""The examples survive faults, in scenarios that are invented from their schemas. OSTINATO_EXPLORE_WORLDS runs more."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ostinato.cli.app import run
from ostinato.scaffold import NewProject, create

WORLDS = os.environ.get("OSTINATO_EXPLORE_WORLDS", "12")
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("name", ["widget", "website", "sample_controller"])
def test_an_example_survives(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explore", str(EXAMPLES / f"{name}.py"), "--worlds", WORLDS]) == 0, capsys.readouterr().out


def test_a_generated_project_survives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    create(tmp_path / "project", NewProject(name="explored", package="explored_project"))
    monkeypatch.syspath_prepend(str(tmp_path / "project" / "src"))
    assert run(["explore", "explored_project", "--worlds", WORLDS]) == 0, capsys.readouterr().out
