"""New projects."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest
import yaml

from ostinato.scaffold import NewProject, ScaffoldError, create, load_project


def files(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_a_project_has_its_files_and_its_record(project: Path) -> None:
    assert sorted(files(project)) == [
        ".github/workflows/ci.yaml",
        ".gitignore",
        ".ostinato.yaml",
        "Dockerfile",
        "Makefile",
        "README.md",
        "deploy/overrides.yaml",
        "pyproject.toml",
        "requirements.lock",
        "samples/demo_v1.yaml",
        "src/demo/__init__.py",
        "src/demo/demo_controller.py",
        "src/demo/demo_v1.py",
        "tests/test_demo_controller.py",
    ]
    record = load_project(project)
    assert (record.template, record.name, record.package) == (1, "demo", "demo")
    (kind,) = record.kinds
    assert kind.label == "Demo demo.example.dev/v1"
    settings = tomllib.loads((project / "pyproject.toml").read_text())
    assert settings["tool"]["ostinato"] == {"run": "demo"}
    assert settings["project"]["dependencies"] == ["ostinato>=0.1"]
    sample = yaml.safe_load((project / "samples" / "demo_v1.yaml").read_text())
    assert (sample["apiVersion"], sample["kind"]) == ("demo.example.dev/v1", "Demo")
    assert "<<" not in "".join(text.decode() for text in files(project).values())


def test_answers_replace_what_follows_from_the_name(tmp_path: Path) -> None:
    new = NewProject(
        name="tea-shop-operator",
        package="shop",
        group="tea.example.org",
        version="v1alpha1",
        kind="TeaPot",
        image="tea:2",
    )
    create(tmp_path / "shop", new)
    text = (tmp_path / "shop" / "src" / "shop" / "tea_pot_v1alpha1.py").read_text()
    assert 'group="tea.example.org"' in text
    assert 'image: Annotated[str, Len(1, 255)] = "tea:2"' in text
    with pytest.raises(
        ScaffoldError, match="kind 'Pod': generated modules import a class PodSpec; choose another kind; set --kind"
    ):
        create(tmp_path / "pod", NewProject(name="pod"))
    assert not (tmp_path / "pod").exists()


def test_a_second_init_changes_nothing(project: Path) -> None:
    before = files(project)
    with pytest.raises(ScaffoldError, match="is a project already; use ostinato add"):
        create(project, NewProject(name="demo"), force=True)
    assert files(project) == before


def test_existing_files_are_kept_unless_forced(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("mine\n")
    (tmp_path / "LICENSE").write_text("mine\n")
    with pytest.raises(ScaffoldError, match=r"has files that would be replaced: Makefile; .*--directory.*--force"):
        create(tmp_path, NewProject(name="demo"))
    assert sorted(files(tmp_path)) == ["LICENSE", "Makefile"]
    done = create(tmp_path, NewProject(name="demo"), force=True)
    assert [each.path for each in done if each.action == "update"] == ["Makefile"]
    assert (tmp_path / "Makefile").read_text() != "mine\n"
    assert (tmp_path / "LICENSE").read_text() == "mine\n"


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    done = create(tmp_path / "demo", NewProject(name="demo"), dry_run=True)
    assert {each.action for each in done} == {"create"}
    assert not (tmp_path / "demo").exists()


def test_nothing_is_written_through_a_symbolic_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "src").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ScaffoldError, match="src is a symbolic link"):
        create(tmp_path / "demo", NewProject(name="demo"), force=True)
    assert files(tmp_path / "elsewhere") == {}


def test_a_directory_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ScaffoldError, match=r"cannot create .*demo: Not a directory"):
        create(tmp_path / "file" / "demo", NewProject(name="demo"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_may_not_be_written_is_reported(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(ScaffoldError, match="Permission denied"):
        create(tmp_path / "demo", NewProject(name="demo"))
