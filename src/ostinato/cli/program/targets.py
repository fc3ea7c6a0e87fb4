"""The files, modules and packages of a program: those of the command line, else those of the project.

    [tool.ostinato]
    run = "shop"                      # or ["shop.controllers", "shop/webhooks.py"]

The project is the nearest pyproject.toml with this table, from the working directory upwards. Files are relative to it;
modules are imported from its directory and from `src` in it.
"""

from __future__ import annotations

import os
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ostinato.cli.error import CommandError


def targets(given: Sequence[str]) -> list[str]:
    """Return the targets of the command line, or those of the project; CommandError if there are none."""
    if given:
        return list(given)
    for directory in (Path.cwd(), *Path.cwd().parents):
        project = directory / "pyproject.toml"
        if project.is_file() and (table := _table(project)) is not None:
            return _targets_of(project, table.get("run"))
    raise CommandError("name a FILE, or set `run` in [tool.ostinato] of pyproject.toml")


def _table(project: Path) -> dict[str, Any] | None:
    try:
        with project.open("rb") as file:
            tools = tomllib.load(file).get("tool")
    except (OSError, ValueError) as error:
        raise CommandError(f"{project}: cannot be read: {error}") from None
    table = tools.get("ostinato") if isinstance(tools, dict) else None
    return table if isinstance(table, dict) else None


def _targets_of(project: Path, value: object) -> list[str]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not names or not all(isinstance(each, str) and each for each in names):
        raise CommandError(f'{project}: tool.ostinato.run: set a module or a file, such as run = "shop.controllers"')
    for directory in (project.parent / "src", project.parent):
        if directory.is_dir() and str(directory) not in sys.path:
            sys.path.insert(0, str(directory))
    is_path = [each.endswith(".py") or os.sep in each for each in names]
    return [str(project.parent / each) if path else each for each, path in zip(names, is_path, strict=True)]
