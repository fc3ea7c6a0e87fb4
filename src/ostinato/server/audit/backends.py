"""Audit backends: log and webhook, blocking or batched.

- `blocking` and `blocking-strict`: a request waits until its event is written. Events that arrive during a write are
  written together by the next one.
- `batch`: events are buffered and written in the background; when the buffer is full, new events are dropped and
  counted.
- A failed write is logged with the number of lost events; the next events are tried again. A writer task that ends
  unexpectedly is logged and restarted.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from ostinato.server.audit.counters import AuditCounters
from ostinato.server.audit.event import Event, encoded, legacy_line
from ostinato.server.audit.log_file import LogFile, StandardOutput
from ostinato.server.audit.settings import AuditLogSettings, AuditWebhookSettings, Batching, Mode, Truncation
from ostinato.server.state import StateError
from ostinato.server.webhooks.target import CallError, HttpStatusError, Target
from ostinato.world import Clock, World

_MOST_AT_ONCE = 1000  # events per blocking write
_WEBHOOK_SECONDS = 30  # timeout of one call
_WEBHOOK_ATTEMPTS, _FACTOR, _JITTER = 5, 1.5, 0.2
_RETRIED = frozenset({429, 500, 504})
_RESTART = 1.0  # seconds until an ended writer is restarted
_REMINDER = 60.0  # seconds between two log lines about dropped events
_logger = logging.getLogger(__name__)

Call = Callable[[Target, bytes, int], Awaitable[bytes]]


class Backend(Protocol):
    name: str

    async def send(self, events: Sequence[Event]) -> None:
        """Write events; OSError or CallError if they are lost."""

    async def close(self) -> None: ...


def _texts(events: Sequence[Event], name: str, truncation: Truncation | None) -> list[bytes]:
    """Encode events as JSON. Too large events are truncated; those that are still too large are dropped."""
    texts = []
    for event in events:
        text = encoded(event)
        if truncation is not None and len(text) > truncation.max_event_size:
            text = encoded(event, truncated=True)
            if len(text) > truncation.max_event_size:
                _logger.error("audit event too large after truncation, dropped backend=%s bytes=%d", name, len(text))
                continue
        texts.append(text)
    return texts


class LogBackend:
    name = "log"

    def __init__(self, settings: AuditLogSettings, world: World) -> None:
        """StateError if the file cannot be opened."""
        self._settings = settings
        self._executor = world.executor
        try:
            self._file = StandardOutput() if settings.path == "-" else LogFile(settings, world.clock)
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            fields = f"audit log {settings.path}: cannot write: {why}"
            raise StateError(f"{fields}: give another path or create its directory") from None

    async def send(self, events: Sequence[Event]) -> None:
        await self._executor.run(self._write, events)

    def _write(self, events: Sequence[Event]) -> None:
        """Encode and write; runs in a worker thread."""
        if self._settings.format == "legacy":
            texts = [legacy_line(event).encode() for event in events]
        else:
            texts = _texts(events, self.name, self._settings.truncation)
        self._file.write(b"".join(text + b"\n" for text in texts))

    async def close(self) -> None:
        await self._executor.run(self._file.close)


class WebhookBackend:
    name = "webhook"

    def __init__(self, settings: AuditWebhookSettings, world: World, call: Call) -> None:
        self._settings = settings
        self._world = world
        self._call = call

    async def send(self, events: Sequence[Event]) -> None:
        truncation = self._settings.truncation
        texts = await self._world.executor.run(_texts, events, self.name, truncation)
        for batch in _batches(texts, truncation):
            head = b'{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":['
            await self._posted(head + b",".join(batch) + b"]}")

    async def _posted(self, body: bytes) -> None:
        wait = self._settings.initial_backoff
        for attempt in range(_WEBHOOK_ATTEMPTS):
            try:
                await self._call(self._settings.backend, body, _WEBHOOK_SECONDS)
            except CallError as error:
                if attempt == _WEBHOOK_ATTEMPTS - 1 or not _is_transient(error):
                    raise
            else:
                return
            await self._world.clock.sleep(self._world.rng.jitter(wait, _JITTER))
            wait *= _FACTOR

    async def close(self) -> None:
        """Nothing to close: connections belong to the server's webhook client."""


def _is_transient(error: CallError) -> bool:
    """Whether a retry may succeed: the backend is unreachable or overloaded."""
    return not isinstance(error, HttpStatusError) or error.status in _RETRIED


