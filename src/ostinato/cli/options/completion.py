"""Options of `ostinato completion`."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ostinato.cli.options.parsed import Commands

_DESCRIPTION = """Print the completion script of a shell. It completes commands, options, their values and files.

  bash:  source <(ostinato completion bash)                          (in ~/.bashrc)
  zsh:   source <(ostinato completion zsh)                           (in ~/.zshrc, after compinit)
  fish:  ostinato completion fish > ~/.config/fish/completions/ostinato.fish
"""


def add_to(commands: Commands) -> None:
    parser = commands.add_parser(
        "completion",
        help="print the completion script of a shell",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(command=_completion, prog=parser.prog)
    parser.add_argument("shell", metavar="SHELL", choices=("bash", "zsh", "fish"), help="bash, zsh or fish")


def _completion(options: argparse.Namespace) -> int:
    from importlib import import_module  # noqa: PLC0415 - loaded when the command is called

    from ostinato.cli.app import make_parser  # noqa: PLC0415 - it imports this module
    from ostinato.cli.completion.words import words_of  # noqa: PLC0415

    script: str = import_module(f"ostinato.cli.completion.{options.shell}").script(words_of(make_parser()))
    sys.stdout.write(script)
    return 0
