"""Options of `ostinato envtest`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from ostinato.cli.options.extras import require_server

if TYPE_CHECKING:
    from ostinato.cli.options.parsed import Commands

_DESCRIPTION = """Run test suites that use envtest of controller-runtime on Ostinato's API server. They start the
programs etcd, kube-apiserver and kubectl from the directory KUBEBUILDER_ASSETS, which this command writes."""


def add_to(commands: Commands) -> None:
    parser = commands.add_parser(
        "envtest", help="run Go test suites that use envtest on this API server", description=_DESCRIPTION
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    path = actions.add_parser("path", help="write the directory and print its path", description=_DESCRIPTION)
    path.set_defaults(command=_path, prog=path.prog)
    run = actions.add_parser(
        "run",
        usage="%(prog)s [-h] [--bin-dir DIR] -- COMMAND [ARGUMENT]...",
        help="run a command with KUBEBUILDER_ASSETS set to the directory",
        description="Run a command with KUBEBUILDER_ASSETS set to the directory: ostinato envtest run -- go test ./...",
    )
    run.set_defaults(command=_run, prog=run.prog)
    run.add_argument("arguments", metavar="COMMAND", nargs="+", help="command and its arguments")
    for each in (path, run):
        each.add_argument(
            "--bin-dir",
            metavar="DIR",
            type=Path,
            help="the directory (default: below ostinato/envtest in $XDG_CACHE_HOME or ~/.cache, one per installation)",
        )


def _path(options: argparse.Namespace) -> int:
    require_server()
    from ostinato.cli.commands.control_plane import envtest  # noqa: PLC0415 - `ostinato --help` does not load it

    envtest.path(options.bin_dir)
    return 0


def _run(options: argparse.Namespace) -> int:
    require_server()
    from ostinato.cli.commands.control_plane import envtest  # noqa: PLC0415

    envtest.run(options.bin_dir, options.arguments)
