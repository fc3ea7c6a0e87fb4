"""`ostinato kudo repo` and `ostinato kudo search`."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import msgspec
import yaml

from ostinato.api.time import Time
from ostinato.cli.error import CommandError
from ostinato.frontends.plans.package.files import PackageError
from ostinato.frontends.plans.package.repository import (
    Index,
    Known,
    Repository,
    index_of,
    load_repositories,
    parse_index,
    save_repositories,
)
from ostinato.frontends.plans.package.resolving import Resolved, Resolver
from ostinato.world import World


def home_of(option: str) -> Path:
    return Path(option or os.environ.get("KUDO_HOME") or Path.home() / ".kudo")


class _Lazy(Resolver):
    """The repository of the context; its settings are read when a package is looked for there."""

    def __init__(self, home: Path, name: str) -> None:
        self._home = home
        self._name = name

    async def resolve(self, name: str, app_version: str = "", version: str = "") -> Resolved:
        return await load_repositories(self._home).find(self._name).resolve(name, app_version, version)


def repository_of(home: str, name: str) -> Resolver:
    return _Lazy(home_of(home), name)


def run(name: str, options: argparse.Namespace) -> None:
    """Run a command; CommandError if it fails."""
    try:
        _COMMANDS[name](options)
    except (PackageError, OSError) as error:
        raise CommandError(str(error)) from None


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _add(options: argparse.Namespace) -> None:
    home = home_of(options.home)
    known = load_repositories(home)
    if any(each.name == options.name for each in known.repositories):
        raise PackageError(f"repository {options.name} exists; remove it first")
    if not options.skip_validate:
        Repository(options.name, options.url).index()
    known.repositories = [*known.repositories, Known(name=options.name, url=options.url)]
    save_repositories(home, known)
    _say(f'"{options.name}" has been added to your repositories')


def _list(options: argparse.Namespace) -> None:
    known = load_repositories(home_of(options.home))
    width = max((len(each.name) for each in known.repositories), default=0) + 2
    _say(f"{'NAME':<{width}}URL")
    for each in known.repositories:
        _say(f"{('*' if each.name == known.context else '') + each.name:<{width}}{each.url}")


def _remove(options: argparse.Namespace) -> None:
    home = home_of(options.home)
    known = load_repositories(home)
    known.find(options.name)
    known.repositories = [each for each in known.repositories if each.name != options.name]
    if known.context == options.name:
        known.context = known.repositories[0].name if known.repositories else ""
    save_repositories(home, known)
    _say(f'"{options.name}" has been removed from your repositories')


def _context(options: argparse.Namespace) -> None:
    home = home_of(options.home)
    known = load_repositories(home)
    known.find(options.name)
    known.context = options.name
    save_repositories(home, known)
    _say(f"{options.name} is now set as the default context")


def _index(options: argparse.Namespace) -> None:
    directory = Path(options.directory)
    target = directory / "index.yaml"
    if not directory.is_dir():
        raise PackageError(f"{directory}: no such directory")
    if target.exists() and not options.overwrite:
        raise PackageError(f"{target} exists; use --overwrite")
    index = index_of(directory, options.url)
    if options.merge:
        _merge(index, parse_index(Path(options.merge).read_text(), options.merge))
    world = World.real()
    index.generated = str(Time.of(world.clock.now()))
    world.executor.close()
    target.write_text(yaml.safe_dump(msgspec.to_builtins(index), sort_keys=False))
    _say(f"index {target} created.")


def _merge(index: Index, other: Index) -> None:
    for name, versions in other.entries.items():
        present = index.entries.setdefault(name, [])
        have = {(each.app_version, each.operator_version) for each in present}
        present += [each for each in versions if (each.app_version, each.operator_version) not in have]
    index.sort()


def _search(options: argparse.Namespace) -> None:
    index = load_repositories(home_of(options.home)).find(options.repo).index()
    rows = [
        (each.name, each.operator_version, each.app_version, each.description)
        for name, versions in sorted(index.entries.items())
        for each in (versions if options.all_versions else versions[:1])
        if options.words in name and not each.removed
    ]
    if not rows:
        _say("no packages found")
        return
    titles = ("NAME", "OPERATOR VERSION", "APP VERSION", "DESCRIPTION")
    widths = [max(map(len, column)) + 2 for column in zip(titles, *rows, strict=True)]
    for row in (titles, *rows):
        _say("".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())


_COMMANDS = {
    "add": _add,
    "list": _list,
    "remove": _remove,
    "context": _context,
    "index": _index,
    "search": _search,
}
