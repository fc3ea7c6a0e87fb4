"""Rate limiters: how long a failed key waits before it is requeued.

- `when(key)` returns the delay in seconds and counts one failure of the key.
- `forget(key)` resets the failures of a key that succeeded or was dropped.
- `requeues(key)` returns the number of failures counted since then.

The default of a work queue is client-go's: `MaxOf(ExponentialBackoff(), TokenBucket(clock))`. The first limits one key
that fails repeatedly, the second many keys that fail at the same time.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, Protocol, TypeVar

from ostinato.world import Clock

K = TypeVar("K", bound=Hashable)
K_contra = TypeVar("K_contra", bound=Hashable, contravariant=True)

_LARGEST_EXPONENT = 1023  # of two, within the range of a float


class RateLimiter(Protocol[K_contra]):
    def when(self, key: K_contra, /) -> float:
        """Return how many seconds the key has to wait, and count a failure."""

    def forget(self, key: K_contra, /) -> None:
        """Reset the failures of the key."""

    def requeues(self, key: K_contra, /) -> int:
        """Return the number of failures since the last `forget`."""


class _FailureCounter(Generic[K]):
    def __init__(self) -> None:
        self._failures: dict[K, int] = {}  # per key, since its last `forget`

    def forget(self, key: K) -> None:
        self._failures.pop(key, None)

    def requeues(self, key: K) -> int:
        return self._failures.get(key, 0)


class ExponentialBackoff(_FailureCounter[K]):
    """Delay of `base` seconds, doubled with each failure of the key up to `maximum` seconds."""

    def __init__(self, base: float = 0.005, maximum: float = 1000.0) -> None:
        super().__init__()
        _check(base=base, maximum=maximum)
        self._base = base
        self._maximum = maximum

    def when(self, key: K) -> float:
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        return min(self._base * 2.0 ** min(failures, _LARGEST_EXPONENT), self._maximum)


class FastSlow(_FailureCounter[K]):
    """Delay of `fast` seconds for the first `fast_attempts` failures of a key, then of `slow` seconds."""

    def __init__(self, fast: float, slow: float, fast_attempts: int) -> None:
        super().__init__()
        _check(fast=fast, slow=slow)
        self._fast = fast
        self._slow = slow
        self._fast_attempts = fast_attempts

    def when(self, key: K) -> float:
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        return self._fast if failures <= self._fast_attempts else self._slow


class TokenBucket:
    """Delay that limits all keys together to `rate` per second, after a burst of `burst`.

    Each call reserves a token. If the bucket is empty, it reserves a future one and returns the time until then.
    """

    def __init__(self, clock: Clock, rate: float = 10.0, burst: int = 100) -> None:
        if not rate > 0 or burst < 1:
            raise ValueError(
                f"TokenBucket() rate is {rate} and burst {burst}; rate must be positive and burst at least 1"
            )
        self._clock = clock
        self._rate = rate
        self._burst = burst
        self._tokens = float(burst)  # as of _counted_at; negative while future tokens are reserved
        self._counted_at = clock.monotonic()

    def when(self, _key: Hashable) -> float:
        now = self._clock.monotonic()
        self._tokens = min(self._tokens + (now - self._counted_at) * self._rate, self._burst) - 1
        self._counted_at = now
        return max(0.0, -self._tokens / self._rate)

    def forget(self, _key: Hashable) -> None:
        """Do nothing: a reserved token cannot be returned."""

    def requeues(self, _key: Hashable) -> int:
        return 0


class MaxOf(Generic[K]):
    """Longest delay of several limiters, each of which counts every call."""

    def __init__(self, *limiters: RateLimiter[K]) -> None:
        self._limiters = limiters

    def when(self, key: K) -> float:
        return max([limiter.when(key) for limiter in self._limiters], default=0.0)

    def forget(self, key: K) -> None:
        for limiter in self._limiters:
            limiter.forget(key)

    def requeues(self, key: K) -> int:
        return max([limiter.requeues(key) for limiter in self._limiters], default=0)


class MaxWait(Generic[K]):
    """Delay of another limiter, at most `maximum` seconds."""

    def __init__(self, limiter: RateLimiter[K], maximum: float) -> None:
        _check(maximum=maximum)
        self._limiter = limiter
        self._maximum = maximum

    def when(self, key: K) -> float:
        return min(self._limiter.when(key), self._maximum)

    def forget(self, key: K) -> None:
        self._limiter.forget(key)

    def requeues(self, key: K) -> int:
        return self._limiter.requeues(key)


def _check(**seconds: float) -> None:
    for name, value in seconds.items():
        if not 0 <= value < float("inf"):
            raise ValueError(f"{name} is {value}; it must be a finite, non-negative number of seconds")
