"""Freshness: bring a reader to a state that is not older than its request.

- One question to etcd (its revision, linearizable) serves all readers that arrive before it is sent. A question that is
  under way does not serve later readers: etcd may have answered it already.
- With an answer come the next requests of those that it serves. So the next question waits for a turn of the event loop
  that brings no further reader, and for a few turns at most. It waits for no time: there is other work meanwhile.
- A reader waits until the index has applied that revision. Revisions outside of the watched keys have no event, so a
  progress notification is requested if the index does not reach it at once.
- Readers are functions, and a question has no task: under load most of the cost of a read would be theirs. A question
  that fails is asked again by a task, which tries other members.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Protocol

from ostinato.api.errors import Timeout
from ostinato.etcd import DeadlineExceeded, EtcdClient, EtcdError
from ostinato.world import Clock

_logger = logging.getLogger(__name__)

READ_SECONDS = 3.0  # that a reader waits, as with kube-apiserver's watch cache
_EVENT_SECONDS = 0.005  # in which the events of a revision usually arrive
_PROGRESS_SECONDS = 0.1  # between requests for progress
_GATHERING_TURNS = 4  # of the event loop, in which readers join the question after an answer
TIMED_OUT = "request did not complete within requested timeout - context deadline exceeded"

Reader = Callable[[str | None], None]
"""Called once: with None when the index is not older than the request, otherwise with the reason."""


class Followed(Protocol):
    """The index of the readers."""

    version: int

    def reaches(self, revision: int, reader: asyncio.Future[None]) -> bool:
        """Complete the future when the index has reached a revision; whether it has now."""

    @property
    def is_awaited(self) -> bool:
        """Whether anybody waits for a revision."""

    def request_progress(self) -> None:
        """Ask etcd how far the events are that the index has received."""

    async def start_over(self, revision: int) -> None:
        """Load all objects, if etcd is at a revision before that of the index."""


class Freshness:
    def __init__(self, client: EtcdClient, clock: Clock, index: Followed) -> None:
        self._client = client
        self._clock = clock
        self._index = index
        self._readers: list[Reader] = []  # waiting for the next question
        self._asked: list[Reader] = []  # waiting for the answer to the question that is under way
        self._is_asking = False  # a question is under way, or will be sent in this turn of the event loop
        self._task: asyncio.Task[None] | None = None  # of a question that failed
        self._behind: list[tuple[float, asyncio.Future[None]]] = []  # waiting for the index, until a time
        self._progress: asyncio.Task[None] | None = None
        self._is_closed = False
        self.failure: str | None = None  # why the last question failed

    async def wait(self) -> None:
        """Return when the index has every write that was acknowledged before the call; Timeout if it does not."""
        reached: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.join(partial(_complete, reached))
        await reached

    def join(self, reader: Reader) -> None:
        """Call a reader, not before this returns, when the index has every write that was acknowledged before."""
        self._readers.append(reader)
        if not self._is_asking:
            self._is_asking = True
            asyncio.get_running_loop().call_soon(self._ask)  # those that arrive in the same turn join

    def _gather(self, before: int, turns: int) -> None:
        """Ask when a turn of the event loop brings no further reader. `before`: their number in the last turn."""
        count = len(self._readers)
        if count == before or not turns:
            self._ask()
        else:
            asyncio.get_running_loop().call_soon(self._gather, count, turns - 1)

    def _ask(self) -> None:
        """Ask for the revision, if there are readers."""
        readers, self._readers = self._readers, []
        if not readers or self._is_closed:
            self._is_asking = False
            _call(readers, TIMED_OUT)
            return
        known, began = self._index.version, self._clock.monotonic()
        self._asked = readers
        try:
            is_sent = self._client.ask_revision(READ_SECONDS, partial(self._answered, known, began))
        except Exception:
            _logger.exception("cannot ask etcd for its revision")
            is_sent = False
        if not is_sent:
            self._run(self._ask_again(known, READ_SECONDS))

    def _answered(self, known: int, began: float, answer: int | EtcdError) -> None:
        if self._is_closed:
            return
        if isinstance(answer, int) and answer >= known:
            self.failure = None
            readers, self._asked = self._asked, []
            self._reach(answer, readers)
            asyncio.get_running_loop().call_soon(self._gather, -1, _GATHERING_TURNS)
        elif isinstance(answer, int):
            self._run(self._start_over(answer))
        elif isinstance(answer, DeadlineExceeded):
            self._failed(answer)
        else:
            self._run(self._ask_again(known, READ_SECONDS - (self._clock.monotonic() - began)))

    def _failed(self, error: Exception) -> None:
        self.failure = str(error)
        readers, self._asked = self._asked, []
        _call(readers, TIMED_OUT)
        self._ask()

    async def _ask_again(self, known: int, within: float) -> None:
        """Ask any member, until the time is over."""
        try:
            revision = await self._client.revision(within=max(within, 0.0))
        except EtcdError as error:
            self._failed(error)
        except Exception as error:
            _logger.exception("cannot ask etcd for its revision")
            self._failed(error)
        else:
            self._answered(known, 0.0, revision)

    async def _start_over(self, revision: int) -> None:
        """Have the index load an etcd that has lost writes."""
        readers, self._asked = self._asked, []
        _call(readers, TIMED_OUT)
        try:
            await self._index.start_over(revision)
        except Exception:
            _logger.exception("cannot load etcd again")
        finally:
            self._ask()

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a task, which ends with the next question; there is never another."""
        self._task = asyncio.get_running_loop().create_task(work, name="etcd revision")

    def _reach(self, revision: int, readers: list[Reader]) -> None:
        if revision <= self._index.version:
            _call(readers, None)
            return
        reached: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        reached.add_done_callback(partial(_reached, readers))
        self._index.reaches(revision, reached)
        self._behind.append((self._clock.monotonic() + READ_SECONDS, reached))
        self.hurry()

    def hurry(self) -> None:
        """Request progress while anybody waits for the index."""
        if self._progress is None:
            self._progress = asyncio.get_running_loop().create_task(self._advance(), name="etcd progress")

    async def _advance(self) -> None:
        try:
            await self._clock.sleep(_EVENT_SECONDS)
            while self._index.is_awaited:
                now = self._clock.monotonic()
                _fail([reached for until, reached in self._behind if until <= now])
                self._behind = [(until, reached) for until, reached in self._behind if not reached.done()]
                self._index.request_progress()
                await self._clock.sleep(_PROGRESS_SECONDS)
        finally:
            self._progress = None

    def close(self) -> None:
        """End; readers that wait are called with a reason."""
        self._is_closed, self._is_asking = True, False
        for task in (self._task, self._progress):
            if task is not None:
                task.cancel()
        _fail([reached for _, reached in self._behind])
        readers, self._asked, self._readers = [*self._asked, *self._readers], [], []
        _call(readers, TIMED_OUT)


def _call(readers: list[Reader], problem: str | None) -> None:
    for reader in readers:
        try:
            reader(problem)
        except Exception:  # of one reader: the others have to be called
            _logger.exception("reader failed")


def _reached(readers: list[Reader], reached: asyncio.Future[None]) -> None:
    _call(readers, None if reached.exception() is None else TIMED_OUT)


def _complete(reached: asyncio.Future[None], problem: str | None) -> None:
    if reached.done():
        return
    if problem is None:
        reached.set_result(None)
    else:
        reached.set_exception(Timeout.of(problem, 1))


def _fail(waiting: list[asyncio.Future[None]]) -> None:
    for reached in waiting:
        _complete(reached, TIMED_OUT)
