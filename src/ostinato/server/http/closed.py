"""A transport that is closed: what a connection holds instead of its own once that is lost."""

from __future__ import annotations

import asyncio
from typing import Any


class ClosedTransport(asyncio.Transport):
    """Takes no notice of anything.

    A connection that kept its transport would be in a cycle with it, through TLS, and the 45 kB that TLS holds for a
    connection would stay until the garbage collector looks at old objects.
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
