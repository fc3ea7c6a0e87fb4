"""Rate limit: how many requests a second this process sends. Off unless asked for: API servers defend themselves.

Waits are in the order of arrival. Those over 50 ms are worth a line in the log at debug level, those over a second one
at info level, but at most one a second.
"""

from __future__ import annotations

import logging
from typing import Final, Protocol

from ostinato.world import Clock

log = logging.getLogger(__name__)

_WORTH_A_LINE: Final = 0.05
_WORTH_A_LOUD_LINE: Final = 1.0
_BETWEEN_LOUD_LINES: Final = 1.0


class Limiter(Protocol):
    async def wait(self, what: str) -> float:
        """Return when `what`, a request in words, may be sent: after how many seconds."""


class TokenBucket:
    """`burst` requests at once, then `qps` a second. A request takes a token, of the future if there is none now."""

    def __init__(self, clock: Clock, qps: float, burst: int) -> None:
        if not 0 < qps < float("inf") or burst < 1:
            raise ValueError(f"a bucket of {burst} tokens, filled at {qps} a second, would never give one")
        self._clock = clock
        self._qps = qps
        self._burst = burst
        self._tokens = float(burst)  # as of _counted_at; below zero when tokens of the future are taken
        self._counted_at = clock.monotonic()
        self._loud_at = float("-inf")  # when the last loud line was written

    async def wait(self, what: str) -> float:
        now = self._clock.monotonic()
        self._tokens = min(self._tokens + (now - self._counted_at) * self._qps, self._burst) - 1
        self._counted_at = now
        delay = -self._tokens / self._qps
        if delay <= 0:
            return 0.0
        try:
            await self._clock.sleep(delay)
        except BaseException:
            self._tokens += 1  # it was not used
            raise
        self._log(what, delay)
        return delay

    def _log(self, what: str, delay: float) -> None:
        if delay > _WORTH_A_LOUD_LINE and self._clock.monotonic() - self._loud_at >= _BETWEEN_LOUD_LINES:
            self._loud_at = self._clock.monotonic()
            log.info("%s waited %.1f s for the client's own rate limit", what, delay)
        elif delay > _WORTH_A_LINE:
            log.debug("%s waited %.2f s for the client's own rate limit", what, delay)
