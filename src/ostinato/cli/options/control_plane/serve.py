"""Options of `ostinato up` and `ostinato apiserver`."""

from __future__ import annotations

import argparse
import gc
from typing import TYPE_CHECKING

from ostinato.cli.options.control_plane import cluster_dns, ip_families, signing
from ostinato.cli.options.control_plane.runtime import add_containerd, add_processes, add_without
from ostinato.cli.options.extras import require_server
from ostinato.cli.options.page import add_page
from ostinato.cli.options.server import settings as server_options

if TYPE_CHECKING:
    from ostinato.cli.options.parsed import Commands

_UP = """Run a control plane: API server, controllers, scheduler and nodes. Prints a line when it
is ready and runs until SIGINT or SIGTERM. State is kept: the next start resumes it."""

_APISERVER = """Run an API server without controllers, scheduler and nodes. Prints a line when it is ready and runs
until SIGINT or SIGTERM."""

_USAGE = "%(prog)s [OPTION]..."  # argparse would list every option in the usage line as well


def add_to(commands: Commands) -> None:
    _add_up(commands.add_parser("up", usage=_USAGE, help="run a control plane", description=_UP))
    _add_apiserver(commands.add_parser("apiserver", usage=_USAGE, help="run an API server", description=_APISERVER))


def _add_up(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_up, prog=parser.prog)
    cluster = parser.add_argument_group("cluster")
    cluster.add_argument("--nodes", metavar="N", type=int, default=1, help="number of nodes (default: %(default)s)")
    cluster.add_argument(
        "--runtime",
        metavar="NAME",
        default="process",
        help="container runtime: process, containerd or simulated (default: %(default)s)",
    )
    add_containerd(cluster)
    cluster.add_argument(
        "--csi-socket",
        metavar="SOCKET",
        action="append",
        default=[],
        help="provision, attach and expand volumes of the CSI driver at this socket; repeatable (default: drivers "
        "bring programs that do so)",
    )
    signing.add_to(cluster)
    add_processes(cluster)
    ip_families.add_to(cluster)
    cluster_dns.add_to(cluster, "the tenth of the Services' range, 10.0.0.10")
    cluster.add_argument(
        "--processes",
        metavar="N",
        type=int,
        help="number of processes, from 1 to 4, besides their supervisor (default: one per core, at most 3)",
    )
    cluster.add_argument("--bare", action="store_true", help="run only the API server, like `ostinato apiserver`")
    add_without(cluster, "disable a controller, the scheduler, services or dns")
    add_page(cluster)
    server_options.add_to(parser)


def _add_apiserver(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_apiserver, prog=parser.prog)
    parser.add_argument_group("processes").add_argument(
        "--workers",
        metavar="N",
        type=int,
        default=1,
        help="number of processes that serve the port, with --store etcd://... (default: %(default)s)",
    )
    server_options.add_to(parser)


def _up(options: argparse.Namespace) -> int:
    ip_families.use(options)
    return _serve("up", options)


def _apiserver(options: argparse.Namespace) -> int:
    return _serve("apiserver", options)


def _serve(command: str, options: argparse.Namespace) -> int:
    require_server()
    gc.disable()  # until the server is ready: collections take a tenth of the start-up time and free nothing

    from ostinato.cli.commands.control_plane import serve  # noqa: PLC0415 - `ostinato --help` does not load the server

    try:
        {"up": serve.up, "apiserver": serve.apiserver}[command](options)
    finally:
        gc.enable()
    return 0
