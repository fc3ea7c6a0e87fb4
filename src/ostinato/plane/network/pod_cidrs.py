"""Pod CIDRs: the range of addresses that the Pods of one node get."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Final

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

RANGES: Final = tuple(IPv4Network(each) for each in ("10.244.0.0/16", "10.245.0.0/16", "192.168.240.0/20"))
"""Where Pod CIDRs are taken from, in this order, unless others are given."""

IPV6_RANGES: Final = (IPv6Network("fd00:10:244::/48"),)
"""The same for IPv6, if Pods have addresses of both families."""

NODE_PREFIX: Final = {4: 24, 6: 64}  # of the Pod CIDR of a node, by IP version
SMALLEST: Final = {4: 29, 6: 125}  # the longest prefix of a Pod CIDR: some addresses are the node's own
_LOCK: Final = "/run/ostinato-pod-cidrs.lock"


class NoFreeCidr(Exception):  # noqa: N818 - what is the case
    """No Pod CIDR is free; the message says why, and what to do."""


def choose(
    wanted: Network | None, kept: Network | None, ranges: Sequence[Network], routed: Iterable[Network]
) -> Network:
    """A Pod CIDR that overlaps with no network that this machine has a route to.

    - `wanted`: the one that has to be taken. `NoFreeCidr` if it is not free.
    - `kept`: the one that the node had before, which it keeps if that is free and of these ranges.
    - `routed`: destinations of the machine's routes. The default route does not count.
    """
    taken = [each for each in routed if each.prefixlen]
    if wanted is not None:
        if wanted.prefixlen > SMALLEST[wanted.version]:
            longest = SMALLEST[wanted.version]
            raise NoFreeCidr(f"Pod CIDR {wanted}: too small for the Pods of a node; use /{longest} or larger")
        if overlapping := [each for each in taken if overlap(each, wanted)]:
            raise NoFreeCidr(f"Pod CIDR {wanted}: this machine has a route to {overlapping[0]}; use another range")
        return wanted
    of_ranges = (each for pool in ranges if pool.prefixlen <= SMALLEST[pool.version] for each in _of_nodes(pool))
    again = [kept] if kept is not None and any(_is_within(kept, pool) for pool in ranges) else []
    for candidate in (*again, *of_ranges):
        if not any(overlap(each, candidate) for each in taken):
            return candidate
    text = ", ".join(map(str, ranges))
    raise NoFreeCidr(f"no Pod CIDR is free in {text}; name a free range with --pod-network-cidr")


def _of_nodes(pool: Network) -> Iterable[Network]:
    prefix = NODE_PREFIX[pool.version]
    return [pool] if pool.prefixlen >= prefix else pool.subnets(new_prefix=prefix)


def overlap(one: Network, other: Network) -> bool:
    if isinstance(one, IPv4Network):
        return isinstance(other, IPv4Network) and one.overlaps(other)
    return isinstance(other, IPv6Network) and one.overlaps(other)


def _is_within(network: Network, pool: Network) -> bool:
    return overlap(network, pool) and network.prefixlen >= pool.prefixlen


def gateway_of(cidr: Network) -> Address:
    """The node's own address, which Pods use as their gateway."""
    return cidr[1]


def services_of(cidr: Network) -> Address:
    """The address of the Service proxy among the Pods."""
    return cidr[2]


class PodAddresses:
    """Allocates the addresses of Pods: the next one that is free, so that one is not reused soon."""

    def __init__(self, cidr: Network) -> None:
        self._cidr = cidr
        self._taken: set[Address] = set()
        self._next = 3  # those before are the network's, the gateway's and the Service proxy's

    def take(self, address: Address | None = None) -> Address:
        """`address`: the one to take if it is free. `NoFreeCidr` if all are taken."""
        if address is not None and address in self._cidr and address not in self._taken:
            self._taken.add(address)
            return address
        count = self._cidr.num_addresses - 4  # without the broadcast address
        for offset in range(count):
            position = 3 + (self._next - 3 + offset) % count
            found = self._cidr[position]
            if found not in self._taken:
                self._next = position + 1
                self._taken.add(found)
                return found
        raise NoFreeCidr(f"all {count} addresses of the Pod CIDR {self._cidr} are taken")

    def release(self, address: Address) -> None:
        self._taken.discard(address)


@contextmanager
def locked() -> Iterator[None]:
    """Exclude other nodes on this machine while a Pod CIDR is chosen."""
    try:
        lock = os.open(_LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError:  # without /run, two that start at the same moment may choose the same
        yield
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
