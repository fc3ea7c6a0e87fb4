"""The Pod network settings of a node: from its options, its Node object and the place of the API server."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from contextlib import suppress
from ipaddress import IPv4Network
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import msgspec

from ostinato.kinds.core_v1 import Node
from ostinato.plane.network.pod_cidrs import RANGES, SMALLEST
from ostinato.plane.network.pod_network import PodNetworkSettings
from ostinato.plane.node.registration.machine_info import address
from ostinato.plane.node.runtimes import ProcessOptions
from ostinato.server.resources.core.services.addresses import RANGE

if TYPE_CHECKING:
    from ostinato.plane.network.services.netns import NetnsAddresses

NONE: Final = "none"
_OFF: Final = "switched off by --pod-network-cidr none"
_ELSEWHERE: Final = (
    "the API server is on another machine, which has no route to the Pods of this node; "
    "route a range here and name it with --pod-network-cidr"
)


def parse(text: str | None) -> PodNetworkSettings:
    """The settings for a `--pod-network-cidr`: a range, `none`, or None for the default. ValueError if it is wrong."""
    if text is None:
        return PodNetworkSettings()
    if text == NONE:
        return PodNetworkSettings(disabled=_OFF)
    try:
        network = IPv4Network(text)
    except ValueError as error:
        raise ValueError(f"--pod-network-cidr {text}: want an IPv4 network such as 10.244.0.0/16, or none") from error
    if network.prefixlen > SMALLEST:
        raise ValueError(f"--pod-network-cidr {text}: too small for the Pods of a node; use /{SMALLEST} or larger")
    return PodNetworkSettings(ranges=(network,))


def with_services(options: ProcessOptions, proxy: NetnsAddresses | None) -> ProcessOptions:
    """Have the Service proxy, if there is one, answer on the bridges of Pods."""
    if proxy is None:
        return options
    network = msgspec.structs.replace(options.network, services=(RANGE,))
    return msgspec.structs.replace(options, network=network, on_network=proxy.attach)


def with_assigned(options: ProcessOptions, nodes: Iterable[Node]) -> ProcessOptions:
    """Use the Pod CIDRs that Nodes have in their spec."""
    found: dict[str, IPv4Network] = {}
    for node in nodes:
        cidrs = [each for each in (node.spec.pod_cidr or "", *node.spec.pod_cidrs) if each and ":" not in each]
        if cidrs:
            with suppress(ValueError):
                found[node.metadata.name] = IPv4Network(cidrs[0])
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
