"""`ostinato kudo package`, `repo` and `search`."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import yaml

from ostinato.cli.app import run


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """A new package in the directory `operator`, which is a part of the current one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUDO_HOME", str(tmp_path / "home"))
    assert run(["kudo", "package", "new", "hello"]) == 0
    capsys.readouterr()
    return tmp_path / "operator"


def test_parts_are_added_and_listed(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    at = ["--path", "operator"]
    assert run(["kudo", "package", "add", "parameter", "size", "--default", "3", "--type", "integer", *at]) == 0
    assert run(["kudo", "package", "add", "task", "backup", "--resource", "backup.yaml", *at]) == 0
    assert run(["kudo", "package", "add", "plan", "backup", "--step", "save.copy=backup,app", *at]) == 0
    assert run(["kudo", "package", "add", "maintainer", "Ann", "ann@example.dev", *at]) == 0
    assert run(["kudo", "package", "add", "plan", "backup", "--step", "a=b", *at]) == 1
    assert "plans: backup exists" in capsys.readouterr().err
    assert run(["kudo", "package", "list", "plans", "operator"]) == 0
    assert "└── [step]  copy\n" in (listed := capsys.readouterr().out)
    assert "[phase]  save (serial)" in listed
    assert run(["kudo", "package", "list", "params", "operator"]) == 0
    assert "size    \t3      \ttrue    \tfalse" in capsys.readouterr().out
    assert run(["kudo", "package", "list", "tasks", "operator"]) == 0
    assert "backup\tApply\t[backup.yaml]" in capsys.readouterr().out
    assert (package / "templates" / "backup.yaml").exists()
    assert run(["kudo", "package", "add", "task", "bad", "--resource", "../../bad.yaml", *at]) == 1
    assert not (package.parent.parent / "bad.yaml").exists()


def test_a_bad_package_is_refused(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (package / "templates" / "app.yaml").write_text("name: {{ .Params.none }}{{ if }}")
    params = {"parameters": [{"name": "a", "type": "integer", "default": "x", "trigger": "gone"}, {"name": "A"}]}
    (package / "params.yaml").write_text(yaml.safe_dump(params))
    assert run(["kudo", "package", "verify", "operator"]) == 1
    found = capsys.readouterr().out
    for text in (
        'parameter "a" has a duplicate',
        'plan "gone" used in parameter "a" is not defined',
        'parameter "a" has an invalid default value',
        'parameter "none" in template app.yaml is not defined',
        "template app.yaml cannot be rendered",
        'parameter "A" defined but not used.',
    ):
        assert text in found, found
    assert run(["kudo", "package", "create", "operator"]) == 1
    assert not list(package.parent.glob("*.tgz"))


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    """A web server of the directory `site`."""
    (tmp_path / "site").mkdir()
    handler = partial(_Quiet, directory=str(tmp_path / "site"))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None: ...


def test_a_repository_is_indexed_added_and_used(package: Path, served: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["kudo", "package", "create", "operator", "-d", "site"]) == 0
    assert run(["kudo", "repo", "index", "site", "--url", served]) == 0
    assert run(["kudo", "repo", "index", "site", "--url", served]) == 1
    assert run(["kudo", "repo", "add", "mine", served]) == 0
    assert run(["kudo", "repo", "add", "mine", served]) == 1
    assert run(["kudo", "repo", "context", "mine"]) == 0
    capsys.readouterr()
    assert run(["kudo", "repo", "list"]) == 0
    assert "*mine" in capsys.readouterr().out
    assert run(["kudo", "search", "hel"]) == 0
    assert "hello  0.1.0" in capsys.readouterr().out
    assert run(["kudo", "package", "list", "tasks", "hello"]) == 0
    assert "[app.yaml]" in capsys.readouterr().out
    assert run(["kudo", "package", "list", "tasks", f"{served}/hello-0.1.0-0.1.0.tgz"]) == 0
    assert run(["kudo", "package", "list", "tasks", "none"]) == 1
    assert "no package none in repository mine" in capsys.readouterr().err
    archive = package.parent / "site" / "hello-0.1.0-0.1.0.tgz"
    archive.write_bytes(archive.read_bytes() + b"\0")
    assert run(["kudo", "package", "list", "tasks", "hello"]) == 1
    assert "the index says" in capsys.readouterr().err
    assert run(["kudo", "repo", "remove", "mine"]) == 0
