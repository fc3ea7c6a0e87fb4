"""`ostinato init`, `add` and `upgrade-template`: generate, extend and upgrade a project."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ostinato import scaffold
from ostinato.cli.error import CommandError
from ostinato.scaffold import Change, Hooks, NewKind, NewProject, Project, ScaffoldError, Subject


def init(options: argparse.Namespace) -> int:
    root = Path(options.directory or options.name)
    new = NewProject(
        name=options.name,
        package=options.package,
        group=options.group,
        version=options.version,
        kind=options.kind,
        image=options.image,
        form="" if options.template == "default" else options.template,
    )
    with _errors():
        changes = scaffold.create(root, new, force=options.force, dry_run=options.dry_run)
    _report(changes, root)
    if not options.dry_run:
        enter = "" if root.resolve() == Path.cwd() else f"cd {shlex.quote(str(root))} && "
        sys.stdout.write(f"next: {enter}make test && ostinato run --embedded\n")
    return 0


def add_kind(options: argparse.Namespace) -> int:
    new = NewKind(
        kind=options.kind,
        group=options.group,
        version=options.version,
        plural=options.plural,
        cluster_scoped=options.cluster_scoped,
        image=options.image,
        controller=not options.no_controller,
    )
    return _extend(options, lambda project: scaffold.add_kind(project, new))


def add_controller(options: argparse.Namespace) -> int:
    subject = _subject(options)
    return _extend(options, lambda project: scaffold.add_controller(project, subject, options.name))


def add_webhook(options: argparse.Namespace) -> int:
    hooks = Hooks(validating=options.validating, mutating=options.mutating, conversion=options.conversion)
    subject = _subject(options)
    return _extend(options, lambda project: scaffold.add_webhook(project, subject, hooks))


def upgrade(options: argparse.Namespace) -> int:
    root = _root()
    with _errors():
        done = scaffold.upgrade(root, allow_dirty=options.allow_dirty, dry_run=options.dry_run)
    if done.old == done.new:
        sys.stdout.write(f"template {done.new} is the newest; nothing to do\n")
        return 0
    sys.stdout.write(f"template {done.old} to {done.new}\n")
    return _report(done.changes, root)


def _extend(options: argparse.Namespace, addition: Callable[[Project], Project]) -> int:
    root = _root()
    with _errors():
        changes = scaffold.extend(root, addition, force=options.force, dry_run=options.dry_run)
    return _report(changes, root)


def _root() -> Path:
    """Return the directory of the project, as a short path."""
    return Path(os.path.relpath(scaffold.find_project(Path())))


def _subject(options: argparse.Namespace) -> Subject:
    return Subject(kind=options.kind, group=options.group, version=options.version, source=options.source)


def _report(changes: Sequence[Change], root: Path) -> int:
    """Print the changes; return the exit code: 1 if there are conflicts."""
    for each in changes:
        note = f"  ({each.note})" if each.note else ""
        sys.stdout.write(f"{each.action:<8} {root / each.path}{note}\n")
    if any(each.path == "pyproject.toml" and each.action != "create" for each in changes):
        sys.stdout.write("next: make lock (pyproject.toml has changed)\n")
    conflicts = [str(root / each.path) for each in changes if each.action == "conflict"]
    if conflicts:
        sys.stderr.write(f"resolve the conflicts between the markers in {', '.join(conflicts)}\n")
    return 1 if conflicts else 0


@contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except ScaffoldError as error:
        raise CommandError(str(error)) from None
