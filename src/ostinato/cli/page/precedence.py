"""Precedence: the plane goes before its page on a busy machine.

- The page's process runs only where the plane leaves a processor idle (SCHED_IDLE, on Linux).
- Where that leaves it too little, as beside Pods that compute all the time, it takes a thirtieth of the weight of a
  process of the plane for a while (niceness 15, SCHED_BATCH).
- Without the right to return from SCHED_IDLE, it keeps the lowest weight (niceness 19, SCHED_BATCH): users of the page
  must not wait for ever.
"""

from __future__ import annotations

import os
import re
import resource
from contextlib import suppress
from pathlib import Path
from typing import Final

from ostinato.world import Clock

_NICENESS: Final = 15  # beside processes that never rest
_LOWEST: Final = 19
_CHECK: Final = 0.25  # seconds
_LATE: Final = 1.0  # seconds by which a check is late if the processor was not granted
_RELIEF: Final = 10.0  # seconds of more weight after that
_IDLE: Final = getattr(os, "SCHED_IDLE", None)
_BATCH: Final = getattr(os, "SCHED_BATCH", None)  # it does not interrupt others when events arrive
_CAPABILITY: Final = 1 << 23  # CAP_SYS_NICE
_STATUS: Final = Path("/proc/self/status")


class Precedence:
    """Lowers the precedence of the thread that calls it, the one of the event loop. Call `yield_` before `run`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._may_idle = _IDLE is not None and _may_return()

    def yield_(self) -> None:
        """Let all others go first."""
        with suppress(OSError):
            os.nice(_NICENESS if self._may_idle else _LOWEST)
        _schedule(_IDLE if self._may_idle else _BATCH)

    async def run(self) -> None:
        """Take more weight while it is needed, until cancelled."""
        while self._may_idle:
            due = self._clock.monotonic() + _CHECK
            await self._clock.sleep(_CHECK)
            if self._clock.monotonic() - due >= _LATE:
                _schedule(_BATCH)
                await self._clock.sleep(_RELIEF)
                _schedule(_IDLE)


def _schedule(policy: int | None) -> None:
    if policy is not None:
        with suppress(OSError):
            os.sched_setscheduler(0, policy, os.sched_param(0))


def _may_return() -> bool:
    """Whether this process may leave SCHED_IDLE: by its capabilities, or by the limit of its niceness."""
    if resource.getrlimit(resource.RLIMIT_NICE)[0] >= 20 - _NICENESS:
        return True
    try:
        found = re.search(r"^CapEff:\s*([0-9a-f]+)$", _STATUS.read_text(), re.MULTILINE)
    except OSError:
        return False
    return found is not None and bool(int(found[1], 16) & _CAPABILITY)
