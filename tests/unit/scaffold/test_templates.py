"""The templates: complete, and unchanged once released."""

from __future__ import annotations

import ast
import hashlib

from ostinato.api.wire.yaml import decode_yaml
from ostinato.scaffold import Hooks, NewKind, NewProject, Project, Subject, add_controller, add_kind, add_webhook, names
from ostinato.scaffold.creation import first_project
from ostinato.scaffold.rendering import render
from ostinato.scaffold.templates import ROOT, Templates, forms, versions

RELEASED: dict[int, str] = {}  # digests by version; add that of a version when it is released


def everything(version: int) -> Project:
    """A project with every part that can be generated."""
    project = first_project(NewProject(name="tea-shop"))
    project = add_kind(project, NewKind(kind="Cup"))
    project = add_kind(project, NewKind(kind="Ox", plural="oxen", cluster_scoped=True))
    project = add_kind(project, NewKind(kind="Cup", version="v2"))
    project = add_controller(project, Subject(kind="Pod"))
    project = add_webhook(project, Subject(kind="Cup"), Hooks(validating=True, mutating=True, conversion=True))
    project = add_webhook(project, Subject(kind="Pod"), Hooks(validating=True))
    return Project(**{name: getattr(project, name) for name in project.__struct_fields__} | {"template": version})


def test_every_template_is_used() -> None:
    for version in versions():
        index = decode_yaml((ROOT / str(version) / "files.yaml").read_bytes())
        named = {f"{template}.tmpl" for part in index.values() for template in part}
        found = {path.name for path in (ROOT / str(version)).iterdir()} - {"files.yaml", "forms"}
        assert found - named <= {"converter.py.tmpl", "conversion_test.py.tmpl"}
        assert named <= found
        common = {f"{template}.tmpl" for template in index["project"]}
        for form in forms(version):
            directory = ROOT / str(version) / "forms" / form
            own = {f"{template}.tmpl" for template in decode_yaml((directory / "files.yaml").read_bytes())["project"]}
            found = {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()} - {
                "files.yaml"
            }
            assert own <= found <= own | common


def test_released_templates_generate_the_same_files() -> None:
    """They are the base of merges: change a copy with the next number instead."""
    for version, digest in RELEASED.items():
        files = render(everything(version), Templates(version))
        text = "".join(f"{path}\n{text}" for path, text in sorted(files.items()))
        assert hashlib.sha256(text.encode()).hexdigest() == digest
    assert set(RELEASED) <= set(versions())


def test_all_parts_are_rendered() -> None:
    files = render(everything(versions()[-1]), Templates(versions()[-1]))
    assert len(files) == len({path.lower() for path in files})
    assert [path for path, text in files.items() if "<<" in text or not text.endswith("\n")] == []
    assert 'plural="oxen",\n    namespaced=False,\n' in files["src/tea_shop/ox_v1.py"]


def test_kinds_cannot_hide_what_generated_modules_import() -> None:
    files = render(everything(versions()[-1]), Templates(versions()[-1]))
    imports = [
        alias.name
        for path, text in files.items()
        if path.endswith(".py")
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom) and not (node.module or "").startswith("tea_shop")
        for alias in node.names
    ]
    assert {name for name in imports if name[0].isupper()} - {"Pod"} == names._CLASSES
