"""Work queues between event handlers and workers.

- `WorkQueue`: hands each key to one worker at a time; with delays, rate limits and priorities.
- `OrderedQueue`: hands out items one at a time in their order; a failed item is retried before the next.
- Rate limiters for both: `ExponentialBackoff`, `TokenBucket`, `FastSlow`, `MaxOf`, `MaxWait`.
- `QueueStatistics`: the metrics of a work queue.
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
