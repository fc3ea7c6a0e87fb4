"""A new project: `ostinato init`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from ostinato.scaffold import changes, lock, names
from ostinato.scaffold.changes import Change
from ostinato.scaffold.error import ScaffoldError
from ostinato.scaffold.project import RECORD, Controller, Kind, Project
from ostinato.scaffold.rendering import render
from ostinato.scaffold.templates import Templates, versions

LOCK = "requirements.lock"


class NewProject(msgspec.Struct, frozen=True, kw_only=True):
    """Answers for a new project. Empty ones follow from the name."""

    name: str
    package: str = ""
    group: str = ""
    version: str = "v1"
    kind: str = ""
    image: str = "nginx"
    form: str = ""  # of the operator; "" for controllers


def create(root: Path, new: NewProject, *, force: bool = False, dry_run: bool = False) -> list[Change]:
    """Generate a project and return its files.

    Raises ScaffoldError if a name is invalid, the directory has a project, or a file exists with other contents.
    `force`: replace such files. `dry_run`: write nothing.
    """
    project = first_project(new)
    templates = Templates(project.template, project.form)
    files = {**render(project, templates), LOCK: lock.installed("ostinato", templates.extras)}
    if dry_run:
        return _planned(root, files, force=force)
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ScaffoldError(f"cannot create {root}: {error.strerror}") from None
    with changes.locked(root):
        planned = _planned(root, files, force=force)
        changes.apply(root, planned, project)
    return planned


def _planned(root: Path, files: Mapping[str, str], *, force: bool) -> list[Change]:
    if (root / RECORD).exists():
        raise ScaffoldError(
            f"{root} is a project already; use ostinato add, or ostinato upgrade-template for a new template"
        )
    taken = changes.existing(root, files)
    if taken and not force:
        raise ScaffoldError(
            f"{root} has files that would be replaced: {', '.join(taken)}; "
            "choose another directory with --directory, or replace them with --force"
        )
    return [Change("update" if path in taken else "create", path, text) for path, text in sorted(files.items())]


def first_project(new: NewProject) -> Project:
    """Return the record of a new project: one kind, and a controller that keeps a Deployment for it.

    A project of another form has no controller.
    """
    names.check_project(new.name)
    kind = _first_kind(new)
    group = names.check_group(new.group or f"{new.name}.example.dev")
    version = names.check_version(new.version)
    module = names.module_of(kind)
    image = names.check_image(new.image)
    return Project(
        template=versions()[-1],
        name=new.name,
        package=names.check_package(new.package or new.name.replace("-", "_")),
        kinds=(Kind(group=group, version=version, kind=kind, module=module, image=image),),
        form=new.form,
        controllers=() if new.form else (Controller(group=group, version=version, kind=kind, module=module),),
    )


def _first_kind(new: NewProject) -> str:
    try:
        return names.check_kind(new.kind or names.kind_of_project(new.name))
    except ScaffoldError as error:
        raise ScaffoldError(f"{error}; set --kind") from None
