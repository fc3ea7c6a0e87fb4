"""End of the process that started an entry point.

envtest starts its programs in process groups of their own, so that a signal to `go test` does not reach them: when
`go test` is killed or times out, they would run on. A program that runs in such a group stops when its parent has
exited. In the group of its parent, or in a session of its own, it runs until it gets a signal.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ostinato.world import Clock

_INTERVAL: Final = 1.0  # seconds between two checks


class ParentWatch:
    """The parent of this process, as of the time when it was created."""

    def __init__(self) -> None:
        self._parent = os.getppid()
        self._watches = os.getpgrp() == os.getpid() != os.getsid(0)

    async def exited(self, clock: Clock) -> None:
        """Wait until the parent has exited; forever if the process does not depend on it."""
        while not self._watches or os.getppid() == self._parent:
            await clock.sleep(_INTERVAL)
