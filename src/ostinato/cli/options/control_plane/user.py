"""Options of `ostinato user`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ostinato.cli.options.cluster import add_state
from ostinato.cli.options.extras import require_server

if TYPE_CHECKING:
    from ostinato.cli.options.parsed import Commands

_DESCRIPTION = """Write kubeconfigs for users of a server, with client certificates signed by its certificate authority.
The server may be running. A certificate is valid until it expires; it cannot be revoked."""


def add_to(commands: Commands) -> None:
    parser = commands.add_parser("user", help="write kubeconfigs for users", description=_DESCRIPTION)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    add = actions.add_parser("add", help="write a kubeconfig for a user")
    add.set_defaults(command=_user, prog=add.prog)
    add.add_argument("name", metavar="NAME", help="user name, as RBAC bindings refer to it")
    add.add_argument("--group", metavar="GROUP", action="append", default=[], help="group of the user; may be repeated")
    add.add_argument("--out", metavar="FILE", help="kubeconfig to write (default: NAME.kubeconfig)")
    add.add_argument(
        "--expires",
        metavar="DURATION",
        default="365d",
        help="lifetime of the certificate, for example 30d or 8h (default: %(default)s)",
    )
    add.add_argument("--server", metavar="URL", help="URL of the server (default: that of admin.kubeconfig)")
    add.add_argument(
        "--allow-system",
        action="store_true",
        help="allow user and group names that begin with system:; members of system:masters have every permission",
    )
    add_state(add)


def _user(options: argparse.Namespace) -> int:
    require_server()
    from ostinato.cli.commands.control_plane import user  # noqa: PLC0415 - loaded when the command is called

    user.add(options)
    return 0
