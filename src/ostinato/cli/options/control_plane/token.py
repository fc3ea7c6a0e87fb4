"""Options of `ostinato token`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ostinato.cli.options.cluster import add_kubeconfig

if TYPE_CHECKING:
    from ostinato.cli.options.parsed import Commands

_DESCRIPTION = (
    """Create a bootstrap token, with which a machine joins the cluster as a node (`ostinato node --token`)."""
)


def add_to(commands: Commands) -> None:
    parser = commands.add_parser("token", help="create bootstrap tokens for nodes", description=_DESCRIPTION)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    create = actions.add_parser("create", help="create a token and print it")
    create.set_defaults(command=_token, prog=create.prog)
    add_kubeconfig(create)
    create.add_argument(
        "--ttl", metavar="DURATION", default="24h", help="lifetime of the token; 0 never expires (default: %(default)s)"
    )
    create.add_argument(
        "--print-join-command", action="store_true", help="print the `ostinato node` command instead of the token"
    )


def _token(options: argparse.Namespace) -> int:
    from ostinato.cli.commands.control_plane import token as command  # noqa: PLC0415 - loaded when the command is called

    command.create(options)
    return 0
