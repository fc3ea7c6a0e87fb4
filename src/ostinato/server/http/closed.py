"""Closed transport: replaces the transport of a connection that is lost."""

from __future__ import annotations

import asyncio
from typing import Any


class ClosedTransport(asyncio.Transport):
    """Ignores all calls.

    A connection that kept its transport would be in a reference cycle with it, through TLS, and the 45 kB of TLS state
    would be held until the garbage collector runs.
    """

    def is_closing(self) -> bool:
        return True

    def write(self, data: Any) -> None:
        pass

    def close(self) -> None:
        pass

    def abort(self) -> None:
        pass

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


CLOSED = ClosedTransport()
