"""Freshness: bring a reader to a state that is not older than its request.

- One question to etcd (its revision, linearizable) serves all readers that arrive before it is sent. A question that is
  under way does not serve later readers: etcd may have answered it already.
- A reader waits until the index has applied that revision. Revisions outside of the watched keys have no event, so a
  progress notification is requested if the index does not reach it at once.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from ostinato.api.errors import Timeout
from ostinato.etcd import EtcdClient, EtcdError
from ostinato.world import Clock

READ_SECONDS = 3.0  # that a reader waits, as with kube-apiserver's watch cache
_EVENT_SECONDS = 0.005  # in which the events of a revision usually arrive
_PROGRESS_SECONDS = 0.1  # between requests for progress
_TIMED_OUT = "request did not complete within requested timeout - context deadline exceeded"


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
        self._readers: list[asyncio.Future[None]] = []  # waiting for the next question
        self._questions: asyncio.Task[None] | None = None
        self._behind: list[tuple[float, asyncio.Future[None]]] = []  # waiting for the index, until a time
        self._progress: asyncio.Task[None] | None = None
        self.failure: str | None = None  # why the last question failed

    async def wait(self) -> None:
        """Return when the index has every write that was acknowledged before the call; Timeout if it does not."""
        loop = asyncio.get_running_loop()
        reader: asyncio.Future[None] = loop.create_future()
        self._readers.append(reader)
        if self._questions is None:
            self._questions = loop.create_task(self._ask(), name="etcd revision")
        await reader

    async def _ask(self) -> None:
        """Ask for the revision as long as there are readers."""
        try:
            while self._readers:
                readers, self._readers = self._readers, []
                known = self._index.version
                try:
                    revision = await self._client.revision(within=READ_SECONDS)
                except EtcdError as error:
                    self.failure = str(error)
                    _fail(readers, _TIMED_OUT)
                    continue
                self.failure = None
                if revision >= known:
                    self._reach(revision, readers)
                else:
                    _fail(readers, _TIMED_OUT)
                    await self._index.start_over(revision)
        finally:
            self._questions = None
            _fail(self._readers, _TIMED_OUT)
            self._readers = []

    def _reach(self, revision: int, readers: list[asyncio.Future[None]]) -> None:
        until = 0.0
        for reader in readers:
            if not reader.done() and not self._index.reaches(revision, reader):
                until = until or self._clock.monotonic() + READ_SECONDS
                self._behind.append((until, reader))
        if self._behind:
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
                _fail([reader for until, reader in self._behind if until <= now], _TIMED_OUT)
                self._behind = [(until, reader) for until, reader in self._behind if not reader.done()]
                self._index.request_progress()
                await self._clock.sleep(_PROGRESS_SECONDS)
        finally:
            self._progress = None

    def close(self) -> None:
        for task in (self._questions, self._progress):
            if task is not None:
                task.cancel()
        _fail([reader for _, reader in self._behind], _TIMED_OUT)
        _fail(self._readers, _TIMED_OUT)


def _fail(readers: list[asyncio.Future[None]], why: str) -> None:
    for reader in readers:
        if not reader.done():
            reader.set_exception(Timeout.of(why, 1))
