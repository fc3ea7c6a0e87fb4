"""Options of `ostinato run`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ostinato.cli.options.cluster import add_endpoints, add_kubeconfig
from ostinato.cli.options.page import add_page
from ostinato.cli.options.parsed import values

if TYPE_CHECKING:
    from ostinato.cli.options.parsed import Commands

_DESCRIPTION = """Run the controllers of a Python file, module or package until SIGINT or SIGTERM: the managers that it
creates, or all of its controllers and webhooks in one manager. Options override what the file sets. Without --embedded,
--kubeconfig and --context, the cluster is found by kubectl's rules."""


def add_to(commands: Commands) -> None:
    parser = commands.add_parser(
        "run", help="run the controllers of a file, module or package", description=_DESCRIPTION
    )
    parser.set_defaults(command=_run, prog=parser.prog)
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="*",
        help="Python file, or name of a module or package; several are one program "
        "(default: `run` in [tool.ostinato] of pyproject.toml)",
    )
    parser.add_argument(
        "--reload", action="store_true", help="restart the controllers when their sources change; the cluster stays"
    )
    add_run_options(parser)


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of all commands that run controllers: cluster, leader election, endpoints and logs."""
    cluster = parser.add_argument_group("cluster")
    cluster.add_argument("--embedded", action="store_true", help="run a control plane in this process")
    cluster.add_argument(
        "--state", metavar="DIR", help="state directory of --embedded (default: none; objects are kept in memory)"
    )
    cluster.add_argument(
        "--accept-data-loss",
        action="store_true",
        help="if the store in --state is damaged, set its files aside and start with the objects that can be read",
    )
    add_kubeconfig(cluster)
    cluster.add_argument(
        "-n",
        "--namespace",
        metavar="NS",
        default="",
        help="watch only this namespace; or reconcile those that match a pattern: 'team-*,!team-test' (default: all)",
    )
    cluster.add_argument(
        "--install-crds",
        action="store_true",
        help="create or update the program's CustomResourceDefinitions first; --embedded always does",
    )
    parser.add_argument("--leader-election", metavar="NAME", default="", help="run only while holding this Lease")
    parser.add_argument(
        "--webhook-certificates",
        metavar="DIR",
        default="",
        help="read tls.crt and tls.key of the webhooks from here (default: as in the file; it may create its own)",
    )
    parser.add_argument(
        "--sharding", metavar="NAME", default="", help="share the objects among all replicas, with Leases of this name"
    )
    add_endpoints(parser)
    add_page(parser)
    parser.add_argument(
        "--record",
        metavar="DIR",
        default="",
        help="write what front ends are asked and what they answer to JSON files, for `ostinato replay`",
    )
    parser.add_argument(
        "--record-secrets", action="store_true", help="with --record: do not redact the values of Secrets"
    )
    parser.add_argument(
        "--log-format", choices=("text", "json"), help="log format (default: text on a terminal, json otherwise)"
    )
    parser.add_argument(
        "-v",
        "--verbose",
        action="count",
        default=0,
        help="log the debug level of the program: one line per reconcile with object, reason, duration and result; "
        "-vv adds the framework",
    )
    parser.add_argument(
        "--log-level",
        metavar="[LOGGER=]LEVEL",
        action="append",
        default=[],
        help="level of a logger and those below it, or of all; repeatable. The embedded control plane logs to "
        "ostinato.plane and ostinato.server, at WARNING unless set here",
    )


def _run(options: argparse.Namespace) -> int:
    from ostinato.cli.commands import run as command  # noqa: PLC0415 - loaded when the command is called

    chosen = command.RunOptions(**values(options))
    (command.run_reloading if chosen.reload else command.run)(chosen)
    return 0