def _batches(texts: list[bytes], truncation: Truncation | None) -> list[list[bytes]]:
    batches: list[list[bytes]] = []
    size = 0
    for text in texts:
        if not batches or (truncation is not None and size + len(text) > truncation.max_batch_size):
            batches.append([])
            size = 0
        batches[-1].append(text)
        size += len(text)
    return batches


class Delivery:
    """Delivers events to a backend in a mode: `process` events, then `close`."""

    def __init__(self, backend: Backend, mode: Mode, batching: Batching, clock: Clock, counters: AuditCounters) -> None:
        self._backend = backend
        self._mode = mode
        self._batching = batching
        self._clock = clock
        self._counters = counters
        self._waiting: deque[tuple[Event, asyncio.Future[bool] | None]] = deque()
        self._more = asyncio.Event()  # events are waiting, or the delivery is closing
        self._task: asyncio.Task[None] | None = None
        self._closing = False  # flushing the last events
        self._closed = False
        self._dropped = 0  # events since the last reminder
        self._remind_at = 0.0
        self._tokens, self._since = float(batching.burst), clock.monotonic()

    async def process(self, event: Event) -> bool:
        """Deliver an event; False if it is lost in mode `blocking-strict`."""
        if self._closed:
            self._counters.errors[self._backend.name] += 1
            _logger.error("audit event after close, lost backend=%s", self._backend.name)
            return self._mode != "blocking-strict"
        if self._task is None:
            self._start()
        if self._mode == "batch":
            if len(self._waiting) >= self._batching.buffer_size:
                self._drop()
            else:
                self._waiting.append((event, None))
                self._more.set()
            return True
        written: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append((event, written))
        self._more.set()
        return await asyncio.shield(written) or self._mode != "blocking-strict"

    async def close(self) -> None:
        """Flush the buffer and stop."""
        self._closing = True
        self._more.set()
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)
        self._closed = True
        await self._backend.close()

    def _drop(self) -> None:
        self._dropped += 1
        self._counters.errors[self._backend.name] += 1
        now = self._clock.monotonic()
        if now >= self._remind_at:
            self._remind_at = now + _REMINDER
            _logger.error("audit buffer full, events dropped backend=%s events=%d", self._backend.name, self._dropped)
            self._dropped = 0

    def _start(self) -> None:
        if self._closed:
            return
        self._task = asyncio.get_running_loop().create_task(self._run(), name=f"audit {self._backend.name}")
        self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Log an unexpected end of the writer task and restart it."""
        if task.cancelled() or self._closing:
            return
        _logger.critical("audit writer ended, restarting backend=%s", self._backend.name, exc_info=task.exception())
        self._clock.timer(_RESTART, self._start)

    async def _run(self) -> None:
        while self._waiting or not self._closing:
            if not self._waiting:
                self._more.clear()
                await self._more.wait()
                continue
            if self._mode == "batch":
                await self._fill()
            most = self._batching.max_size if self._mode == "batch" else _MOST_AT_ONCE
            if self._mode == "batch" and self._backend.name == "log":
                most = _MOST_AT_ONCE  # no batch size limit
            taken = [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]
            done = await self._sent([event for event, _ in taken])
            for _, written in taken:
                if written is not None and not written.done():
                    written.set_result(done)

    async def _sent(self, events: list[Event]) -> bool:
        try:
            await self._backend.send(events)
        except Exception as error:  # noqa: BLE001 - the next events are tried again
            name = self._backend.name
            self._counters.errors[name] += len(events)
            _logger.error("audit backend failed, events lost backend=%s events=%d error=%s", name, len(events), error)
            return False
        return True

    async def _fill(self) -> None:
        """Wait until a batch is full or max_wait has passed, and the rate limit allows sending."""
        batching = self._batching
        until = self._clock.monotonic() + batching.max_wait
        while len(self._waiting) < batching.max_size and not self._closing and self._clock.monotonic() < until:
            self._more.clear()
            try:
                async with self._clock.timeout(until - self._clock.monotonic()):
                    await self._more.wait()
            except TimeoutError:
                break
        if batching.qps and not self._closing:
            await self._throttle()

    async def _throttle(self) -> None:
        batching, now = self._batching, self._clock.monotonic()
        self._tokens = min(float(batching.burst), self._tokens + (now - self._since) * batching.qps)
        self._since = now
        if self._tokens < 1:
            await self._clock.sleep((1 - self._tokens) / batching.qps)
            self._tokens, self._since = 1.0, self._clock.monotonic()
        self._tokens -= 1
