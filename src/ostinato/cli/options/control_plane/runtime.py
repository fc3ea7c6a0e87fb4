"""Options of container runtimes and of disabled components, shared by `ostinato up` and `ostinato node`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence


def add_containerd(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--containerd",
        metavar="SOCKET",
        default="/run/containerd/containerd.sock",
        help="containerd's socket, for --runtime containerd (default: %(default)s)",
    )


def add_processes(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--expose",
        metavar="DIR",
        action="append",
        default=[],
        help="for --runtime process: directory of this machine that containers see, read-only; may be repeated",
    )
    parser.add_argument(
        "--insecure-processes",
        action="store_true",
        help="for --runtime process: run Pods even if their securityContext cannot be applied",
    )
    parser.add_argument(
        "--pod-network-cidr",
        metavar="CIDR[,CIDR]|none",
        help="for --runtime process, as root: range of the addresses of Pods, and one of IPv6 after it; none: Pods use "
        "the network of this machine (default: a free range of 10.244.0.0/16, and of fd00:10:244::/48)",
    )


def add_without(parser: argparse._ActionsContainer, text: str, names: Sequence[str] | None = None) -> None:
    """`names`: the accepted names. Defaults to None: the command checks them."""
    parser.add_argument(
        "--without", metavar="NAME", action="append", default=[], choices=names, help=f"{text}; may be repeated"
    )
