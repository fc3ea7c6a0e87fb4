"""Options of `ostinato snapshot`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ostinato.cli.options.cluster import add_state
from ostinato.cli.options.server import etcd

if TYPE_CHECKING:
    from ostinato.cli.options.parsed import Commands

_DESCRIPTION = """Save, restore or check the objects of an API server, in a SQLite store or in etcd. A snapshot does not
contain the certificates and keys of the state directory."""


def add_to(commands: Commands) -> None:
    parser = commands.add_parser("snapshot", help="save and restore stored objects", description=_DESCRIPTION)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    save = actions.add_parser("save", help="write the objects to a new file; the server may be running")
    save.add_argument("file", metavar="FILE", help="snapshot to write")
    restore = actions.add_parser("restore", help="replace the objects of stopped servers; old files of SQLite are kept")
    restore.add_argument("file", metavar="FILE", help="snapshot to read")
    status = actions.add_parser("status", help="check a store or a snapshot")
    status.add_argument("file", metavar="FILE", nargs="?", help="snapshot (default: the server's store)")
    for name, action in (("save", save), ("restore", restore), ("status", status)):
        action.set_defaults(command=_snapshot, prog=action.prog, action=name)
        add_state(action)
        action.add_argument(
            "--store",
            metavar="sqlite:PATH|etcd://HOST:PORT,...",
            default="",
            help="store of the server (default: store.db in the state directory)",
        )
        etcd.add_to(action)


def _snapshot(options: argparse.Namespace) -> int:
    from ostinato.cli.commands.control_plane import snapshot  # noqa: PLC0415 - loaded when the command is called

    snapshot.run(options)
    return 0
