"""Options of the ranges of Pods that nodes get their Pod CIDRs from, as kube-controller-manager has them."""

from __future__ import annotations

import argparse
from ipaddress import ip_network
from typing import TYPE_CHECKING

from ostinato.cli.error import CommandError
from ostinato.cli.options.server import service_ranges

if TYPE_CHECKING:
    from ostinato.plane.network.cidr_pool import PodRange


def add_to(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--cluster-cidr",
        metavar="CIDR[,CIDR]",
        help="range of the Pods, or one of each IP family: each Node gets Pod CIDRs of them (default: none)",
    )
    for version, mask in ((4, 24), (6, 64)):
        parser.add_argument(
            f"--node-cidr-mask-size-ipv{version}",
            metavar="BITS",
            type=int,
            help=f"prefix length of the IPv{version} Pod CIDR of a Node (default: {mask})",
        )
    service_ranges.add_to(parser)


def pod_ranges_of(options: argparse.Namespace) -> tuple[PodRange, ...]:
    """The ranges of `--cluster-cidr`; CommandError if they are invalid."""
    from ostinato.plane.network.cidr_pool import pod_ranges  # noqa: PLC0415 - after parsing

    given: str | None = options.cluster_cidr
    if given is None:
        return ()
    try:
        networks = [ip_network(each.strip()) for each in given.split(",")]
        return pod_ranges(networks, {4: options.node_cidr_mask_size_ipv4, 6: options.node_cidr_mask_size_ipv6})
    except ValueError as error:
        raise CommandError(f"--cluster-cidr {given}: {error}") from None
