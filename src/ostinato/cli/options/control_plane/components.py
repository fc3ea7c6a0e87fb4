"""Options of `ostinato controllers` and `ostinato scheduler`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ostinato.cli.options.cluster import add_endpoints, add_kubeconfig
from ostinato.cli.options.control_plane import pod_ranges, signing
from ostinato.cli.options.control_plane.runtime import add_without

if TYPE_CHECKING:
    from ostinato.cli.options.parsed import Commands

_CONTROLLERS = """Run the control plane's controllers against any API server, in place of kube-controller-manager. Of
several instances only the leader is active."""

_SCHEDULER = """Run the control plane's scheduler against any API server, in place of kube-scheduler. Of several
instances only the leader is active."""


def add_to(commands: Commands) -> None:
    _add_controllers(
        commands.add_parser("controllers", help="run the control plane's controllers", description=_CONTROLLERS)
    )
    scheduler = commands.add_parser("scheduler", help="run the control plane's scheduler", description=_SCHEDULER)
    _add_component(scheduler, "scheduler")


def _add_controllers(parser: argparse.ArgumentParser) -> None:
    _add_component(parser, "controllers")
    parser.add_argument(
        "--ca-certificate", metavar="FILE", help="certificate of the cluster's authority, for kube-root-ca.crt"
    )
    parser.add_argument("--ca-key", metavar="FILE", help="key of the cluster's authority; signs node certificates")
    signing.add_to(parser)
    parser.add_argument("--volumes", metavar="DIR", help="directory in which volumes for claims are provisioned")
    parser.add_argument(
        "--service-account-private-key-file",
        metavar="PEM",
        help="private key that signs the tokens in Secrets of ServiceAccounts",
    )
    pod_ranges.add_to(parser)
    add_without(parser, "disable a controller")


def _add_component(parser: argparse.ArgumentParser, component: str) -> None:
    parser.set_defaults(command=_components, component=component, prog=parser.prog)
    add_kubeconfig(parser)
    parser.add_argument("--no-leader-election", action="store_true", help="run without acquiring a Lease")
    add_endpoints(parser)


def _components(options: argparse.Namespace) -> int:
    from ostinato.cli.commands.control_plane import components  # noqa: PLC0415 - loaded when the command is called

    components.run(options)
    return 0
