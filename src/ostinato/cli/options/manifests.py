"""Options of `ostinato manifests`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ostinato.cli.options.cluster import add_metrics_secure
from ostinato.cli.options.parsed import values

if TYPE_CHECKING:
    from ostinato.cli.options.parsed import Commands

_DESCRIPTION = """Write the manifests that a program needs in a cluster: CustomResourceDefinitions of its kinds, a
ServiceAccount with its RBAC roles, and webhook configurations. The output depends on the program alone."""


def add_to(commands: Commands) -> None:
    parser = commands.add_parser("manifests", help="write CRDs, RBAC roles and webhooks", description=_DESCRIPTION)
    parser.set_defaults(command=_manifests, prog=parser.prog)
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="*",
        help="Python file, or name of a module or package (default: `run` in [tool.ostinato] of pyproject.toml)",
    )
    parser.add_argument("-o", "--output", metavar="DIR", help="directory to write (default: standard output)")
    parser.add_argument("--check", action="store_true", help="write nothing; print differences and exit 1 if any")
    parser.add_argument("--name", default="", help="name of the roles and bindings (default: that of the first file)")
    parser.add_argument(
        "--account", metavar="NS/NAME", default="", help="ServiceAccount (default: the roles' name in default)"
    )
    parser.add_argument(
        "-n", "--namespace", metavar="NS", default="", help="write Roles for this namespace, for `ostinato run -n`"
    )
    parser.add_argument(
        "--leader-election", metavar="NAME", default="", help="allow this Lease, for `ostinato run --leader-election`"
    )
    parser.add_argument("--sharding", metavar="NAME", default="", help="allow the Leases of `ostinato run --sharding`")
    add_metrics_secure(parser)


def _manifests(options: argparse.Namespace) -> int:
    from ostinato.cli.commands import manifests as command  # noqa: PLC0415 - loaded when the command is called

    return command.manifests(command.ManifestsOptions(**values(options)))
