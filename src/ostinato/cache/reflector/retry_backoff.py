"""Retry backoff: the delays of a reflector after errors.

- Exponential, from about 1 s to between 30 and 60 s, with jitter.
- Reset after two minutes without an error. client-go resets every two minutes regardless, so that an unavailable server
  periodically gets requests every second.
"""

from __future__ import annotations

from typing import Final

from ostinato.client.transport.backoff import Backoff
from ostinato.world import Clock, Rng

RESET_AFTER: Final = 120.0  # seconds without an error


class RetryBackoff:
    def __init__(self, backoff: Backoff, clock: Clock, rng: Rng) -> None:
        self._steps = backoff.start(rng)
        self._clock = clock
        self._ended = float("-inf")  # when the last delay ended

    async def wait(self, at_least: float = 0.0) -> None:
        """Sleep for the next delay, or for `at_least` (the server's Retry-After) if that is longer."""
        if self._clock.monotonic() - self._ended >= RESET_AFTER:
            self._steps.reset()
        await self._clock.sleep(max(self._steps.next(), at_least))
        self._ended = self._clock.monotonic()
