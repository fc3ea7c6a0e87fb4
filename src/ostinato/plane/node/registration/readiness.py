"""Readiness of a node: components that its condition Ready depends on, as kubelet's runtime state.

- A component that is waited for at the start and does not become ready in time is ignored from then on, with a warning:
  a node that can run Pods but, for example, not serve their logs is worth more than none.
- A component that fails later makes the node not ready until it works again.
"""

from __future__ import annotations

import asyncio
import logging

from ostinato.world import Clock
from ostinato.world.clock import Timer

_logger = logging.getLogger(__name__)


class NodeReadiness:
    """Ready as soon as nothing is waited for, and from the start if nothing ever is."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: dict[str, tuple[str, Timer]] = {}  # message and time limit, by component
        self._failing: dict[str, str] = {}  # message, by component
        self._changed = asyncio.Event()

    @property
    def message(self) -> str:
        """Why the node is not ready; empty if it is."""
        return ", ".join([*(message for message, _ in self._waiting.values()), *self._failing.values()])

    def wait_for(self, component: str, message: str, at_most: float) -> None:
        """Report not ready, with a message, until `mark_ready` is called or `at_most` seconds have passed."""
        self._waiting[component] = (message, self._clock.timer(at_most, self._expire, component))
        self._changed.set()

    def mark_ready(self, component: str) -> None:
        waiting = self._waiting.pop(component, None)
        if waiting is not None:
            waiting[1].cancel()
            self._changed.set()

    def report(self, component: str, message: str) -> None:
        """Report not ready for as long as a component fails; an empty message: it works."""
        before = self._failing.pop(component, "")
        if message:
            self._failing[component] = message
        if message != before:
            self._changed.set()

    async def changed(self) -> None:
        """Wait for the next change since the last call."""
        await self._changed.wait()
        self._changed.clear()

    def close(self) -> None:
        for _, timer in self._waiting.values():
            timer.cancel()

    def _expire(self, component: str) -> None:
        message, _ = self._waiting.pop(component)
        _logger.warning("node reports Ready without a component component=%s message=%s", component, message)
        self._changed.set()
