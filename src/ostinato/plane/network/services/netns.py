"""The addresses of Services on this machine: in a network namespace of their own, which the proxy listens in.

Processes that listen on all addresses of the machine would collide with a Service of the same port, were its address
one of the machine's. So the addresses are those of a namespace without processes, joined to the machine by a veth pair:

    machine --- route to each address --- ost-… === services, in the namespace of the addresses
    bridge of Pods ---------------------- osts-… === pods0, in the same namespace

- An address is taken only if the machine neither has it nor has a route to it, apart from the default route: networks
  that the machine reaches stay reachable. Of two processes on a machine, the first takes an address.
- Pods with networks of their own reach the namespace over their bridge (`attach`), not over the machine's routes. So
  each of several planes on one machine answers to its own Pods, even with the same addresses.
- The namespace lives as long as this process: if that is killed, the kernel removes namespace, links and routes.
- This takes CAP_SYS_ADMIN and CAP_NET_ADMIN.
"""

from __future__ import annotations

import errno
import hashlib
import ipaddress
import logging
import os
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

from ostinato.plane.network.namespaces import new_namespace, within
from ostinato.plane.network.netlink import Address, Netlink
from ostinato.plane.network.pod_cidrs import services_of
from ostinato.plane.network.pod_network import BRIDGE_PREFIX, PodNetwork
from ostinato.plane.network.services.addresses import AddressInUse, AddressUnavailable
from ostinato.plane.network.sysctls import write_sysctl

_logger = logging.getLogger("ostinato.plane.services")

_PEER_DEVICE: Final = "services"
_VETH_ADDRESSES: Final[dict[int, tuple[Address, Address]]] = {  # of the ends, near and far, by IP version
    4: (ipaddress.ip_address("169.254.77.1"), ipaddress.ip_address("169.254.77.2")),
    6: (ipaddress.ip_address("fe80::77:1"), ipaddress.ip_address("fe80::77:2")),
}
_DUPLICATE_DETECTION: Final = ("net.ipv6.conf.default.accept_dad", "net.ipv6.conf.default.dad_transmits")
_LINK_LOCAL: Final = ipaddress.ip_address("fe80::2")  # on bridges of Pods
_SOURCE_VALIDATION: Final = "/proc/sys/net/ipv4/conf/all/rp_filter"


