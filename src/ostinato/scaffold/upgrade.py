"""`ostinato upgrade-template`: bring a project to another version of the template, and keep edits."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import NamedTuple

import msgspec

from ostinato.scaffold import changes
from ostinato.scaffold.changes import Change, Versions
from ostinato.scaffold.error import ScaffoldError
from ostinato.scaffold.project import load_project
from ostinato.scaffold.rendering import render
from ostinato.scaffold.templates import Templates, versions


class Upgrade(NamedTuple):
    old: int
    new: int
    changes: list[Change]


def upgrade(root: Path, *, allow_dirty: bool = False, dry_run: bool = False) -> Upgrade:
    """Merge the newest template into the project in a directory.

    Raises ScaffoldError if its git work tree has uncommitted changes, unless `allow_dirty`. `dry_run`: write nothing.
    """
    load_project(root)  # an error if it is not a project
    with changes.locked(root):
        project = load_project(root)
        newest = versions()[-1]
        old = Templates.recorded(project.template, project.form)
        if project.template == newest:
            return Upgrade(newest, newest, [])
        if not allow_dirty and not dry_run:
            _check_clean(root)
        upgraded = msgspec.structs.replace(project, template=newest)
        files = Versions(render(project, old), render(upgraded, Templates(newest, project.form)))
        planned = changes.plan(root, files, f"template {newest}")
        if not dry_run:
            changes.apply(root, planned, upgraded)
        return Upgrade(project.template, newest, planned)


def _check_clean(root: Path) -> None:
    """Raise ScaffoldError if the directory is in a git work tree with uncommitted changes below it."""
    command = ["git", "-c", "core.fsmonitor=false", "-C", str(root), "status", "--porcelain", "--", "."]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}  # as in hooks
    try:
        status = subprocess.run(  # noqa: S603 - no shell
            command, capture_output=True, text=True, env={**environment, "LC_ALL": "C"}, check=False
        )
    except OSError:  # git is not installed
        return
    problem = ""
    if status.returncode == 0 and status.stdout:
        problem = f"has uncommitted changes ({status.stdout.splitlines()[0].strip()})"
    elif status.returncode != 0 and "not a git repository" not in status.stderr:
        problem = f"cannot be checked for uncommitted changes ({' '.join(status.stderr.split())})"
    if problem:
        raise ScaffoldError(
            f"{root} {problem}; commit them first, so that the upgrade can be undone, or use --allow-dirty"
        )
