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
from typing import Any

from ostinato.cli.error import CommandError
from ostinato.cli.options import components, demo, manifests, node, serve, snapshot, token, types, user
from ostinato.cli.options import run as run_options


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. `arguments`: defaults to those of the process."""
    options = make_parser().parse_args(arguments)
    try:
        code: int = options.command(options)
    except CommandError as error:
        sys.stderr.write(f"{options.prog}: {error}\n")
        return 1
    except KeyboardInterrupt:  # before the command has installed its signal handlers
        return 130
    return code


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ostinato",
        description="Kubernetes controllers in Python, and a control plane to run them against, in one process.",
    )
    parser.add_argument("--version", action=_Version, help="print the version and exit")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for options in (run_options, manifests, types, demo, serve, snapshot, user, components, node, token):
        options.add_to(commands)
    return parser


class _Version(argparse.Action):
    def __init__(self, **named: Any) -> None:
        super().__init__(nargs=0, default=argparse.SUPPRESS, **named)  # absent from the options of commands

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version  # noqa: PLC0415 - slower to import than the rest of this module

        sys.stdout.write(f"ostinato {version('ostinato')}\n")
        parser.exit()
