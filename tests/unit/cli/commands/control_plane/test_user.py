"""`ostinato user add`: kubeconfigs with client certificates."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.stage.server import standalone_server

from ostinato.cli.app import run
from ostinato.client import Client
from ostinato.client.config.config import Config
from ostinato.kinds.authentication_v1 import SelfSubjectReview
from ostinato.server.access.authority import Authority
from ostinato.world import World


def prepared(state: Path) -> Path:
    """The state directory of a server that has run."""
    state.mkdir(mode=0o700)

    async def main() -> None:
        async with standalone_server(state):
            pass

    asyncio.run(main())
    return state


def test_a_kubeconfig_names_its_user_and_groups(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def main() -> None:
        state, out = tmp_path / "state", tmp_path / "jane.kubeconfig"
        async with standalone_server(state):
            arguments = ["user", "add", "jane: doe", "--group", "dev", "--group", "ops", "--state", str(state)]
            assert await asyncio.to_thread(run, [*arguments, "--out", str(out), "--expires", "2h"]) == 0
            assert out.stat().st_mode & 0o777 == 0o600
            async with Client.connect(Config.load(path=out, namespace="default")) as client:
                review = await client.create(SelfSubjectReview())
        assert review.status.user_info is not None
        assert review.status.user_info.username == "jane: doe"
        assert review.status.user_info.groups == ["dev", "ops", "system:authenticated"]
        printed = capsys.readouterr().out
        assert printed.startswith(f"wrote {out}: user jane: doe in dev, ops, valid until ")

    asyncio.run(main())


def test_it_works_while_the_server_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = prepared(tmp_path / "state")
    monkeypatch.chdir(tmp_path)
    before = sorted(each.name for each in state.iterdir())
    assert run(["user", "add", "joe", "--state", str(state)]) == 0
    assert (tmp_path / "joe.kubeconfig").exists()
    assert sorted(each.name for each in state.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["system:admin"], "user system:admin: the prefix system: is reserved for Kubernetes; give --allow-system"),
        (["jane", "--group", "system:masters"], "group system:masters: the prefix system: is reserved"),
        (["jane", "--expires", "5m"], "--expires 5m: want at least 10m"),
        (["jane", "--expires", "forever"], "--expires forever: want at least 10m"),
        (["x" * 65], "want 1 to 64 printable characters"),
        (["a\nb"], "want 1 to 64 printable characters"),
        (["jane", "--out", "EXISTING"], "exists; remove it or choose another file with --out"),
        (["jane", "--out", "/nowhere/a"], "cannot write /nowhere/a: No such file or directory"),
    ],
)
def test_invalid_arguments_are_rejected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], why: str
) -> None:
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    Authority(World.real(workers=1), state)
    existing = tmp_path / "existing"
    existing.write_text("kept")
    given = [str(existing) if each == "EXISTING" else each for each in arguments]
    assert run(["user", "add", *given, "--state", str(state), "--server", "https://127.0.0.1:6443"]) == 1
    assert why in capsys.readouterr().err
    assert existing.read_text() == "kept"


def test_system_groups_need_allow_system(tmp_path: Path) -> None:
    state, out = prepared(tmp_path / "state"), tmp_path / "root.kubeconfig"
    arguments = ["user", "add", "root", "--group", "system:masters", "--allow-system"]
    assert run([*arguments, "--state", str(state), "--out", str(out)]) == 0


def test_a_directory_without_an_authority_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["user", "add", "jane", "--state", str(tmp_path)]) == 1
    assert "has no ca.key; start the server once" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
