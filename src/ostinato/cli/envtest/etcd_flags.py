"""Flags of etcd. `--help` loads nothing else."""

from __future__ import annotations

import argparse
from typing import Final

from ostinato.cli.envtest import flags
from ostinato.cli.options.server.values import boolean

VERSION: Final = "3.6.8"  # of the etcd whose answers these are
_DESCRIPTION = """Stand-in for etcd: answers health checks and hands its data directory to the kube-apiserver beside
it, which keeps its store there. etcd's gRPC API is not served."""


def make_parser() -> argparse.ArgumentParser:
    parser = flags.make_parser("etcd", _DESCRIPTION)
    parser.add_argument("--name", default="default", help="name of this member (default: %(default)s)")
    parser.add_argument("--data-dir", metavar="DIR", default="", help="data directory (default: NAME.etcd)")
    parser.add_argument(
        "--listen-client-urls",
        metavar="URL,...",
        default="http://localhost:2379",
        help="http URLs to listen on (default: %(default)s)",
    )
    parser.add_argument(
        "--unsafe-no-fsync",
        metavar="BOOL",
        type=boolean,
        nargs="?",
        const=True,
        default=False,
        help="do not sync writes to disk: a crash of the machine may lose them",
    )
    for name in ("advertise-client-urls", "listen-peer-urls"):
        parser.add_argument(f"--{name}", metavar="URL,...", help="accepted; there are no peers")
    parser.add_argument("--version", action="version", version=f"etcd Version: {VERSION} (stand-in of ostinato)")
    return parser
