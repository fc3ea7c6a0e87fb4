"""Rate limiters: how long a key that failed has to wait before it is tried again.

- `when(key)` says how many seconds, and counts: each call is one more failure of the key.
- `forget(key)` ends the counting of a key, when it succeeded or was given up.
- `requeues(key)` is how often it was counted.

The default of a work queue is that of client-go: `MaxOf(ExponentialBackoff(), TokenBucket(clock))`, the first against
a key that fails over and over, the second against many keys that fail at once.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, Protocol, TypeVar

from ostinato.world import Clock

K = TypeVar("K", bound=Hashable)
K_contra = TypeVar("K_contra", bound=Hashable, contravariant=True)

_LARGEST_EXPONENT = 1023  # two to the power of more than this is no float


class RateLimiter(Protocol[K_contra]):
    def when(self, key: K_contra, /) -> float:
        """How many seconds the key has to wait. Counts."""

    def forget(self, key: K_contra, /) -> None:
        """The key is no longer tried again."""

    def requeues(self, key: K_contra, /) -> int:
        """How many times the key was told to wait since it was last forgotten."""


class _FailureCounter(Generic[K]):
    def __init__(self) -> None:
        self._failures: dict[K, int] = {}  # since each key was last forgotten

    def forget(self, key: K) -> None:
        self._failures.pop(key, None)

    def requeues(self, key: K) -> int:
        return self._failures.get(key, 0)


class ExponentialBackoff(_FailureCounter[K]):
    """Each failure of a key doubles its wait, from `base` up to `maximum` seconds."""

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
    """The first `fast_attempts` failures of a key wait `fast` seconds each, all further ones `slow` seconds."""

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
    """All keys together: `burst` at once, then `rate` a second.

    A call reserves a token, of the future if there is none now, and the wait is until it comes.
    """

    def __init__(self, clock: Clock, rate: float = 10.0, burst: int = 100) -> None:
        if not rate > 0 or burst < 1:
            raise ValueError(f"a bucket of {burst} tokens, filled at {rate} a second, would never give one")
        self._clock = clock
        self._rate = rate
        self._burst = burst
        self._tokens = float(burst)  # as of _counted_at; below zero when tokens of the future are reserved
        self._counted_at = clock.monotonic()

    def when(self, _key: Hashable) -> float:
        now = self._clock.monotonic()
        self._tokens = min(self._tokens + (now - self._counted_at) * self._rate, self._burst) - 1
        self._counted_at = now
        return max(0.0, -self._tokens / self._rate)

    def forget(self, _key: Hashable) -> None:
        """Nothing: a reserved token is spent."""

    def requeues(self, _key: Hashable) -> int:
        return 0


class MaxOf(Generic[K]):
    """The longest wait that any of several limiters demands. Each of them counts every call."""

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
    """What another limiter demands, but never more than `maximum` seconds."""

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
            raise ValueError(f"{name}: {value} is not a number of seconds to wait")
