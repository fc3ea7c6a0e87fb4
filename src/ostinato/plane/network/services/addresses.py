"""Networks: where the addresses of Services may be, as the proxy needs them."""

from __future__ import annotations

import socket
from typing import Protocol

from ostinato.plane.network.netlink import Address


class AddressInUse(Exception):  # noqa: N818 - what is the case
    """The address is somebody else's; it may be free another time."""


class AddressUnavailable(Exception):  # noqa: N818
    """No such address can be had on this machine; the message says why."""


class ServiceAddresses(Protocol):
    def take(self, address: Address) -> None:
        """Have an address: `Taken`, `Unavailable`."""

    def release(self, address: Address) -> None:
        """Have it no longer."""

    def socket(self, kind: int, address: Address) -> socket.socket:
        """One, of a kind like SOCK_STREAM, that can be bound to an address: a taken one, or this machine's own."""

    def close(self) -> None:
        """Give all back."""
