"""Templates of other forms of operators than controllers: what they replace, and that their projects work."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ostinato.cli.app import run
from ostinato.scaffold import (
    NewKind,
    NewProject,
    ScaffoldError,
    add_kind,
    create,
    extend,
    load_project,
    upgrade,
)
from ostinato.scaffold.templates import forms, versions

REPOSITORY = Path(__file__).parents[3]
PIPES = """\
extras: [webhook]
project:
  run.sh: src/<<package>>/pipes/<<plural>>.sh
  test.py: tests/test_<<module>>.py
"""


@pytest.fixture
def pipes(next_template: Path) -> Path:
    """A form in template 1, and with a change in template 2."""
    for version in ("1", "2"):
        form = next_template.parent / version / "forms" / "pipes"
        form.mkdir(parents=True)
        (form / "files.yaml").write_text(PIPES)
        (form / "run.sh.tmpl").write_text("#!/bin/sh\necho <<kind>> <<group>>/<<version>>\n")
        (form / "test.py.tmpl").write_text(f"VERSION = {version}\n")
        (form / "README.md.tmpl").write_text("# <<name>>, pipes\n")
    return next_template


def new(root: Path, version: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ostinato.scaffold.creation.versions", lambda: [version])
        create(root, NewProject(name="demo", form="pipes", kind="Cup"))


def test_a_form_adds_files_and_replaces_templates_of_the_project(pipes: Path, tmp_path: Path) -> None:
    root = tmp_path / "demo"
    new(root, 1)
    assert load_project(root).form == "pipes"
    assert (root / "src/demo/pipes/cups.sh").read_text() == "#!/bin/sh\necho Cup demo.example.dev/v1\n"
    assert os.access(root / "src/demo/pipes/cups.sh", os.X_OK)
    assert not os.access(root / "tests/test_cup.py", os.X_OK)
    assert (root / "README.md").read_text() == "# demo, pipes\n"
    assert '"ostinato[webhook]>=' in (root / "pyproject.toml").read_text()
    assert (root / "Makefile").exists()
    assert not list(root.glob("src/demo/*_controller.py"))
    assert pipes.exists()


@pytest.mark.usefixtures("pipes")
def test_an_upgrade_stays_with_the_form(tmp_path: Path) -> None:
    root = tmp_path / "demo"
    new(root, 1)
    done = upgrade(root, allow_dirty=True)
    assert [(each.action, each.path) for each in done.changes] == [("update", "tests/test_cup.py")]
    assert (root / "tests/test_cup.py").read_text() == "VERSION = 2\n"


@pytest.mark.usefixtures("pipes")
def test_additions_are_for_projects_with_controllers(tmp_path: Path) -> None:
    root = tmp_path / "demo"
    new(root, 1)
    with pytest.raises(ScaffoldError, match=r"a project of the template pipes; .* write a module into src/demo"):
        extend(root, lambda project: add_kind(project, NewKind(kind="Pot")))


@pytest.mark.usefixtures("pipes")
def test_an_unknown_form_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ScaffoldError, match=r"no template 'pipe'; templates are default, .*pipes"):
        create(tmp_path / "demo", NewProject(name="demo", form="pipe"))
    assert not (tmp_path / "demo").exists()


def test_a_record_cannot_name_a_directory_elsewhere(project: Path) -> None:
    record = project / ".ostinato.yaml"
    record.write_text(record.read_text() + "form: ../../x\n")
    with pytest.raises(ScaffoldError, match="is not a name of a template"):
        load_project(project)


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A project of each form."""
    roots = []
    for form in forms(versions()[-1]):
        root = tmp_path_factory.mktemp("forms") / form
        create(root, NewProject(name=f"demo-{form}", form=form))
        roots.append(root)
    return roots


@pytest.mark.parametrize("command", [["check"], ["format", "--check"]])
def test_ruff_accepts_projects_of_all_forms(generated: list[Path], command: list[str]) -> None:
    for root in generated:
        ruff = [sys.executable, "-m", "ruff", *command, "--no-cache", "."]
        ran = subprocess.run(ruff, cwd=root, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_tests_of_projects_of_all_forms_pass(generated: list[Path], tmp_path: Path) -> None:
    """In one process: a package of each, and test modules with the same names."""
    if not generated:
        pytest.skip("there are no other forms")
    sources = [str(root / "src") for root in generated]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*sources, str(REPOSITORY / "src")])}
    command = [sys.executable, "-m", "pytest", "-q", "--import-mode=importlib", "-p", "no:cacheprovider"]
    places = ["-c", str(generated[0] / "pyproject.toml"), f"--rootdir={tmp_path}", f"--basetemp={tmp_path / 'made'}"]
    tests = [str(root / "tests") for root in generated]
    ran = subprocess.run(
        [*command, *places, *tests], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "skipped" not in ran.stdout, ran.stdout


def test_the_help_names_every_form(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run(["init", "--help"])
    text = capsys.readouterr().out
    assert [form for form in forms(versions()[-1]) if form not in text] == []
