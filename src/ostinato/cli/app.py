"""Argument parser and entry point of the `ostinato` command.

- `options/` declares the arguments of each command and loads nothing else.
- `commands/` runs them; a command's module is loaded when the command is called.

The parser is argparse: typer adds 130 ms to the start of `ostinato apiserver` (it validates options with pydantic),
argparse about 10 ms.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any, Final

from ostinato.cli.error import CommandError
from ostinato.cli.options import (
    completion,
    demo,
    explore,
    looking,
    manifests,
    package,
    project,
    score,
    types,
)
from ostinato.cli.options import run as run_options
from ostinato.cli.options.control_plane import components, envtest, images, node, serve, snapshot, token, user
from ostinato.cli.options.frontends import chart, hooks, kudo, meta, replay, watches
from ostinato.cli.parser import Parser, error_prefix, grouped_help

# The groups of `ostinato --help`, and the modules that declare their commands.
_GROUPS: Final = {
    "projects": (project,),
    "controllers": (run_options, hooks, kudo, meta, watches, manifests, types, replay, explore),
    "delivery": (package, score, chart),
    "cluster on this machine": (demo, serve, snapshot, user, envtest),
    "live page": (looking,),
    "parts of a cluster": (components, node, images, token),
    "shell": (completion,),
}


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. `arguments`: defaults to those of the process."""
    parser = make_parser()
    options = parser.parse_args(arguments)
    if not hasattr(options, "command"):
        parser.print_help()
        return 0
    try:
        code: int = options.command(options)
    except CommandError as error:
        sys.stderr.write(f"{error_prefix(options.prog, sys.stderr)} {error}\n")
        return 1
    except KeyboardInterrupt:  # before the command has installed its signal handlers
        return 130
    return code


def make_parser() -> Parser:
    parser = _Program(
        prog="ostinato",
        description="Kubernetes controllers in Python, and a control plane to run them against, in one process.",
    )
    parser.add_argument("--version", action=_Version, help="print the version and exit")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", parser_class=Parser)
    for title, modules in _GROUPS.items():
        before = set(parser.commands())
        for options in modules:
            options.add_to(commands)
        parser.groups.append((title, [name for name in parser.commands() if name not in before]))
    return parser


class _Program(Parser):
    def __init__(self, **named: Any) -> None:
        super().__init__(**named)
        self.groups: list[tuple[str, Sequence[str]]] = []  # of commands: title and names

    def format_help(self) -> str:
        return grouped_help(self, self.groups)


class _Version(argparse.Action):
    def __init__(self, **named: Any) -> None:
        super().__init__(nargs=0, default=argparse.SUPPRESS, **named)  # absent from the options of commands

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version  # noqa: PLC0415 - slower to import than the rest of this module

        sys.stdout.write(f"ostinato {version('ostinato')}\n")
        parser.exit()
