"""The network of a node's Pods: a bridge, and for each Pod a network namespace joined to it by a veth pair.

    machine --- bridge (gateway, Pod CIDR) --- veth === eth0 of a Pod, in a namespace of its own
                      |                    --- veth === eth0 of another
                      +--- Service proxy, at the second address

- The bridge belongs to the node's directory: its name is derived from that, and its alias names it. Several nodes, and
  several planes, on one machine have a bridge and a Pod CIDR each.
- A namespace lives as long as this process holds its descriptor or a container runs in it. Nothing is mounted, so
  nothing outlives both: the kernel removes the namespace and its veth pair.
- Containers survive a restart of the node; their namespaces are adopted. The bridge stays as long as there are Pods.
- With IPv6, each Pod has a second address. It goes to others through the gateway, also to Pods on the same bridge, and
  to Services through the proxy's address: unlike ARP, neighbour discovery answers for a link's own addresses alone.
- Pods reach Pods, the machine, and the Services' addresses. Beyond the machine they go with its address (`nftables`),
  where it has a default route. From outside the machine they are reached through Services and host ports only.

Methods block for about a millisecond, longer while the kernel removes other namespaces: call them in an executor, one
at a time.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import sys
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Final

import msgspec

from ostinato.plane.network import nftables
from ostinato.plane.network.namespaces import identity_of, new_namespace, own_namespace, within
from ostinato.plane.network.netlink import LONGEST_ALIAS, Link, Netlink
from ostinato.plane.network.pod_cidrs import (
    RANGES,
    Address,
    Network,
    NoFreeCidr,
    PodAddresses,
    choose,
    gateway_of,
    locked,
    services_of,
)
from ostinato.plane.network.sysctls import enable_forwarding, enable_ipv6_forwarding, write_sysctl, write_sysctls

_logger = logging.getLogger("ostinato.plane.network")

BRIDGE_PREFIX: Final = f"{nftables.LINK_PREFIX}b-"
_OWNER: Final = "ostinato "  # an alias begins with it; the directory of the owner follows
_POD_DEVICE: Final = "eth0"
_BRIDGE_FILTER: Final = "/proc/sys/net/bridge"  # exists with br_netfilter
_CIDR_FILES: Final = {4: "pod-cidr", 6: "pod-cidr-ipv6"}  # by IP version
_IPV6: Final = "/proc/sys/net/ipv6"  # exists if the kernel has it
_SYSCTLS: Final = {  # of every Pod: no privilege is needed for ports and pings of its own network
    "net.ipv4.ip_unprivileged_port_start": "0",
    "net.ipv4.ping_group_range": "0 2147483647",
}
_AT_ONCE: Final = {"accept_dad": "0", "dad_transmits": "0"}  # addresses are unique: they are usable immediately
_LINK_LOCAL: Final = ip_address("fe80::1")  # of the bridge: the source of its neighbour solicitations
_NO_ROUTER: Final = {"accept_ra": "0", "accept_redirects": "0"}  # only the gateway routes (CVE-2020-10749)


class PodNetworkUnavailable(Exception):  # noqa: N818 - what is the case
    """Pods cannot have networks of their own here; the message says why."""


class PodNetworkSettings(msgspec.Struct, frozen=True, kw_only=True):
    """
    - `disabled`: why Pods use the network of the machine. Defaults to "": each has a network of its own.
    - `ranges`: where the Pod CIDR of the node is taken from. Defaults to private ranges.
    - `cidr`: the Pod CIDR that the node has to have. Defaults to a free one of `ranges`.
    - `second_ranges`: the same for IPv6. Default to none: Pods have IPv4 addresses alone.
    - `second_cidr`: the IPv6 Pod CIDR that the node has to have. Defaults to a free one of `second_ranges`.
    - `of_nodes`: the Pod CIDRs that Nodes have in their spec, by name: what a node finds there becomes its own.
    - `reachable`: other machines have routes to the Pods, and may connect to them. Defaults to False.
    - `services`: ranges of Service addresses that are reached on the bridge, where the proxy answers. Default to none.
    """

    disabled: str = ""
    ranges: tuple[Network, ...] = RANGES
    cidr: Network | None = None
    second_ranges: tuple[Network, ...] = ()
    second_cidr: Network | None = None
    of_nodes: Mapping[str, tuple[Network, ...]] = {}
    reachable: bool = False
    services: tuple[Network, ...] = ()

    def of_node(self, name: str) -> PodNetworkSettings:
        found = {each.version: each for each in self.of_nodes.get(name, ())}
        return msgspec.structs.replace(self, cidr=found.get(4, self.cidr), second_cidr=found.get(6, self.second_cidr))


class PodNamespace(msgspec.Struct, frozen=True):
    """The network namespace of a Pod: its addresses, one of each IP family, and a descriptor of it."""

    addresses: tuple[Address, ...]
    descriptor: int

    @property
    def address(self) -> Address:
        return self.addresses[0]

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(map(str, self.addresses))

    @property
    def identity(self) -> int:
        return identity_of(self.descriptor)


class PodNetwork:
    """Of one node. Ready once its constructor returns; `close` it, or let the process end."""

    def __init__(self, directory: Path, settings: PodNetworkSettings = PodNetworkSettings()) -> None:  # noqa: B008
        """`PodNetworkUnavailable` if Pods cannot have networks of their own."""
        self._directory = directory
        self._settings = settings
        self._pods: dict[str, PodNamespace] = {}  # by uid
        self._reserved: dict[str, tuple[Address, ...]] = {}  # of Pods that are not in _pods yet, by uid
        mark = hashlib.sha256(os.fsencode(directory.resolve())).hexdigest()
        self._mark = mark
        self.bridge_index = 0
        self._isolates = False  # ports of Pods exchange no frames
        self.bridge = BRIDGE_PREFIX + mark[:8]
        try:
            if sys.platform != "linux":
                raise OSError(errno.ENOSYS, f"{sys.platform} has no network namespaces")
            self._netlink = Netlink()
            try:
                with locked():
                    self.cidr = self._open()
                    self.second_cidr = self._open_second()
                self._try()
            except BaseException:
                self._netlink.close()
                raise
        except OSError as error:
            raise PodNetworkUnavailable(_why(error)) from error
        except NoFreeCidr as error:
            raise PodNetworkUnavailable(str(error)) from error
        self._addresses = [PodAddresses(each) for each in self.cidrs]
        self._finalizer = weakref.finalize(self, _close, self._netlink, self.bridge, self._pods, self._reserved)

    @property
    def cidrs(self) -> tuple[Network, ...]:
        """The Pod CIDRs of the node, one of each IP family."""
        return (self.cidr,) if self.second_cidr is None else (self.cidr, self.second_cidr)

    @property
    def gateway(self) -> Address:
        return gateway_of(self.cidr)

    def close(self) -> None:
        """Remove the bridge, unless there are Pods."""
        self._finalizer()

    # Pods

    def find(self, uid: str) -> PodNamespace | None:
        return self._pods.get(uid)

    def reserve(self, uid: str, addresses: Sequence[Address]) -> None:
        """Keep the addresses of a Pod that had some before; its containers may be running."""
        if addresses and addresses[0] in self.cidr:
            self._reserved[uid] = self._take(addresses)

    def _take(self, wanted: Sequence[Address] = ()) -> tuple[Address, ...]:
        """Take an address of each family: a wanted one, if it is free. Of a Pod with addresses, as many as it has."""
        taken: list[Address] = []
        try:
            for i, pool in enumerate(self._addresses[: len(wanted) or None]):
                taken.append(pool.take(wanted[i] if wanted else None))
        except NoFreeCidr:
            self._release(taken)
            raise
        return tuple(taken)

    def _release(self, addresses: Sequence[Address]) -> None:
        for pool, each in zip(self._addresses, addresses, strict=False):
            pool.release(each)

    def create(self, uid: str, sysctls: Mapping[str, str]) -> PodNamespace:
        """Create the namespace of a Pod, with the address reserved for it, if any. OSError if the kernel refuses."""
        try:
            taken = self._reserved.pop(uid, None) or self._take()
        except NoFreeCidr as error:
            raise OSError(errno.EADDRNOTAVAIL, str(error)) from None
        descriptor = new_namespace()
        try:
            self._join(uid, taken, descriptor)
            with within(descriptor):
                write_sysctls({**_SYSCTLS, **sysctls})
        except BaseException:
            os.close(descriptor)
            self._release(taken)
            raise
        created = self._pods[uid] = PodNamespace(taken, descriptor)
        return created

    def adopt(self, uid: str, addresses: tuple[Address, ...], descriptor: int) -> PodNamespace:
        """Take over the namespace of a Pod whose containers run; its descriptor is the network's from now on."""
        if self._reserved.pop(uid, None) is None:
            self._take(addresses)
        adopted = self._pods[uid] = PodNamespace(addresses, descriptor)
        return adopted

    def remove(self, uid: str) -> None:
        """Let go of a Pod's namespace. The kernel removes it as soon as nothing runs in it."""
        if (reserved := self._reserved.pop(uid, None)) is not None:
            self._release(reserved)
        pod = self._pods.pop(uid, None)
        if pod is not None:
            os.close(pod.descriptor)
            self._release(pod.addresses)

    def _join(self, uid: str, addresses: Sequence[Address], descriptor: int) -> None:
        link = f"{nftables.LINK_PREFIX}v{hashlib.sha256(f'{self._mark}/{uid}'.encode()).hexdigest()[:10]}"
        index = self.bridge_index
        hardware = b"\x0a\x58" + addresses[0].packed  # with the same address comes the same MAC address
        try:
            self._netlink.add_pair(link, _POD_DEVICE, descriptor, bridge=index, hardware=hardware)
        except FileExistsError:  # that of its last namespace, which the kernel is about to remove
            with suppress(OSError):
                self._netlink.remove(link)
            self._netlink.add_pair(link, _POD_DEVICE, descriptor, bridge=index, hardware=hardware)
        port = self._netlink.set_up(link, alias=f"{_OWNER}pod {uid}")  # first: so the Pod's end has a carrier at once
        if self._isolates:
            self._netlink.isolate_port(port)
        with within(descriptor):
            inside = Netlink()
            for name, value in _NO_ROUTER.items():
                write_sysctl(f"net.ipv6.conf.{_POD_DEVICE}.{name}", value, optional=True)
            if len(addresses) > 1:
                for name, value in {**_AT_ONCE, "disable_ipv6": "0"}.items():
                    write_sysctl(f"net.ipv6.conf.{_POD_DEVICE}.{name}", value)
        try:
            inside.set_up("lo")
            device = inside.set_up(_POD_DEVICE)
            inside.add_address(device, addresses[0], self.cidr.prefixlen)
            for each in self._settings.services:
                if each.version == 4:
                    inside.add_route(device, each)
            inside.add_default_route(device, self.gateway)
            for second in addresses[1:]:
                self._join_second(inside, device, second)
        finally:
            inside.close()

    def _join_second(self, inside: Netlink, device: int, address: Address) -> None:
        """Add the IPv6 address of a Pod, and its routes."""
        assert self.second_cidr is not None
        gateway, proxy = gateway_of(self.second_cidr), services_of(self.second_cidr)
        inside.add_address(device, address)
        inside.add_route(device, gateway)
        inside.add_default_route(device, gateway)
        services = [each for each in self._settings.services if each.version == 6]
        if services:
            inside.add_route(device, proxy)
        for each in services:
            inside.add_route_via(device, each, proxy)

    # The bridge

    def _open(self) -> Network:
        """Find or create the bridge, and return its Pod CIDR."""
        links = self._netlink.links()
        self._remove_abandoned(links)
        own = next((each for each in links if each.name == self.bridge), None)
        if own is not None:
            found = self._netlink.addresses(own.number)
            used = any(each.master == own.number for each in links)
            if found and (used or self._settings.cidr in (None, found[0])):
                if self._settings.cidr not in (None, found[0]):
                    _logger.warning(
                        "pod CIDR not changed, Pods use it cidr=%s wanted=%s", found[0], self._settings.cidr
                    )
                self.bridge_index = own.number
                self._connect(found[0])
                return found[0]
            self._netlink.remove(self.bridge)
        routed = [each.destination for each in self._netlink.routes()]
        cidr = choose(self._settings.cidr, self._kept(4), self._settings.ranges, routed)
        self._netlink.add_bridge(self.bridge, b"\x0a\x58" + gateway_of(cidr).packed)
        try:
            write_sysctl(f"net.ipv6.conf.{self.bridge}.disable_ipv6", "1", optional=True)
            owner = f"{_OWNER}{self._directory.resolve()}"
            alias = owner if len(owner.encode()) <= LONGEST_ALIAS else ""
            self.bridge_index = self._netlink.set_up(self.bridge, alias=alias)
            self._netlink.add_address(self.bridge_index, gateway_of(cidr), cidr.prefixlen)
            self._connect(cidr)
        except BaseException:
            self._netlink.remove(self.bridge)
            raise
        self._keep(cidr)
        return cidr

    def _open_second(self) -> Network | None:
        """Find or add the IPv6 Pod CIDR of the bridge; None without IPv6. Pods that run without one stay so."""
        settings = self._settings
        if not settings.second_ranges and settings.second_cidr is None:
            return None
        try:
            if not os.path.isdir(_IPV6):
                raise OSError(errno.EAFNOSUPPORT, "the kernel has no IPv6")
            for name, value in {**_NO_ROUTER, **_AT_ONCE, "disable_ipv6": "0"}.items():
                write_sysctl(f"net.ipv6.conf.{self.bridge}.{name}", value)
            with suppress(FileExistsError):  # the kernel gives it one when it has a carrier: too late for the first Pod
                self._netlink.add_address(self.bridge_index, _LINK_LOCAL, 64)
            found = self._netlink.addresses(self.bridge_index, 6)
            if found and (settings.second_cidr in (None, found[0]) or self._is_used()):
                cidr = found[0]
            else:
                for each in found:
                    self._netlink.remove_address(self.bridge_index, gateway_of(each), each.prefixlen)
                routed = [each.destination for each in self._netlink.routes(6)]
                cidr = choose(settings.second_cidr, self._kept(6), settings.second_ranges, routed)
                self._netlink.add_address(self.bridge_index, gateway_of(cidr), cidr.prefixlen)
            self._connect_second(cidr)
        except BaseException:
            if not self._is_used():
                _remove(self._netlink, self.bridge)
            raise
        self._keep(cidr)
        return cidr

    def _is_used(self) -> bool:
        return any(each.master == self.bridge_index for each in self._netlink.links())

    def _connect_second(self, cidr: Network) -> None:
        """Route IPv6 between Pods, the machine and beyond it. Nothing from outside may reach the Pods before that."""
        try:
            nftables.install(self.bridge, self.bridge, cidr, reachable=self._settings.reachable)
            if enable_ipv6_forwarding():
                _logger.warning("IPv6 forwarding enabled for pods, on all links of this machine")
        except OSError as error:
            _logger.warning("pods reach only this machine over IPv6 error=%s", error.strerror)

    def _kept(self, version: int) -> Network | None:
        with suppress(OSError, ValueError):
            return ip_network((self._directory / _CIDR_FILES[version]).read_text().strip())
        return None

    def _keep(self, cidr: Network) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(self._directory / _CIDR_FILES[cidr.version], flags, 0o600), "w") as file:
            file.write(str(cidr))

    def _connect(self, cidr: Network) -> None:
        """Route between Pods and the rest of the machine, and beyond it as far as it is connected."""
        self._pass_filters()
        try:
            write_sysctl(f"net.ipv4.conf.{self.bridge}.forwarding", "1")
        except OSError as error:
            _logger.warning("pods reach only Pods of their node and this machine error=%s", error.strerror)
            return
        names = {each.number: each.name for each in self._netlink.links()}
        uplinks = {names.get(each.device, "") for each in self._netlink.routes() if not each.destination.prefixlen}
        if not uplinks:
            return
        try:
            nftables.install(self.bridge, self.bridge, cidr, reachable=self._settings.reachable)
            for uplink in uplinks - {""}:
                if enable_forwarding(uplink):
                    _logger.info("forwarding enabled for pods device=%s", uplink)
        except OSError as error:
            _logger.warning("pods do not reach beyond this machine error=%s", error.strerror)

    def _pass_filters(self) -> None:
        """Have packets between Pods of the bridge pass the rules for forwarded packets, as network policies need it.

        Where the kernel cannot have bridged packets pass them (br_netfilter), they are routed: ports of Pods exchange
        no frames, and the bridge answers for the addresses of all.
        """
        try:
            self._netlink.filter_bridge(self.bridge)
            self._isolates = not os.path.isdir(_BRIDGE_FILTER)
        except OSError:
            self._isolates = True
        if self._isolates:
            with suppress(OSError):
                write_sysctl(f"net.ipv4.conf.{self.bridge}.proxy_arp_pvlan", "1")
                write_sysctl(f"net.ipv4.neigh.{self.bridge}.proxy_delay", "0")

    def _remove_abandoned(self, links: list[Link]) -> None:
        """Remove bridges of nodes whose directories are gone, and that no Pod uses."""
        used = {each.master for each in links}
        for each in links:
            owner = each.alias.removeprefix(_OWNER) if each.alias.startswith(_OWNER) else ""
            is_free = each.name.startswith(BRIDGE_PREFIX) and each.name != self.bridge and each.number not in used
            if is_free and owner.startswith("/") and not os.path.isdir(owner):
                _logger.info("bridge of a removed node is removed bridge=%s directory=%s", each.name, owner)
                _remove(self._netlink, each.name)

    def _try(self) -> None:
        """Create and drop a namespace with a link, to find out now whether that is permitted."""
        descriptor = new_namespace()
        try:
            name = f"{nftables.LINK_PREFIX}t-{self._mark[:8]}"
            with suppress(OSError):
                self._netlink.remove(name)
            self._netlink.add_pair(name, _POD_DEVICE, descriptor, bridge=self.bridge_index)
        finally:
            os.close(descriptor)


def parse_addresses(text: str) -> tuple[Address, ...]:
    """The addresses of a Pod, as they were written down; ValueError if they are not."""
    return tuple(ip_address(each) for each in text.split())


def is_machine(descriptor: int) -> bool:
    """Whether a namespace is the one that this thread is in."""
    own = own_namespace()
    try:
        return identity_of(own) == identity_of(descriptor)
    finally:
        os.close(own)


def _close(netlink: Netlink, bridge: str, pods: dict[str, PodNamespace], reserved: Mapping[str, object]) -> None:
    if not pods and not reserved:
        _remove(netlink, bridge)
    while pods:
        os.close(pods.popitem()[1].descriptor)
    netlink.close()


def _remove(netlink: Netlink, bridge: str) -> None:
    with suppress(OSError):
        netlink.remove(bridge)
    nftables.remove(bridge)


def _why(error: OSError) -> str:
    if error.errno in (errno.EPERM, errno.EACCES):
        return "the node may not create network namespaces and links: that takes CAP_SYS_ADMIN and CAP_NET_ADMIN"
    if error.errno in (errno.EOPNOTSUPP, errno.ENOSYS):
        return f"the kernel has no bridges or veth pairs: {error.strerror}"
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error)
