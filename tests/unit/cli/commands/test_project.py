"""`ostinato init`, `add` and `upgrade-template`: reports, messages, exit codes."""

from __future__ import annotations

from pathlib import Path

import pytest

from ostinato.cli.app import run


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_way_from_nothing_to_a_project(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(["init", "demo", "--dry-run"]) == 0
    assert not Path("demo").exists()
    assert run(["init", "demo"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "create   demo/src/demo/demo_controller.py" in lines
    assert lines[-1] == "next: cd demo && make test && ostinato run --embedded"
    monkeypatch.chdir("demo")
    assert run(["add", "kind", "Cup", "--image", "cup:1"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "create   samples/cup_v1.yaml",
        "create   src/demo/cup_controller.py",
        "create   src/demo/cup_v1.py",
        "create   tests/test_cup_controller.py",
    ]
    assert run(["add", "controller", "Secret"]) == 0
    capsys.readouterr()
    assert run(["add", "webhook", "Cup", "--validating"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "update   pyproject.toml",
        "create   src/demo/cup_webhook.py",
        "create   src/demo/webhooks.py",
        "create   tests/test_cup_webhook.py",
        "next: make lock (pyproject.toml has changed)",
    ]
    Path("src/demo/webhooks.py").write_text("webhooks = None  # mine\n")
    assert run(["add", "webhook", "Secret", "--mutating"]) == 1
    reported = capsys.readouterr()
    assert "conflict src/demo/webhooks.py\n" in reported.out
    assert reported.err == "resolve the conflicts between the markers in src/demo/webhooks.py\n"
    monkeypatch.chdir("src/demo")  # the project is found from below
    assert run(["add", "controller", "ConfigMap"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "create   ../../src/demo/config_map_controller.py"
    assert run(["upgrade-template"]) == 0
    assert capsys.readouterr().out == "template 1 is the newest; nothing to do\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["init", "../demo"], "ostinato init: project name '../demo': want at most 50 lower-case letters, digits"),
        (["init", "Demo"], "beginning with a letter, for example demo\n"),
        (
            ["init", "json"],
            "ostinato init: package 'json' would hide the module of that name; set another one with --pa",
        ),
        (["init", "demo", "--group", "demo"], "ostinato init: group 'demo': want a domain name with a dot"),
        (
            ["init", "demo", "--kind", "$(id)"],
            "ostinato init: kind '$(id)': want at most 50 letters and digits in Camel",
        ),
        (
            ["add", "kind", "Cup"],
            "ostinato add kind: . is not a project: it has no .ostinato.yaml; run the command in a",
        ),
        (["add", "webhook", "Cup", "--validating"], "ostinato add webhook: . is not a project"),
        (["add", "controller", "Pod"], "ostinato add controller: . is not a project"),
        (["upgrade-template"], "ostinato upgrade-template: . is not a project"),
    ],
)
def test_a_mistake_is_one_line(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert list(Path().iterdir()) == []


def test_a_second_init_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["init", "demo", "--directory", "."]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "next: make test && ostinato run --embedded"
    assert run(["init", "demo", "--directory", ".", "--force"]) == 1
    assert "ostinato init: . is a project already; use ostinato add" in capsys.readouterr().err
