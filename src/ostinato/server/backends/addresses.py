"""Address guard: the addresses that the server may connect to on behalf of clients.

The writer of a Node or Pod chooses an address that this server connects to, so:

- A name is resolved once, all its addresses are checked, and a checked address is dialed: no second lookup can return
  another one (CVE-2020-8562).
- Loopback, unspecified, link-local, multicast and broadcast addresses are rejected in any notation (`127.1`, `0x7f.1`,
  `::ffff:127.0.0.1`), as in kube-apiserver.
- API servers are rejected: this one at any address of this machine, and the endpoints of the Service `kubernetes`. A
  request to them would have this server's identity (CVE-2022-3294).
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

from ostinato.world import Clock

Lookup = Callable[[str], Awaitable[Sequence[str]]]
"""Resolve a name to addresses; OSError if it has none."""

ApiServerAddresses = Callable[[], Iterable[tuple[str, int]]]
"""Addresses and ports."""

_LOOKUP_PATIENCE: Final = 10.0  # seconds
_MOST_LOOKUPS: Final = 4  # concurrent: a slow name server must not take all worker threads
_BROADCAST: Final = IPv4Address("255.255.255.255")


class AddressError(ValueError):
    """A rejected address; the message is shown to clients."""


async def look_up(host: str) -> list[str]:
    """Resolve with the system's resolver, which also accepts legacy address notations."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class AddressGuard:
    """Checks the addresses that one API server connects to."""

    def __init__(self, servers: ApiServerAddresses, clock: Clock, lookup: Lookup = look_up) -> None:
        """`servers`: returns the addresses of the cluster's API servers."""
        self._servers = servers
        self._clock = clock
        self._lookup = lookup
        self._turns = asyncio.Semaphore(_MOST_LOOKUPS)
        self._ports: set[int] = set()

    def serve(self, port: int) -> None:
        """Register a port that this server listens on."""
        self._ports.add(port)

    async def resolve(self, host: str, port: int, *, local: bool = False) -> list[str]:
        """The addresses to dial for a host; AddressError if it has none or one is rejected.

        `local`: allow loopback addresses, for targets known to be on this machine.
        """
        found = [host] if _parsed(host) is not None else await self._found(host)
        return [self.check(each, port, local=local) for each in found]

    async def _found(self, host: str) -> Sequence[str]:
        try:
            async with self._clock.timeout(_LOOKUP_PATIENCE), self._turns:
                found = await self._lookup(host)
        except TimeoutError:
            raise AddressError(f"lookup {host}: i/o timeout") from None
        except (OSError, UnicodeError):
            found = []
        if not found:
            raise AddressError(f"lookup {host}: no such host")
        return found

    def check(self, address: str, port: int, *, local: bool = False) -> str:
        """The canonical notation of an address; AddressError if it is rejected or not an address."""
        parsed = _parsed(address)
        if parsed is None or not (is_global_unicast(parsed) or (local and parsed.is_loopback)):
            raise AddressError("address not allowed")
        if port in self._ports and _is_of_this_machine(parsed):
            raise AddressError("address not allowed")
        if any(port == each_port and parsed == _parsed(each) for each, each_port in self._servers()):
            raise AddressError("address not allowed")
        return str(parsed)


def is_global_unicast(address: IPv4Address | IPv6Address) -> bool:
    """Whether an address is global unicast in Go's sense: private ranges included."""
    unassigned = address.is_unspecified or address.is_multicast or address == _BROADCAST
    return not (unassigned or address.is_loopback or address.is_link_local)


def _parsed(address: str) -> IPv4Address | IPv6Address | None:
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return None
    mapped = parsed.ipv4_mapped if isinstance(parsed, IPv6Address) else None
    return mapped or parsed


def _is_of_this_machine(address: IPv4Address | IPv6Address) -> bool:
    """Whether the address can be bound to, as only addresses of this machine can."""
    if address.is_loopback:
        return True
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((str(address), 0))
    except OSError:
        return False
    return True
