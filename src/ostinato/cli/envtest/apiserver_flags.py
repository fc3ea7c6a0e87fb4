"""Flags of kube-apiserver. `--help` does not load the server."""

from __future__ import annotations

import argparse
from typing import Final

from ostinato.cli.envtest import flags
from ostinato.cli.options.server import settings as server_options
from ostinato.cli.options.server.values import boolean

VERSION: Final = "v1.36.4"
_DESCRIPTION = """The API server of Ostinato with the flags of kube-apiserver. Objects are stored in the data directory
of the etcd beside it. Flags that are not listed are reported and have no effect."""


def make_parser() -> argparse.ArgumentParser:
    parser = flags.make_parser("kube-apiserver", _DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"Kubernetes {VERSION}")
    serving = parser.add_argument_group("serving")
    serving.add_argument(
        "--bind-address",
        metavar="IP",
        default="0.0.0.0",  # noqa: S104 - kube-apiserver's default
        help="address to listen on (default: %(default)s)",
    )
    serving.add_argument(
        "--secure-port", metavar="PORT", type=int, default=6443, help="port to listen on (default: %(default)s)"
    )
    serving.add_argument(
        "--advertise-address",
        metavar="IP",
        default="",
        help="address in the endpoints of the Service kubernetes (default: --bind-address)",
    )
    serving.add_argument(
        "--cert-dir",
        metavar="DIR",
        default="/var/run/kubernetes",
        help="directory of apiserver.crt and apiserver.key, unless --tls-cert-file is given; a pair is generated if "
        "they do not exist (default: %(default)s)",
    )
    server_options.add_kube_apiserver_options(parser, serving)
    storage = parser.add_argument_group("storage")
    storage.add_argument(
        "--etcd-servers", metavar="URL,...", action="append", default=[], help="client URLs of the etcd beside this"
    )
    cluster = parser.add_argument_group("cluster")
    cluster.add_argument(
        "--allow-privileged",
        metavar="BOOL",
        type=boolean,
        nargs="?",
        const=True,
        default=False,
        help="allow privileged containers (default: false)",
    )
    parser.add_argument("-v", "--v", metavar="LEVEL", help="accepted; the log level is fixed")
    return parser
