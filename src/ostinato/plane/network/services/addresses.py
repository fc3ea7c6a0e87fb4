"""Assignment of Service addresses on this machine, as the proxy needs it."""

from __future__ import annotations

import socket
from typing import Protocol

from ostinato.plane.network.netlink import Address


class AddressInUse(Exception):  # noqa: N818
    """The address is in use elsewhere; it may become free."""


class AddressUnavailable(Exception):  # noqa: N818
    """Addresses of this kind cannot be assigned on this machine; the message is the reason."""


class ServiceAddresses(Protocol):
    def take(self, address: Address) -> None:
        """Assign an address. Raises `AddressInUse` or `AddressUnavailable`."""

    def release(self, address: Address) -> None:
        """Release an address."""

    def socket(self, kind: int, address: Address) -> socket.socket:
        """Return a socket of a type such as SOCK_STREAM that can be bound to an assigned or local address."""

    def close(self) -> None:
        """Release all addresses."""