class NetnsAddresses:
    """A `Network`. The namespace is created with the first address or bridge; `close` it after use."""

    def __init__(self, state: Path) -> None:
        """`state`: the state directory. Links that another process left for the same one are replaced."""
        self._device = f"ost-{hashlib.sha256(os.fsencode(state.resolve())).hexdigest()[:8]}"
        self._namespace: int | None = None  # a descriptor
        self._unavailable: AddressUnavailable | None = None
        self._outside: Netlink | None = None
        self._inside: Netlink | None = None
        self._index = 0  # of the device outside
        self._peer_index = 0
        self._families: set[int] = set()  # IP versions that the veth pair is configured for
        self._taken: set[Address] = set()
        self._routed: set[Address] = set()  # taken addresses that the machine has a route to
        self._bridged: list[str] = []  # devices on bridges of Pods

    def attach(self, network: PodNetwork) -> None:
        """Answer on the bridge of a Pod network. A failure is logged: the Pods are without Services then."""
        device = f"osts-{network.bridge.removeprefix(BRIDGE_PREFIX)}"
        peer = f"pods{len(self._bridged)}"
        try:
            self._open()
            assert self._outside is not None
            assert self._inside is not None
            assert self._namespace is not None
            with suppress(OSError):  # left by a process that was killed a moment ago
                self._outside.remove(device)
            self._outside.add_pair(device, peer, self._namespace, bridge=network.bridge_index)
            self._bridged.append(device)
            self._outside.set_up(device)
            index = self._inside.set_up(peer)
            if network.second_cidr is not None:  # the source of neighbour solicitations, before the kernel gives it one
                self._inside.add_address(index, _LINK_LOCAL, 64)
            for cidr in network.cidrs:
                self._inside.add_address(index, services_of(cidr), cidr.prefixlen)
        except (OSError, AddressUnavailable) as error:
            _logger.warning("services do not answer to pods bridge=%s error=%s", network.bridge, error)

    def take(self, address: Address) -> None:
        """Route an address to the namespace. Raises `AddressInUse`, or `AddressUnavailable` if that is not permitted.

        With bridges of Pods, an address that the machine uses otherwise is taken for the Pods alone.
        """
        self._open()
        assert self._outside is not None
        assert self._inside is not None
        match = self._outside.match(address)
        if match is not None and match.is_local:
            return  # the proxy can listen on it as it is
        reason = ""
        if match is not None and match.length == address.max_prefixlen:
            reason = f"another process on this machine serves {address}"
        elif match is not None and match.length:
            reason = f"this machine has a route to a network with {address} in it"
        if reason and not self._bridged:
            raise AddressInUse(reason)
        try:
            self._add_family(address.version)
            self._inside.add_address(self._peer_index, address)
        except OSError as error:
            raise AddressUnavailable(f"cannot take {address}: {error.strerror}") from error
        try:
            if not reason:
                self._outside.add_route(self._index, address)
                self._routed.add(address)
        except OSError as error:
            reason = f"cannot route {address}: {error.strerror}"
            if not self._bridged:
                self._inside.remove_address(self._peer_index, address)
                raise AddressInUse(reason) from error
        self._taken.add(address)
        if reason:
            _logger.warning("service answers to pods only, not to this machine address=%s reason=%s", address, reason)

    def is_available(self) -> bool:
        """Whether Services can have addresses here."""
        try:
            self._open()
        except AddressUnavailable:
            return False
        return True

    def is_local(self, address: str) -> bool:
        """Whether an address is the machine's own."""
        if not self.is_available():
            return False
        assert self._outside is not None
        match = self._outside.match(ipaddress.ip_address(address))
        return match is not None and match.is_local

    def release(self, address: Address) -> None:
        if address not in self._taken:
            return
        self._taken.remove(address)
        assert self._outside is not None
        assert self._inside is not None
        if address in self._routed:
            self._routed.remove(address)
            with suppress(OSError):  # already removed
                self._outside.remove_route(self._index, address)
        with suppress(OSError):
            self._inside.remove_address(self._peer_index, address)

    def socket(self, kind: int, address: Address) -> socket.socket:
        """Return a socket that can be bound to an address: a taken one, or one of the machine's own."""
        family = socket.AF_INET if address.version == 4 else socket.AF_INET6
        if address not in self._taken:
            return socket.socket(family, kind)
        assert self._namespace is not None
        with within(self._namespace):
            return socket.socket(family, kind)

    def close(self) -> None:
        if self._outside is not None:
            for device in (self._device, *self._bridged):
                with suppress(OSError):
                    self._outside.remove(device)
            self._outside.close()
        if self._inside is not None:
            self._inside.close()
        if self._namespace is not None:
            os.close(self._namespace)
        self._outside = self._inside = self._namespace = None
        self._families.clear()
        self._taken.clear()
        self._routed.clear()
        self._bridged.clear()

    # The namespace

    def _open(self) -> None:
        if self._unavailable is not None:
            raise self._unavailable
        if self._namespace is not None:
            return
        try:
            if sys.platform != "linux":
                raise OSError(errno.ENOSYS, f"{sys.platform} has no network namespaces")
            self._create()
        except OSError as error:
            self.close()
            why = error.strerror or str(error)
            if error.errno in (errno.EPERM, errno.EACCES):
                why = "this process may not create network namespaces: that takes CAP_SYS_ADMIN and CAP_NET_ADMIN"
            self._unavailable = AddressUnavailable(why)
            raise self._unavailable from error

    def _create(self) -> None:
        self._outside = Netlink()
        with suppress(OSError):  # usually there is none
            self._outside.remove(self._device)
        self._namespace = new_namespace()
        with within(self._namespace):
            self._inside = Netlink()
            with suppress(OSError):  # replies to Pods leave by their bridge, whichever way the request came
                Path(_SOURCE_VALIDATION).write_text("0")
            for each in _DUPLICATE_DETECTION:
                write_sysctl(each, "0", optional=True)
        self._outside.add_pair(self._device, _PEER_DEVICE, self._namespace)
        self._index = self._outside.set_up(self._device)
        self._peer_index = self._inside.set_up(_PEER_DEVICE)

    def _add_family(self, version: int) -> None:
        """Configure the veth pair for an IP version."""
        if version in self._families:
            return
        assert self._outside is not None
        assert self._inside is not None
        near, far = _VETH_ADDRESSES[version]
        self._outside.add_address(self._index, near)
        self._inside.add_address(self._peer_index, far)
        self._inside.add_default_route(self._peer_index, near)
        self._families.add(version)
