"""The option for the ranges of cluster IPs: `--service-cluster-ip-range`, as kube-apiserver has it."""

from __future__ import annotations

import argparse
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Final

from ostinato.cli.error import CommandError

DEFAULT: Final = "10.0.0.0/24"
_FEWEST: Final = 8  # addresses of a range


def add_to(group: argparse._ActionsContainer) -> None:
    group.add_argument(
        "--service-cluster-ip-range",
        metavar="CIDR[,CIDR]",
        help="range of the cluster IPs of Services in a new store; a second one, of the other IP family, for "
        f"dual-stack Services (default: {DEFAULT})",
    )


def parse(text: str | None) -> tuple[IPv4Network | IPv6Network, ...]:
    """The ranges, that of the default family first; CommandError if they are invalid."""
    found: list[IPv4Network | IPv6Network] = []
    text = text or DEFAULT
    for cidr in text.split(","):
        try:
            found.append(ip_network(cidr.strip(), strict=False))
        except ValueError:
            wanted = "10.0.0.0/24 or fd00:10::/112"
            raise CommandError(f"--service-cluster-ip-range {cidr}: want a network such as {wanted}") from None
    flag = f"--service-cluster-ip-range {text}"
    if len(found) > 2 or len({each.version for each in found}) < len(found):
        raise CommandError(f"{flag}: want one network, or one of each IP family")
    for each in found:
        if each.num_addresses < _FEWEST:
            raise CommandError(f"{flag}: {each} is too small, want at least {_FEWEST} addresses")
    return tuple(found)
