"""Queues between those who notice that something is to be done and those who do it.

- `WorkQueue`: keys, each handed to one worker at a time; with delays, rate limits and priorities.
- `OrderedQueue`: things, strictly one after the other; one that fails is tried again before the next.
- Rate limiters for both: `ExponentialBackoff`, `TokenBucket`, `FastSlow`, `MaxOf`, `MaxWait`.
- `QueueStatistics` keeps the metrics of a work queue.
"""

from __future__ import annotations

from ostinato.queue.getters import QueueShutDown
from ostinato.queue.limiters import ExponentialBackoff, FastSlow, MaxOf, MaxWait, RateLimiter, TokenBucket
from ostinato.queue.metrics import QueueMetrics, QueueStatistics
from ostinato.queue.ordered import OrderedQueue
from ostinato.queue.work import LOW_PRIORITY, WorkQueue

__all__ = [
    "LOW_PRIORITY",
    "ExponentialBackoff",
    "FastSlow",
    "MaxOf",
    "MaxWait",
    "OrderedQueue",
    "QueueMetrics",
    "QueueShutDown",
    "QueueStatistics",
    "RateLimiter",
    "TokenBucket",
    "WorkQueue",
]
