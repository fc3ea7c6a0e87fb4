"""Options of the cluster DNS, shared by `ostinato up` and `ostinato node`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ostinato.cli.error import CommandError
from ostinato.cli.options.control_plane.ip_families import dns_address

if TYPE_CHECKING:
    from ostinato.plane.network.dns.settings import ClusterDns


def add_to(parser: argparse._ActionsContainer, default: str) -> None:
    """`default`: of the address, as the help says it."""
    parser.add_argument(
        "--cluster-dns",
        metavar="ADDRESS",
        help=f"address of the cluster DNS, which Pods use (default: {default})",
    )
    parser.add_argument(
        "--cluster-domain",
        metavar="DOMAIN",
        default="cluster.local",
        help="domain of the cluster, in which names of Services are (default: %(default)s)",
    )


def cluster_dns(options: argparse.Namespace) -> ClusterDns:
    """The cluster DNS of `ostinato up`; CommandError names an invalid option."""
    from ostinato.plane.network.dns.settings import ClusterDns  # noqa: PLC0415 - after parsing

    try:
        return ClusterDns(address=options.cluster_dns or dns_address(options), domain=options.cluster_domain)
    except ValueError as error:
        raise CommandError(str(error)) from None


def used_cluster_dns(options: argparse.Namespace) -> ClusterDns | None:
    """The cluster DNS, if this control plane has one; for its API server, which loads no components."""
    is_off = options.runtime == "simulated" or {"dns", "services"} & {*options.without}
    return None if is_off else cluster_dns(options)
