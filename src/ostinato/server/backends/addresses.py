"""Address guard: the addresses that the server may connect to on behalf of clients.

Whoever writes a Node or a Pod chooses an address that this server then connects to, so:

- A name is resolved once, every address that it has is checked, and one of those is dialed. There is no second lookup
  that could give another address (CVE-2020-8562).
- Loopback, unspecified, link-local, multicast and broadcast addresses are refused, in whatever notation they come
  (`127.1`, `0x7f.1`, `::ffff:127.0.0.1`), as kube-apiserver does.
- API servers themselves are refused: this one at any address of this machine, and those that the Service `kubernetes`
  in the namespace `default` leads to. A request to them would arrive with this server's identity (CVE-2022-3294).
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

from ostinato.world import Clock

Lookup = Callable[[str], Awaitable[Sequence[str]]]
"""The addresses that a name has now; an OSError if it has none."""

ApiServerAddresses = Callable[[], Iterable[tuple[str, int]]]
"""Addresses and ports."""

_LOOKUP_PATIENCE: Final = 10.0  # seconds
_MOST_LOOKUPS: Final = 4  # at once: a name server that does not answer must not take the threads of all others
_BROADCAST: Final = IPv4Address("255.255.255.255")


class AddressError(ValueError):
    """An address that must not be asked; the message is for clients."""


async def look_up(host: str) -> list[str]:
    """Ask the system's resolver, which also reads the old notations of addresses."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class AddressGuard:
    """Of one API server."""

    def __init__(self, servers: ApiServerAddresses, clock: Clock, lookup: Lookup = look_up) -> None:
        """`servers`: where the cluster's API servers are reached, as its objects say."""
        self._servers = servers
        self._clock = clock
        self._lookup = lookup
        self._turns = asyncio.Semaphore(_MOST_LOOKUPS)
        self._ports: set[int] = set()

    def serve(self, port: int) -> None:
        """This server listens on a port of this machine."""
        self._ports.add(port)

    async def resolve(self, host: str, port: int, *, local: bool = False) -> list[str]:
        """The addresses to dial for a host; `AddressError` if it has none, or one of them must not be asked.

        `local`: addresses of this machine alone (loopback) may be asked too, for what is known to be on it.
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
        """An address in its usual notation, to dial; `AddressError` if it must not be asked, or is a name."""
        parsed = _parsed(address)
        if parsed is None or not (is_global_unicast(parsed) or (local and parsed.is_loopback)):
            raise AddressError("address not allowed")
        if port in self._ports and _is_of_this_machine(parsed):
            raise AddressError("address not allowed")
        if any(port == each_port and parsed == _parsed(each) for each, each_port in self._servers()):
            raise AddressError("address not allowed")
        return str(parsed)


def is_global_unicast(address: IPv4Address | IPv6Address) -> bool:
    """Whether an address is of one machine that is not just this one; private ranges are."""
    nobody = address.is_unspecified or address.is_multicast or address == _BROADCAST
    return not (nobody or address.is_loopback or address.is_link_local)


def _parsed(address: str) -> IPv4Address | IPv6Address | None:
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return None
    mapped = parsed.ipv4_mapped if isinstance(parsed, IPv6Address) else None
    return mapped or parsed


def _is_of_this_machine(address: IPv4Address | IPv6Address) -> bool:
    """Only an address of this machine can be bound to."""
    if address.is_loopback:
        return True
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((str(address), 0))
    except OSError:
        return False
    return True
