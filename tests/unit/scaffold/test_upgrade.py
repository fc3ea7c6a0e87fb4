"""Upgrades to a new template: three-way, keeping edits."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from ostinato.scaffold import Change, NewKind, ScaffoldError, add_kind, changes, extend, load_project, upgrade


def git(project: Path, *arguments: str) -> str:
    quiet = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    who = ("-c", "user.name=tester", "-c", "user.email=tester@example.dev")
    done = subprocess.run(
        ["git", *who, *arguments],
        cwd=project,
        env={**os.environ, **quiet},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def change_template(directory: Path, name: str, old: str, new: str) -> None:
    file = directory / f"{name}.tmpl"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


@pytest.fixture
def changed_template(next_template: Path) -> Path:
    """A second template: a new file, a file less, a line changed in two files."""
    change_template(next_template, "Dockerfile", "3.13-slim AS build", "3.14-slim AS build")
    change_template(next_template, "kind.py", "What users want", "What the user wants")
    index = next_template / "files.yaml"
    index.write_text(index.read_text().replace("  gitignore: .gitignore\n", "  notes.md: NOTES.md\n"))
    (next_template / "notes.md.tmpl").write_text("# <<name>>\n")
    return next_template


def upgraded(project: Path, **options: bool) -> list[str]:
    return [f"{each.action} {each.path}" for each in upgrade(project, **options).changes]


def test_the_newest_template_leaves_nothing_to_do(project: Path) -> None:
    assert upgrade(project).changes == []


def test_unedited_files_follow_the_template(project: Path, changed_template: Path) -> None:
    extend(project, lambda before: add_kind(before, NewKind(kind="Cup")))
    dry = upgraded(project, dry_run=True)
    assert load_project(project).template == 1
    assert (
        upgraded(project)
        == dry
        == [
            "delete .gitignore",
            "update Dockerfile",
            "create NOTES.md",
            "update src/demo/cup_v1.py",
            "update src/demo/demo_v1.py",
        ]
    )
    assert load_project(project).template == 2
    assert "FROM python:3.14-slim AS build" in (project / "Dockerfile").read_text()
    assert (project / "NOTES.md").read_text() == "# demo\n"
    assert upgrade(project).changes == []


def test_edits_are_kept(project: Path, changed_template: Path) -> None:
    (project / "Dockerfile").write_text((project / "Dockerfile").read_text() + "LABEL mine=yes\n")
    (project / ".gitignore").write_text("mine\n")
    kind = project / "src/demo/demo_v1.py"
    kind.write_text(kind.read_text().replace("What users want.", "What I want."))
    (project / "Makefile").unlink()
    done = upgrade(project)
    assert done.changes == [
        Change("keep", ".gitignore", None, "no longer generated, but edited"),
        Change("update", "Dockerfile", (project / "Dockerfile").read_text()),
        Change("create", "NOTES.md", "# demo\n"),
        Change("conflict", "src/demo/demo_v1.py", kind.read_text()),
    ]
    assert "3.14-slim AS build" in (project / "Dockerfile").read_text()
    assert (project / "Dockerfile").read_text().endswith("LABEL mine=yes\n")
    assert (
        '<<<<<<< yours\n    """What I want."""\n=======\n    """What the user wants."""\n>>>>>>> template 2\n'
        in kind.read_text()
    )
    assert not (project / "Makefile").exists()
    assert upgrade(project).changes == []


def test_a_file_of_the_user_in_the_place_of_a_new_one_is_kept(project: Path, changed_template: Path) -> None:
    (project / "NOTES.md").write_text("# mine\n")
    assert "conflict NOTES.md" in upgraded(project)
    assert (project / "NOTES.md").read_text() == "<<<<<<< yours\n# mine\n=======\n# demo\n>>>>>>> template 2\n"


def test_a_dirty_work_tree_is_refused(project: Path, changed_template: Path) -> None:
    git(project, "init", "--quiet")
    git(project, "add", "--all")
    git(project, "commit", "--quiet", "--message=init")
    (project / "notes.txt").write_text("mine\n")
    with pytest.raises(
        ScaffoldError, match=r"has uncommitted changes \(\?\? notes.txt\); commit them first, .* or use --"
    ):
        upgrade(project)
    assert git(project, "status", "--porcelain") == "?? notes.txt\n"
    assert upgraded(project, allow_dirty=True)
    git(project, "add", "--all")
    git(project, "commit", "--quiet", "--message=upgrade")
    assert upgrade(project).changes == []


def test_a_repository_that_git_refuses_is_not_taken_for_clean(project: Path, changed_template: Path) -> None:
    git(project, "init", "--quiet")
    (project / ".git" / "config").write_text("[damaged\n")
    with pytest.raises(
        ScaffoldError, match=r"cannot be checked for uncommitted changes \(fatal: bad config line 1 in fi"
    ):
        upgrade(project)
    assert upgraded(project, allow_dirty=True)


@pytest.mark.parametrize("survives", range(7))
def test_an_upgrade_that_dies_half_way_can_be_repeated(
    project: Path, changed_template: Path, survives: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed before the n-th file is replaced: every file is old or new, and a second run completes it."""
    (project / "Dockerfile").write_text((project / "Dockerfile").read_text() + "LABEL mine=yes\n")
    expected = {each.path: each.text for each in upgrade(project, dry_run=True).changes}
    before = {path: (project / path).read_text() for path in expected if (project / path).exists()}
    calls = 0
    replace = Path.replace

    class Killed(BaseException):
        pass

    def dying(self: Path, target: Path) -> Path:
        nonlocal calls
        calls += 1
        if calls > survives:
            raise Killed
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", dying)
    try:
        upgrade(project)
    except Killed:
        assert load_project(project).template == 1
    for path, text in expected.items():
        now = (project / path).read_text() if (project / path).exists() else None
        assert now in (text, before.get(path))
    monkeypatch.setattr(Path, "replace", replace)
    upgrade(project)
    assert load_project(project).template == 2
    assert {
        path: (project / path).read_text() if text is not None else None for path, text in expected.items()
    } == expected
    assert not (project / ".gitignore").exists()
    assert [path for path in project.rglob("*") if path.name.endswith("ostinato-new")] == []


def test_a_full_disk_changes_nothing(project: Path, changed_template: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {path: path.read_bytes() for path in project.rglob("*") if path.is_file()}
    stage = changes._stage

    def full(root: Path, path: str, text: str) -> tuple[Path, Path]:
        if path == ".ostinato.yaml":
            raise OSError(28, "No space left on device", str(root / path))
        return stage(root, path, text)

    monkeypatch.setattr(changes, "_stage", full)
    with pytest.raises(ScaffoldError, match=r"cannot write .*\.ostinato\.yaml: No space left on device"):
        upgrade(project)
    assert {path: path.read_bytes() for path in project.rglob("*") if path.is_file()} == before


def test_what_is_not_text_is_reported(project: Path, changed_template: Path) -> None:
    (project / "Dockerfile").write_bytes(b"\xff\xfe")
    with pytest.raises(ScaffoldError, match="Dockerfile is not UTF-8 text"):
        upgrade(project)
