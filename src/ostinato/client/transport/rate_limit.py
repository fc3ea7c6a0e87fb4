"""Client-side rate limiter. Disabled by default: API servers protect themselves with priority and fairness.

Requests are delayed in the order of arrival. Delays over 50 ms are logged at debug level, those over one second at info
level, at most once per second.
"""

from __future__ import annotations

import logging
from typing import Final, Protocol

from ostinato.world import Clock

log = logging.getLogger(__name__)

_LOG_DEBUG_OVER: Final = 0.05
_LOG_INFO_OVER: Final = 1.0
_LOG_INFO_EVERY: Final = 1.0


class Limiter(Protocol):
    async def wait(self, what: str) -> float:
        """Wait until a request may be sent, and return for how many seconds. `what`: the request, for the log."""


class TokenBucket:
    """Allows `qps` requests per second after a burst of `burst`. Reserves future tokens when the bucket is empty."""

    def __init__(self, clock: Clock, qps: float, burst: int) -> None:
        if not 0 < qps < float("inf") or burst < 1:
            raise ValueError(f"TokenBucket() qps is {qps} and burst {burst}; qps must be positive and burst at least 1")
        self._clock = clock
        self._qps = qps
        self._burst = burst
        self._tokens = float(burst)  # as of _counted_at; negative while future tokens are reserved
        self._counted_at = clock.monotonic()
        self._logged_at = float("-inf")  # at info level

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
            self._tokens += 1  # not used
            raise
        self._log(what, delay)
        return delay

    def _log(self, what: str, delay: float) -> None:
        if delay > _LOG_INFO_OVER and self._clock.monotonic() - self._logged_at >= _LOG_INFO_EVERY:
            self._logged_at = self._clock.monotonic()
            log.info("request delayed by client-side rate limit request=%s delay=%.1fs", what, delay)
        elif delay > _LOG_DEBUG_OVER:
            log.debug("request delayed by client-side rate limit request=%s delay=%.2fs", what, delay)
