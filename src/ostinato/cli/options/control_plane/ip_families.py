"""IP families of a cluster: `--ip-family` of `ostinato up`, and the ranges that follow from it."""

from __future__ import annotations

import argparse
import os
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import TYPE_CHECKING, Final

from ostinato.cli.error import CommandError
from ostinato.cli.options.server import service_ranges

if TYPE_CHECKING:
    from ostinato.plane.network.cidr_pool import PodRange

_SERVICES_OF_BOTH: Final = f"{service_ranges.DEFAULT},fd00:10:96::/112"
_SIMULATED_PODS: Final = ("10.128.0.0/9", "fd00:10:128::/48")
_IPV6: Final = "/proc/net/if_inet6"  # exists if the kernel has it
_DNS: Final = 10  # position of the DNS server in the range of Services


def add_to(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--ip-family",
        metavar="NAME",
        choices=("ipv4", "dual"),
        help="IP families of Services, Pods and nodes: ipv4, or dual for IPv4 and IPv6 (default: ipv4)",
    )


def use(options: argparse.Namespace) -> None:
    """Check the option, and give others the defaults that follow from it; CommandError says what is wrong."""
    given = options.service_cluster_ip_range
    if given is None and options.ip_family == "dual":
        options.service_cluster_ip_range = _SERVICES_OF_BOTH
    versions = [each.version for each in service_ranges.parse(options.service_cluster_ip_range)]
    if options.bare:
        return
    if 4 not in versions:
        raise CommandError(
            f"--service-cluster-ip-range {given}: nodes of `ostinato up` need a range of IPv4; "
            "`ostinato apiserver` serves IPv6 alone"
        )
    if options.ip_family is not None and (options.ip_family == "dual") != (len(versions) == 2):
        wanted = "two ranges, one of each IP family" if options.ip_family == "dual" else "one range, of IPv4"
        raise CommandError(f"--ip-family {options.ip_family}: --service-cluster-ip-range {given}: want {wanted}")
    if len(versions) == 2 and options.runtime != "simulated" and options.nodes and not os.path.exists(_IPV6):
        raise CommandError(
            f"--ip-family dual: the kernel of this machine has no IPv6 ({_IPV6} does not exist); "
            "start without --ip-family, or with --runtime simulated"
        )
    if len(versions) == 1 and ":" in (options.pod_network_cidr or ""):
        raise CommandError(f"--pod-network-cidr {options.pod_network_cidr}: IPv6 needs --ip-family dual")


def is_dual_stack(options: argparse.Namespace) -> bool:
    return len(service_ranges.parse(options.service_cluster_ip_range)) == 2


def dns_address(options: argparse.Namespace) -> str:
    """The default address of the cluster DNS: the tenth of the range of Services, as kubeadm has it; that of IPv4."""
    ranges: list[IPv4Network | IPv6Network] = sorted(
        service_ranges.parse(getattr(options, "service_cluster_ip_range", None)), key=lambda each: each.version
    )
    return str(ranges[0][min(_DNS, ranges[0].num_addresses - 2)])


def simulated_pod_ranges(options: argparse.Namespace) -> tuple[PodRange, ...]:
    """The ranges that Nodes with simulated Pods get Pod CIDRs of; none with one IP family."""
    from ostinato.plane.network.cidr_pool import pod_ranges  # noqa: PLC0415 - after parsing

    if options.runtime != "simulated" or not is_dual_stack(options):
        return ()
    given = options.pod_network_cidr.split(",") if options.pod_network_cidr else _SIMULATED_PODS
    try:
        return pod_ranges([ip_network(each.strip()) for each in given], {})
    except ValueError as error:
        raise CommandError(f"--pod-network-cidr {options.pod_network_cidr}: {error}") from None
