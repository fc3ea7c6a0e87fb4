"""The assets directory, and kubectl's entry point as a process."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ostinato.cli.app import run
from ostinato.cli.envtest.assets import write_assets
from ostinato.cli.error import CommandError


def _executable(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def _call(program: Path, *arguments: str, path: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program, *arguments], env={"PATH": path}, capture_output=True, text=True, check=False)


def test_path_prints_a_directory_with_the_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert run(["envtest", "path"]) == 0
    place = Path(capsys.readouterr().out.removesuffix("\n"))
    assert place.parent == tmp_path / "ostinato" / "envtest"
    assert {each.name for each in place.iterdir() if os.access(each, os.X_OK)} == {"etcd", "kube-apiserver", "kubectl"}


def test_a_file_that_is_up_to_date_is_not_replaced(tmp_path: Path) -> None:
    write_assets(tmp_path)
    before = {each.name: each.stat().st_ino for each in tmp_path.iterdir()}
    (tmp_path / "etcd").write_text("damaged")
    (tmp_path / "kubectl").chmod(0o644)
    write_assets(tmp_path)
    after = {each.name: each.stat().st_ino for each in tmp_path.iterdir()}
    assert after["kube-apiserver"] == before["kube-apiserver"]
    assert "ostinato.cli.envtest etcd" in (tmp_path / "etcd").read_text()
    assert os.access(tmp_path / "kubectl", os.X_OK)


def test_many_write_one_directory_at_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: write_assets(tmp_path), range(40))) == {tmp_path}
    assert {each.name for each in tmp_path.iterdir()} == {"etcd", "kube-apiserver", "kubectl"}


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CommandError, match=r"cannot write .*/file/x: Not a directory; use --bin-dir"):
        write_assets(tmp_path / "file" / "x")


def test_run_replaces_itself_with_the_command(tmp_path: Path) -> None:
    script = 'echo "$KUBEBUILDER_ASSETS" "$@"; exit 7'
    ours = [sys.executable, "-m", "ostinato.cli", "envtest", "run", "--bin-dir", str(tmp_path), "--"]
    command = [*ours, "sh", "-c", script, "sh", "-v", "--", "$x"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (7, f"{tmp_path} -v -- $x\n")


def test_run_names_a_command_that_does_not_exist(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["envtest", "run", "--bin-dir", str(tmp_path), "--", "no-such-command"]) == 1
    assert capsys.readouterr().err == "ostinato envtest run: cannot run no-such-command: No such file or directory\n"


def test_kubectl_is_the_first_other_one_on_the_path(tmp_path: Path) -> None:
    assets = write_assets(tmp_path / "a b $(id) *")
    (tmp_path / "link").symlink_to(assets)
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "kubectl").touch()  # not executable
    (tmp_path / "folder" / "kubectl").mkdir(parents=True)
    real = _executable(tmp_path / "real one" / "kubectl", 'echo "$0" "$#" "$2"')
    path = ":".join(str(each) for each in (assets, tmp_path / "link", tmp_path / "plain", tmp_path / "folder"))
    done = _call(assets / "kubectl", "get", "a  b*", path=f"{path}:{real.parent}:/bin:/usr/bin")
    assert (done.returncode, done.stdout) == (0, f"{real} 2 a  b*\n")
    done = _call(assets / "kubectl", path=path)
    assert (done.returncode, done.stderr) == (
        127,
        "kubectl: not found on PATH; install kubectl, or set TEST_ASSET_KUBECTL to its path\n",
    )


@pytest.mark.parametrize(("program", "flag"), [("etcd", "--unsafe-no-fsync"), ("kube-apiserver", "--etcd-servers")])
def test_help_of_a_program(tmp_path: Path, program: str, flag: str) -> None:
    """envtest searches it for flags before each start."""
    done = _call(write_assets(tmp_path) / program, "--help", path="/bin:/usr/bin")
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split()[0] for line in done.stdout.splitlines() if flag in line.split()[:1]] == [flag]
