"""Pool of Pod CIDRs: a range of the cluster, divided among nodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from ipaddress import IPv4Network, IPv6Network
from typing import Final

import msgspec

from ostinato.plane.network.pod_cidrs import NODE_PREFIX, Network, overlap

_MOST_BITS: Final = 16  # of the number of CIDRs in a pool


class PodRange(msgspec.Struct, frozen=True):
    """A range of the cluster, and the prefix length of the CIDRs of its nodes. ValueError if they do not fit."""

    network: Network
    mask: int

    def __post_init__(self) -> None:
        most = min(self.network.prefixlen + _MOST_BITS, self.network.max_prefixlen)
        if not self.network.prefixlen <= self.mask <= most:
            raise ValueError(
                f"node CIDRs /{self.mask} of {self.network}: want a mask from {self.network.prefixlen} to {most}"
            )

    def pool(self, occupied: Iterable[Network] = ()) -> CidrPool:
        pool = CidrPool(self)
        for each in occupied:
            pool.occupy(each)
        return pool


class CidrPool:
    """Hands out the CIDRs of a range, the next one that is free, so that one is not reused soon."""

    def __init__(self, pods: PodRange) -> None:
        self._range = pods.network
        self._mask = pods.mask
        self._count = 1 << (pods.mask - pods.network.prefixlen)
        self._taken: set[int] = set()  # positions
        self._next = 0

    def take(self) -> Network | None:
        """A free CIDR; None if all are taken."""
        for offset in range(min(self._count, len(self._taken) + 1)):
            position = (self._next + offset) % self._count
            if position not in self._taken:
                self._taken.add(position)
                self._next = (position + 1) % self._count
                return self._at(position)
        return None

    def occupy(self, network: Network) -> bool:
        """Take the CIDRs that overlap with a network; return whether there are any."""
        found = self._positions(network)
        self._taken.update(found)
        return bool(found)

    def release(self, network: Network) -> None:
        self._taken.difference_update(self._positions(network))

    def _at(self, position: int) -> Network:
        first = int(self._range.network_address) + (position << (self._range.max_prefixlen - self._mask))
        return (IPv4Network if self._range.version == 4 else IPv6Network)((first, self._mask))

    def _positions(self, network: Network) -> Sequence[int]:
        if not overlap(network, self._range):
            return ()
        if network.prefixlen <= self._range.prefixlen:
            return range(self._count)
        shift = self._range.max_prefixlen - self._mask
        base = int(self._range.network_address)
        return range(
            (int(network.network_address) - base) >> shift, ((int(network.broadcast_address) - base) >> shift) + 1
        )


def pod_ranges(networks: Sequence[Network], masks: dict[int, int | None]) -> tuple[PodRange, ...]:
    """The ranges of a cluster, at most one of each IP family; ValueError says what is wrong.

    `masks`: prefix lengths of the nodes' CIDRs by IP version. None: the default, or the whole of a smaller range.
    """
    if len(networks) > 2 or len({each.version for each in networks}) < len(networks):
        raise ValueError(f"{','.join(map(str, networks))}: want one network, or one of each IP family")
    return tuple(
        PodRange(each, masks.get(each.version) or max(NODE_PREFIX[each.version], each.prefixlen)) for each in networks
    )
