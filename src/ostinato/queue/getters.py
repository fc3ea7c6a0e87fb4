"""Getters: the tasks blocked in `get()`, woken in the order in which they began to wait.

- An item that arrives wakes the longest waiting getter and is reserved for it until it runs: a `get()` that is called
  in between cannot take it.
- A reservation is for a place, not for a particular item: the woken getter takes the item that is first by then.
- A getter that is cancelled after it was woken passes the wake-up on to the next, so no item is lost.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress


class QueueShutDown(Exception):  # noqa: N818 - a signal rather than an error, named as in asyncio
    """The queue is shut down and empty."""


class Getters:
    def __init__(self) -> None:
        self.woken = 0  # woken getters that have not run yet; as many items are reserved
        self._waiting: deque[asyncio.Future[bool]] = deque()  # in order; a future that is done was cancelled

    async def wait(self) -> None:
        """Wait for an item, which the caller must take before it awaits anything else.

        Raises `QueueShutDown` if the queue is shut down meanwhile.
        """
        wakeup: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append(wakeup)
        try:
            has_item = await wakeup
        except BaseException:
            if wakeup.cancelled():
                with suppress(ValueError):  # already removed by `wake_one`
                    self._waiting.remove(wakeup)
            elif wakeup.result():
                self.woken -= 1
                self.wake_one()
            raise
        if not has_item:
            raise QueueShutDown
        self.woken -= 1

    def wake_one(self) -> None:
        """Wake the longest waiting getter, if any: one more item is available."""
        while self._waiting:
            wakeup = self._waiting.popleft()
            if not wakeup.done():
                self.woken += 1
                wakeup.set_result(True)
                return

    def shut_down(self) -> None:
        """Raise `QueueShutDown` in every waiting getter for which no item is reserved."""
        while self._waiting:
            wakeup = self._waiting.popleft()
            if not wakeup.done():
                wakeup.set_result(False)
