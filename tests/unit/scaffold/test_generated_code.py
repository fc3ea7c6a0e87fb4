"""Generated code: formatted, typed, and passing its own tests, also for kinds with awkward names."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ostinato.packaging.overrides import read_overrides
from ostinato.scaffold import Hooks, NewKind, NewProject, Project, Subject, add_controller, add_kind, add_webhook
from ostinato.scaffold.creation import first_project
from ostinato.scaffold.rendering import render
from ostinato.scaffold.templates import Templates

REPOSITORY = Path(__file__).parents[3]
AWKWARD = ("A", "Class", "Object", "Old", "Ready", "Cluster", "Test", "TestRun", "CDN", "HTTPRoute", "Var", "Labels")
BOTH = Hooks(validating=True, mutating=True)


def everything() -> Project:
    project = first_project(NewProject(name="awkward-operator", package="awkward_for_tests", kind="Demo"))
    for name in AWKWARD:
        project = add_kind(project, NewKind(kind=name))
        project = add_webhook(project, Subject(kind=name), BOTH)
    project = add_kind(project, NewKind(kind="World", cluster_scoped=True))
    project = add_kind(project, NewKind(kind="Ox", plural="oxen", image="ox:1"))
    project = add_kind(project, NewKind(kind="Cup", group="bar.example.org"))
    project = add_kind(project, NewKind(kind="Cup"))
    for version in ("v2", "v10beta1"):
        project = add_kind(project, NewKind(kind="Demo", version=version))
    project = add_webhook(project, Subject(kind="Demo"), Hooks(validating=True, conversion=True))
    for kind, version in (("Pod", ""), ("Deployment", ""), ("HorizontalPodAutoscaler", "v2")):
        project = add_controller(project, Subject(kind=kind, version=version))
        project = add_webhook(project, Subject(kind=kind, version=version), BOTH)
    kettle = Subject(kind="Kettle", source="kitchen")
    return add_webhook(add_controller(project, kettle), kettle, BOTH)


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("generated")
    project = everything()
    for path, text in render(project, Templates(project.template)).items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    types = REPOSITORY / "tests" / "data" / "crd" / "kettle.py.txt"
    (root / "src" / project.package / "kitchen.py").write_bytes(types.read_bytes())
    return root


@pytest.mark.parametrize("command", [["check"], ["format", "--check"]])
def test_ruff_accepts_it(generated: Path, command: list[str]) -> None:
    ruff = [sys.executable, "-m", "ruff", *command, "--no-cache", "."]
    ran = subprocess.run(ruff, cwd=generated, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_mypy_accepts_it(generated: Path) -> None:
    """With this repository's settings, which are strict, and with its cache: everything else is checked already."""
    mypy = [sys.executable, "-m", "mypy", str(generated / "src"), str(generated / "tests")]
    environment = {**os.environ, "MYPYPATH": str(generated / "src")}
    ran = subprocess.run(mypy, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.fixture
def importable(generated: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(generated / "src")
    yield
    for name in [name for name in sys.modules if name.startswith("awkward_for_tests")]:
        del sys.modules[name]


@pytest.mark.usefixtures("importable")
def test_tests_of_webhooks_and_conversions_pass(generated: Path) -> None:
    ran = 0
    for path in sorted([*generated.glob("tests/*_webhook.py"), *generated.glob("tests/*_conversion.py")]):
        for name, value in runpy.run_path(str(path)).items():
            if name.startswith("test_"):
                value()
                ran += 1
    assert ran > 50


def test_the_settings_of_the_deployment_are_valid(generated: Path) -> None:
    assert read_overrides(generated / "deploy" / "overrides.yaml").namespace == "awkward-operator-system"
