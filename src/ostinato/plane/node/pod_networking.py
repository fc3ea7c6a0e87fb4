"""The Pod network settings of a node: from its options, its Node object and the place of the API server."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from contextlib import suppress
from ipaddress import ip_network
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import msgspec

from ostinato.kinds.core_v1 import Node
from ostinato.plane.network.pod_cidrs import IPV6_RANGES, RANGES, SMALLEST, Network
from ostinato.plane.network.pod_network import PodNetworkSettings
from ostinato.plane.node.registration.machine_info import address
from ostinato.plane.node.runtimes import ProcessOptions

if TYPE_CHECKING:
    from ostinato.plane.network.services.netns import NetnsAddresses

NONE: Final = "none"
_OFF: Final = "switched off by --pod-network-cidr none"
_ELSEWHERE: Final = (
    "the API server is on another machine, which has no route to the Pods of this node; "
    "route a range here and name it with --pod-network-cidr"
)


def parse(text: str | None, *, dual: bool = False) -> PodNetworkSettings:
    """The settings for a `--pod-network-cidr`: ranges, `none`, or None for the default. ValueError if it is wrong.

    `dual`: Pods have addresses of both IP families. Defaults to IPv4 alone, unless a range of IPv6 is given.
    """
    second = IPV6_RANGES if dual else ()
    if text is None:
        return PodNetworkSettings(second_ranges=second)
    if text == NONE:
        return PodNetworkSettings(disabled=_OFF)
    found: dict[int, Network] = {}
    for part in text.split(","):
        try:
            network = ip_network(part.strip())
        except ValueError as error:
            wanted = "an IPv4 network such as 10.244.0.0/16, one of IPv6 after it, or none"
            raise ValueError(f"--pod-network-cidr {text}: want {wanted}") from error
        longest = SMALLEST[network.version]
        if network.prefixlen > longest:
            raise ValueError(f"--pod-network-cidr {part}: too small for the Pods of a node; use /{longest} or larger")
        if network.version in found or (network.version == 4 and found):
            raise ValueError(f"--pod-network-cidr {text}: want an IPv4 network, and at most one of IPv6 after it")
        found[network.version] = network
    if 4 not in found:
        raise ValueError(f"--pod-network-cidr {text}: want an IPv4 network such as 10.244.0.0/16 before that of IPv6")
    return PodNetworkSettings(ranges=(found[4],), second_ranges=(found[6],) if 6 in found else second)


def with_services(options: ProcessOptions, proxy: NetnsAddresses | None, ranges: Sequence[Network]) -> ProcessOptions:
    """Have the Service proxy, if there is one, answer on the bridges of Pods. `ranges`: of the cluster IPs."""
    if proxy is None:
        return options
    network = msgspec.structs.replace(options.network, services=tuple(ranges))
    return msgspec.structs.replace(options, network=network, on_network=proxy.attach)


def with_assigned(options: ProcessOptions, nodes: Iterable[Node]) -> ProcessOptions:
    """Use the Pod CIDRs that Nodes have in their spec."""
    found: dict[str, tuple[Network, ...]] = {}
    for node in nodes:
        cidrs = node.spec.pod_cidrs or ([node.spec.pod_cidr] if node.spec.pod_cidr else [])
        with suppress(ValueError):
            networks = tuple(ip_network(each) for each in cidrs)
            if any(each.version == 4 for each in networks):
                found[node.metadata.name] = networks
    return msgspec.structs.replace(options, network=msgspec.structs.replace(options.network, of_nodes=found))


def for_joining(options: ProcessOptions, name: str, server: str) -> ProcessOptions:
    """For a node of a cluster whose API server is elsewhere: Pods use the machine's network unless a range is given.

    Other machines connect to Pods of a given range, for which they have to have routes.

    `name`: of the node. `server`: the URL of the API server.
    """
    network = options.network
    if network.disabled or _is_on_this_machine(server):
        return options
    if name in network.of_nodes or network.ranges is not RANGES:
        network = msgspec.structs.replace(network, reachable=True)
    else:
        network = msgspec.structs.replace(network, disabled=_ELSEWHERE)
    return msgspec.structs.replace(options, network=network)


def _is_on_this_machine(server: str) -> bool:
    host = urlsplit(server).hostname or ""
    if host in ("localhost", address()):
        return True
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return False
