"""An annex of this machine's network, in which the addresses of Services are.

Pods that share the network of this machine listen on all of its addresses, and a port that is listened on at one
address cannot be listened on at all of them. So Services must have theirs elsewhere: in a network namespace that no
process lives in, with a pair of devices between it and the machine. Packets to a Service's address are routed there,
where a socket of this process waits; it goes on from the machine itself, as any client does.

- An address is taken only if nothing else has it or leads to it, but for the default route: this machine's addresses
  and networks stay reachable. Two processes never have the same one.
- The namespace lasts as long as this process: should that be killed, the kernel takes namespace, devices and routes
  away.
- All of this needs the rights of root: CAP_SYS_ADMIN and CAP_NET_ADMIN.
"""

from __future__ import annotations

import errno
import hashlib
import ipaddress
import os
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

from ostinato.plane.network.namespaces import new_namespace, within
from ostinato.plane.network.netlink import Address, Netlink
from ostinato.plane.network.services.addresses import AddressInUse, AddressUnavailable

_PEER_DEVICE: Final = "services"  # the device within
_VETH_ADDRESSES: Final[
    dict[int, tuple[Address, Address]]
] = {  # of the pair, out and in, by family: neighbours alone know them
    4: (ipaddress.ip_address("169.254.77.1"), ipaddress.ip_address("169.254.77.2")),
    6: (ipaddress.ip_address("fe80::77:1"), ipaddress.ip_address("fe80::77:2")),
}


class NetnsAddresses:
    """A `Network`. Nothing is made before the first address is taken; `close` it after use."""

    def __init__(self, state: Path) -> None:
        """`state`: the directory of whoever serves; what another process left of it, if it did, is replaced."""
        self._device = f"ost-{hashlib.sha256(os.fsencode(state.resolve())).hexdigest()[:8]}"
        self._namespace: int | None = None  # a descriptor
        self._unavailable: AddressUnavailable | None = None
        self._outside: Netlink | None = None
        self._inside: Netlink | None = None
        self._index = 0  # of the device outside
        self._peer_index = 0
        self._families: set[int] = set()  # that can pass the pair
        self._taken: set[Address] = set()

    def take(self, address: Address) -> None:
        """Have an address lead here: `Taken` if it is somebody else's, `Unavailable` if it cannot be had."""
        self._open()
        assert self._outside is not None
        assert self._inside is not None
        match = self._outside.match(address)
        if match is not None and match.is_local:
            return  # it is this machine's own
        if match is not None and match.length == address.max_prefixlen:
            raise AddressInUse(f"another process on this machine serves {address}")
        if match is not None and match.length:
            raise AddressInUse(f"this machine has a route to a network with {address} in it")
        try:
            self._add_family(address.version)
            self._inside.add_address(self._peer_index, address)
        except OSError as error:
            raise AddressUnavailable(f"{address} cannot be had: {error.strerror}") from error
        try:
            self._outside.add_route(self._index, address)
        except OSError as error:
            self._inside.remove_address(self._peer_index, address)
            raise AddressInUse(f"packets to {address} cannot be had: {error.strerror}") from error
        self._taken.add(address)

    def release(self, address: Address) -> None:
        if address not in self._taken:
            return
        self._taken.remove(address)
        assert self._outside is not None
        assert self._inside is not None
        with suppress(OSError):  # it is gone
            self._outside.remove_route(self._index, address)
        with suppress(OSError):
            self._inside.remove_address(self._peer_index, address)

    def socket(self, kind: int, address: Address) -> socket.socket:
        """One that can be bound to an address: to a taken one, or to this machine's own."""
        family = socket.AF_INET if address.version == 4 else socket.AF_INET6
        if address not in self._taken:
            return socket.socket(family, kind)
        assert self._namespace is not None
        with within(self._namespace):
            return socket.socket(family, kind)

    def close(self) -> None:
        if self._outside is not None:
            with suppress(OSError):
                self._outside.remove(self._device)
            self._outside.close()
        if self._inside is not None:
            self._inside.close()
        if self._namespace is not None:
            os.close(self._namespace)
        self._outside = self._inside = self._namespace = None
        self._families.clear()
        self._taken.clear()

    # Making it

    def _open(self) -> None:
        if self._unavailable is not None:
            raise self._unavailable
        if self._namespace is not None:
            return
        try:
            if sys.platform != "linux":
                raise OSError(errno.ENOSYS, f"{sys.platform} has no network namespaces")
            self._make()
        except OSError as error:
            self.close()
            why = error.strerror or str(error)
            if error.errno in (errno.EPERM, errno.EACCES):
                why = "this process may not have a network namespace: that takes root (CAP_SYS_ADMIN, CAP_NET_ADMIN)"
            self._unavailable = AddressUnavailable(why)
            raise self._unavailable from error

    def _make(self) -> None:
        self._outside = Netlink()
        with suppress(OSError):  # mostly there is none: a process that ends takes it along
            self._outside.remove(self._device)
        self._namespace = new_namespace()
        with within(self._namespace):
            self._inside = Netlink()
        self._outside.add_pair(self._device, _PEER_DEVICE, self._namespace)
        self._index = self._outside.set_up(self._device)
        self._peer_index = self._inside.set_up(_PEER_DEVICE)

    def _add_family(self, version: int) -> None:
        """Have packets of a family go there and back."""
        if version in self._families:
            return
        assert self._outside is not None
        assert self._inside is not None
        out, far = _VETH_ADDRESSES[version]
        self._outside.add_address(self._index, out)
        self._inside.add_address(self._peer_index, far)
        self._inside.add_default_route(self._peer_index, out)
        self._families.add(version)
