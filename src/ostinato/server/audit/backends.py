"""Where audit events go: to the log and to the webhook, at once or in batches.

- `blocking` and `blocking-strict`: a request waits until its event is written. What comes while a write is under way is
  written together by the next one.
- `batch`: events wait in a bounded buffer and are written in the background; when the buffer is full, new events are
  dropped and counted.
- A backend that fails is logged with the number of events that are lost, and tried again with the next ones. The task
  that writes catches everything; should it end nevertheless, that is logged and it is started anew.
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
from ostinato.server.webhooks.target import CallError, Target
from ostinato.world import Clock, World

_MOST_AT_ONCE = 1000  # events that one blocking write takes
_WEBHOOK_SECONDS = 30  # that one call may take
_WEBHOOK_ATTEMPTS, _FACTOR, _JITTER = 5, 1.5, 0.2
_RETRIED = frozenset({429, 500, 504})
_RESTART = 1.0  # seconds after which a writer that ended is started anew
_REMINDER = 60.0  # seconds between two log lines about events that are dropped
_logger = logging.getLogger(__name__)

Call = Callable[[Target, bytes, int], Awaitable[bytes]]


class Backend(Protocol):
    name: str

    async def send(self, events: Sequence[Event]) -> None:
        """Write events. OSError or CallError if they are lost."""

    async def close(self) -> None: ...


def _texts(events: Sequence[Event], name: str, truncation: Truncation | None) -> list[bytes]:
    """Events as JSON. Those that are too large lose their objects; those that still are, are dropped."""
    texts = []
    for event in events:
        text = encoded(event)
        if truncation is not None and len(text) > truncation.max_event_size:
            text = encoded(event, truncated=True)
            if len(text) > truncation.max_event_size:
                _logger.error("audit event too large after truncating; dropped backend=%s bytes=%d", name, len(text))
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
            fields = f"cannot write the audit log {settings.path}: {why}"
            raise StateError(f"{fields}: give another path, or create its directory") from None

    async def send(self, events: Sequence[Event]) -> None:
        await self._executor.run(self._write, events)

    def _write(self, events: Sequence[Event]) -> None:
        """In a worker: encoding takes longer than writing."""
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
        """The connections belong to the server's webhooks."""


def _is_transient(error: CallError) -> bool:
    """Whether the same call may succeed later: the backend is not there, or is overloaded."""
    return getattr(error, "status", 0) in _RETRIED or not hasattr(error, "status")


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
    """A backend in a mode: `process` events, then `close` it."""

    def __init__(self, backend: Backend, mode: Mode, batching: Batching, clock: Clock, counters: AuditCounters) -> None:
        self._backend = backend
        self._mode = mode
        self._batching = batching
        self._clock = clock
        self._counters = counters
        self._waiting: deque[tuple[Event, asyncio.Future[bool] | None]] = deque()
        self._more = asyncio.Event()  # something waits, or the end has come
        self._task: asyncio.Task[None] | None = None
        self._closing = False  # the last events are being written
        self._closed = False
        self._dropped = 0  # events since the last reminder
        self._remind_at = 0.0
        self._tokens, self._since = float(batching.burst), clock.monotonic()

    async def process(self, event: Event) -> bool:
        """Take an event; whether it may be relied on. Only `blocking-strict` says no."""
        if self._closed:
            self._counters.errors[self._backend.name] += 1
            _logger.error("audit event after the end; lost backend=%s", self._backend.name)
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
        """Write what waits, then end."""
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
            _logger.error(
                "audit buffer is full; events dropped backend=%s events=%d", self._backend.name, self._dropped
            )
            self._dropped = 0

    def _start(self) -> None:
        if self._closed:
            return
        self._task = asyncio.get_running_loop().create_task(self._run(), name=f"audit {self._backend.name}")
        self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Nobody awaits the task before the end: its failure is told here, and it is started anew."""
        if task.cancelled() or self._closing:
            return
        _logger.critical("audit writer ended; restarting backend=%s", self._backend.name, exc_info=task.exception())
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
                most = _MOST_AT_ONCE  # a file takes what there is
            taken = [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]
            done = await self._sent([event for event, _ in taken])
            for _, written in taken:
                if written is not None and not written.done():
                    written.set_result(done)

    async def _sent(self, events: list[Event]) -> bool:
        try:
            await self._backend.send(events)
        except Exception as error:  # noqa: BLE001 - whatever it is, the next events are tried
            name = self._backend.name
            self._counters.errors[name] += len(events)
            _logger.error("audit backend failed; events lost backend=%s events=%d error=%s", name, len(events), error)
            return False
        return True

    async def _fill(self) -> None:
        """Wait until a batch is full or old enough, and until one may be sent."""
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
