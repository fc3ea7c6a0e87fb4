"""Options of `ostinato node`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ostinato.cli.options.cluster import add_kubeconfig
from ostinato.cli.options.control_plane import cluster_dns
from ostinato.cli.options.control_plane.runtime import add_containerd, add_processes, add_without
from ostinato.cli.options.server import service_ranges

if TYPE_CHECKING:
    from ostinato.cli.options.parsed import Commands

_DESCRIPTION = """Join this machine to a cluster as a node: run the Pods that are bound to it and serve the kubelet API
until SIGINT or SIGTERM. Containers keep running after that; the next start adopts them."""


def add_to(commands: Commands) -> None:
    parser = commands.add_parser("node", help="join this machine to a cluster as a node", description=_DESCRIPTION)
    parser.set_defaults(command=_node, prog=parser.prog)
    add_kubeconfig(parser)
    parser.add_argument("--server", metavar="URL", default="", help="API server to join with a bootstrap token")
    parser.add_argument("--token", metavar="TOKEN", default="", help="bootstrap token; see `ostinato token create`")
    parser.add_argument(
        "--ca-cert-hash",
        metavar="sha256:HEX",
        action="append",
        default=[],
        help="hash of the public key of the cluster's certificate authority; authenticates the cluster to the node; "
        "may be repeated",
    )
    parser.add_argument("--name", default="", help="name of the node (default: host name)")
    parser.add_argument(
        "--runtime",
        metavar="NAME",
        default="process",
        help="container runtime: process or containerd (default: %(default)s)",
    )
    add_containerd(parser)
    add_processes(parser)
    service_ranges.add_to(parser)
    cluster_dns.add_to(parser, "that of the Service kube-dns, if there is one")
    parser.add_argument(
        "--listen",
        metavar="HOST:PORT",
        default="0.0.0.0:10250",
        help="address of the kubelet API; port 0 chooses a free port (default: %(default)s)",
    )
    parser.add_argument(
        "--state",
        metavar="DIR",
        help="state directory of the node (default: ostinato/node in $XDG_STATE_HOME or ~/.local/state)",
    )
    add_without(parser, "disable services, if another proxy implements them on this machine", ["services"])


def _node(options: argparse.Namespace) -> int:
    from ostinato.cli.commands.control_plane import node as command  # noqa: PLC0415 - loaded when the command is called

    command.node(options)
    return 0
