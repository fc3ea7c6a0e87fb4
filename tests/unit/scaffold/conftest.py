from __future__ import annotations

from pathlib import Path
from shutil import copytree

import pytest

from ostinato.scaffold import NewProject, create, templates


@pytest.fixture(scope="session")
def new_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("new") / "demo"
    create(root, NewProject(name="demo"))
    return root


@pytest.fixture
def project(new_project: Path, tmp_path: Path) -> Path:
    """A new project in a directory of its own."""
    return copytree(new_project, tmp_path / "demo")


@pytest.fixture
def next_template(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Template 2, for now a copy of template 1; tests change it."""
    root = tmp_path / "templates"
    for version in ("1", "2"):
        copytree(templates.ROOT / "1", root / version)
    monkeypatch.setattr(templates, "ROOT", root)
    return root / "2"
