"""RetryBackoff: how long a reflector waits after a failure before it tries again.

Each pause is about twice as long as the one before, from about one second to between 30 and 60, never the same in two
processes. Two minutes without a failure make the next one the first again; a server that is down for an hour is asked
once a minute for that hour, and not every second now and then.
"""

from __future__ import annotations

from typing import Final

from ostinato.client.transport.backoff import Backoff
from ostinato.world import Clock, Rng

RESET_AFTER: Final = 120.0  # seconds without a failure after which the past is forgotten


class RetryBackoff:
    def __init__(self, backoff: Backoff, clock: Clock, rng: Rng) -> None:
        self._steps = backoff.start(rng)
        self._clock = clock
        self._ended = float("-inf")  # when the last pause was over

    async def wait(self, at_least: float = 0.0) -> None:
        """Pause, for as long as the server asks at least."""
        if self._clock.monotonic() - self._ended >= RESET_AFTER:
            self._steps.reset()
        await self._clock.sleep(max(self._steps.next(), at_least))
        self._ended = self._clock.monotonic()
