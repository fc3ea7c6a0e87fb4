"""Log levels of `ostinato run`.

| | controllers and modules of the program | framework | embedded control plane |
|---|---|---|---|
| | INFO | INFO | WARNING |
| `-v` | DEBUG: one line per reconcile | INFO | WARNING |
| `-vv` | DEBUG | DEBUG | WARNING |

`--log-level LOGGER=LEVEL` overrides the level of a logger and of those below it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Final

from ostinato.cli.error import CommandError
from ostinato.cli.program.program import Program

FRAMEWORK: Final = "ostinato"
PLANE: Final = "ostinato.plane"
SERVER: Final = "ostinato.server"

Levels = Mapping[str, str]

_NAMES: Final = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


def parse_levels(texts: Iterable[str]) -> Levels:
    """Parse the values of --log-level: LOGGER=LEVEL, or LEVEL for all loggers (the root logger)."""
    levels = {}
    for text in texts:
        name, equals, level = text.rpartition("=")
        level = level.upper()
        if level not in _NAMES or (equals and not name):
            raise CommandError(f"--log-level {text}: use LOGGER=LEVEL; LEVEL is one of {', '.join(_NAMES)}")
        levels[name or "root"] = level
    return levels


def initial_levels(verbosity: int, overrides: Levels, *, embedded: bool) -> Levels:
    """Return the levels before the program is loaded. `verbosity`: how often -v was given."""
    framework = {FRAMEWORK: "DEBUG"} if verbosity > 1 else {}
    plane = {PLANE: "WARNING", SERVER: "WARNING"} if embedded else {}
    return {**framework, **plane, **overrides}


def program_levels(program: Program, verbosity: int, overrides: Levels) -> Levels:
    """Return the levels of the loggers of a program: those of its controllers and of its modules."""
    if not verbosity:
        return {}
    names = [
        manager.reporting.logger.getChild(runnable.name).name
        for manager in program.managers
        for runnable in manager.runnables
    ]
    names += [module.__name__.partition(".")[0] for module in program.modules]
    return {name: "DEBUG" for name in names if name != FRAMEWORK and name not in overrides}


def set_levels(levels: Levels) -> None:
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)
