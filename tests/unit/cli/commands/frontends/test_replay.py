"""`ostinato run --record` and `ostinato replay`: a program is recorded, changed, and compared."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ostinato.cli.app import run
from ostinato.cli.error import CommandError
from ostinato.cli.program.recording import recording_to
from ostinato.frontends.hooks import HookContext, Hooks, hook, startup
from ostinato.frontends.kernel.controller import SyncController
from ostinato.frontends.kernel.recording import DIRECTORY, SECRETS
from ostinato.frontends.kernel.sync import SyncRequest, SyncResult
from ostinato.kinds.core_v1 import ConfigMap
from ostinato.testing import recordings, replay

PROGRAM = """
from ostinato.frontends.hooks import HookContext, Hooks, hook, startup
from ostinato.frontends.kernel.controller import SyncController
from ostinato.frontends.kernel.sync import SyncRequest, SyncResult
from ostinato.kinds.core_v1 import ConfigMap

async def decide(request: SyncRequest) -> SyncResult:
    return SyncResult(labels={"size": str(len(request.parent["metadata"]["name"]) + FACTOR), "at": "AT"})

copies = SyncController("copies", ConfigMap, decide)
"""


def program(factor: int, at: str = "1") -> None:
    Path("copies.py").write_text(PROGRAM.replace("FACTOR", str(factor)).replace("AT", at))


async def decide(request: SyncRequest) -> SyncResult:
    assert request.parent is not None
    return SyncResult(labels={"size": str(len(request.parent["metadata"]["name"]) + 1), "at": "1"})


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Recordings of two calls, and a program in the working directory that gives the same answers."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = set(sys.modules)
    directory = tmp_path / "made"
    with recording_to(str(directory), secrets=False):
        front_end = SyncController("copies", ConfigMap, decide)
    for name in ("a", "long"):
        parent = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
        asyncio.run(front_end.decide(SyncRequest(controller="copies", parent=parent)))  # type: ignore[arg-type]
    program(1)
    yield directory
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_equal_answers_are_counted(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["replay", str(recorded), "copies.py"]) == 0
    assert capsys.readouterr().out == "2 replayed, 0 differ\n"


def test_a_different_answer_is_shown(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program(2)
    assert run(["replay", str(recorded), "copies.py"]) == 1
    text = capsys.readouterr().out
    assert f"{recorded}/copies/00002-ConfigMap-long.json: differs\n--- recorded\n+++ replayed\n" in text
    assert '-    "size": "5"\n+    "size": "6"\n' in text
    assert text.endswith("2 replayed, 2 differ\n")


def test_fields_can_be_ignored(recorded: Path) -> None:
    program(1, at="2")
    assert run(["replay", str(recorded), "copies.py"]) == 1
    sys.modules.pop("copies")
    assert run(["replay", str(recorded), "copies.py", "--ignore", "labels.at"]) == 0


def test_a_program_without_the_recorded_controller_is_an_error(
    recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("copies.py").write_text(PROGRAM.replace('"copies"', '"other"').replace("FACTOR", "1"))
    assert run(["replay", str(recorded), "copies.py"]) == 1
    assert "recordings of copies, and the program has other" in capsys.readouterr().err


def test_a_directory_without_recordings_is_an_error(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (recorded / "empty").mkdir()
    assert run(["replay", str(recorded / "empty"), "copies.py"]) == 1
    assert run(["replay", str(recorded / "none"), "copies.py"]) == 1
    text = capsys.readouterr().err
    assert "empty: no recordings" in text
    assert "none: not a directory" in text


def test_recordings_are_regression_tests(recorded: Path) -> None:
    found = recordings(recorded)
    assert [str(each) for each in found] == ["copies/00001-ConfigMap-a.json", "copies/00002-ConfigMap-long.json"]
    replay(found[0], decide)
    replay(found[0], SyncController("copies", ConfigMap, decide))

    async def other(_: SyncRequest) -> SyncResult:
        return SyncResult()

    with pytest.raises(AssertionError, match=r"00001-ConfigMap-a.json: the answer differs\n--- recorded"):
        replay(found[0], other)
    with pytest.raises(ValueError, match="recorded from copies; others has others"):
        replay(found[0], SyncController("others", ConfigMap, decide))


def test_the_environment_is_as_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SECRETS, "before")
    monkeypatch.delenv(DIRECTORY, raising=False)
    with recording_to(str(tmp_path / "a"), secrets=True):
        assert (os.environ[DIRECTORY], os.environ[SECRETS]) == (str(tmp_path / "a"), "1")
    assert (os.environ.get(DIRECTORY), os.environ[SECRETS]) == (None, "before")
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(CommandError, match=r"--record .*file: File exists"),
        recording_to(str(tmp_path / "file"), secrets=False),
    ):
        pass


def test_secrets_are_recorded_only_with_recordings(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["run", "a.py", "--record-secrets"]) == 1
    assert "--record-secrets needs --record DIR" in capsys.readouterr().err


def test_a_hook_without_a_directory_is_found_by_its_recordings() -> None:
    @hook(startup())
    def count(ctx: HookContext) -> None:
        ctx.gauge("count", 1)

    for _ in range(2):
        assert list(count.deciders()) == ["count-hooks"]
    Hooks(count, name="together")
    assert count.deciders() == {}
