"""Options of `ostinato watches`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ostinato.cli.options.parsed import values
from ostinato.cli.options.run import add_run_options

if TYPE_CHECKING:
    from ostinato.cli.options.parsed import Commands

_DESCRIPTION = """Run the charts, roles and playbooks of operator-sdk's watches.yaml until SIGINT or SIGTERM. The
CustomResourceDefinitions of its kinds must exist, or be given with --crds."""
_OWN = ("file", "crds", "artifacts", "workers", "reconcile_period", "ansible_verbosity")


def add_to(commands: Commands) -> None:
    parser = commands.add_parser("watches", help="run the charts and roles of a watches.yaml", description=_DESCRIPTION)
    parser.set_defaults(command=_watches, prog=parser.prog)
    parser.add_argument("file", metavar="FILE", nargs="?", default="watches.yaml", help="default: watches.yaml")
    parser.add_argument(
        "--crds",
        metavar="PATH",
        action="append",
        default=[],
        help="file or directory with CustomResourceDefinitions to create or update first; repeatable",
    )
    parser.add_argument(
        "--artifacts",
        metavar="DIR",
        help="keep inputs and artifacts of Ansible here; of this user alone (default: removed at the end)",
    )
    parser.add_argument(
        "--workers", metavar="N", type=int, default=0, help="concurrent reconciles of a kind (default: see the docs)"
    )
    parser.add_argument(
        "--reconcile-period",
        metavar="DURATION",
        default="",
        help="of entries that do not set it (default: 10h for roles, 1m for charts)",
    )
    parser.add_argument(
        "--ansible-verbosity", metavar="0..7", type=int, default=2, help="of ansible-playbook (default: 2)"
    )
    add_run_options(parser)


def _watches(options: argparse.Namespace) -> int:
    from ostinato.cli.commands.frontends import watches as command  # noqa: PLC0415 - loaded when the command is called

    given = values(options)
    own = {name: given.pop(name) for name in _OWN}
    command.watches(command.WatchesCommand(**own), given)
    return 0
