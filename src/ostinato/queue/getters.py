"""Getters: those who wait for something to take, first come, first served.

- What arrives while somebody waits is *promised* to the one who has waited longest, who takes it when it runs. Nobody
  who comes later can take it away.
- A promise binds one thing, not which one: who is woken takes the best there is by then.
- A getter that is cancelled after it was promised something passes the promise on: nothing is lost.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress


class QueueShutDown(Exception):  # noqa: N818 - a signal rather than an error, named as in asyncio
    """The queue is shut down and holds nothing more to hand out."""


class Getters:
    def __init__(self) -> None:
        self.woken = 0  # woken getters that have not run yet: so many things are spoken for
        self._waiting: deque[asyncio.Future[bool]] = deque()  # in order of arrival; those done were cancelled

    async def wait(self) -> None:
        """Return when there is something for the caller, who must take it at once.

        `QueueShutDown` when there never will be.
        """
        wakeup: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append(wakeup)
        try:
            has_item = await wakeup
        except BaseException:
            if wakeup.cancelled():
                with suppress(ValueError):  # `wake_one` may have skipped it already
                    self._waiting.remove(wakeup)
            elif wakeup.result():
                self.woken -= 1
                self.wake_one()
            raise
        if not has_item:
            raise QueueShutDown
        self.woken -= 1

    def wake_one(self) -> None:
        """There is one more thing to take: wake the first who waits, if anybody does."""
        while self._waiting:
            wakeup = self._waiting.popleft()
            if not wakeup.done():
                self.woken += 1
                wakeup.set_result(True)
                return

    def shut_down(self) -> None:
        """Nothing will come any more: send away all who were promised nothing."""
        while self._waiting:
            wakeup = self._waiting.popleft()
            if not wakeup.done():
                wakeup.set_result(False)
