"""watch: the changes of a selection from a resourceVersion on.

- Events are in the order of the store, each once. An object that begins to match is ADDED, one that ceases to match is
  DELETED, with its last matching state.
- Without a resourceVersion, or from "0", the watch begins with the current state. From a resourceVersion it begins with
  the next event, even if that resourceVersion is in the future; if it is compacted, the watch ends with an error event.
- Bookmarks, on request, have the resourceVersion up to which all events were sent: after the initial events, once a
  minute, and shortly before the watch ends.
- A watch ends with its timeout, when its client is too slow, and when its resource is removed.
- A client that sends `Ostinato-Watch-Interval: SECONDS` receives the events of so many seconds together, which costs
  the server less than single events do. With `SECONDS; merge=N`, while more than N events wait, it receives them once
  a second, and the successive events of an object as one. With `; deleted=identity` too, a DELETED event has no more of
  its object than names, uid and resourceVersion: the client has the rest.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing
from itertools import compress
from typing import NamedTuple

from ostinato.api.errors import APIError, BadRequest, Expired, NotAcceptable, Timeout, Unknown
from ostinato.server.request import Stream
from ostinato.server.request.context import Context
from ostinato.server.request.negotiate import form_of
from ostinato.server.request.options import ListOptions, check_list_options, list_options
from ostinato.server.request.present import in_slices
from ostinato.server.store.hub import Subscription
from ostinato.server.store.records import Compacted, Entry, Event
from ostinato.server.verbs.get import not_older_than, parse_version
from ostinato.server.verbs.selection import Selection
from ostinato.server.verbs.watch_writer import NotAList, WatchWriter

SHORTEST = 1800.0  # minimum seconds of a watch without timeout; the maximum is twice that
BOOKMARK_EVERY = 60.0
BOOKMARK_BEFORE_END = 2.0
INTERVAL_HEADER = "ostinato-watch-interval"
_LONGEST_INTERVAL = 1.0  # seconds
_MERGED_INTERVAL = 1.0  # seconds, while events are merged
_INTERVAL = re.compile(r"([0-9]{1,4}(?:\.[0-9]{0,9})?)(?:; *merge=([0-9]{1,9}))?(; *deleted=identity)?")
_CHUNK = 1024 * 1024  # bytes of initial events per chunk
_PIECE = 64 * 1024  # bytes of later events per chunk: the allocator reuses memory of this size

_STREAMS = ("application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch")


async def watch(context: Context) -> Stream:
    form = form_of(context.request, context.resource, watchable=True)
    options = list_options(context.request)
    check_list_options(options, watch=options.watch)
    selection = Selection(context, options)
    start = _start(options.resource_version)
    interval = _interval(context.request.headers.get(INTERVAL_HEADER, ""))
    if form.media == "yaml":
        raise NotAcceptable.of(_STREAMS)
    writer = WatchWriter(context.resource, form, identifies_deleted=interval.identifies_deleted)
    chunks: AsyncIterator[bytes]
    forward = None
    try:
        if not options.resource_version and context.index.is_shared:
            await context.index.catch_up()
        if options.send_initial_events and start:
            await not_older_than(context.index, context.world.clock, start)
        if context.resource.conversion is not None:  # fail early if objects cannot be converted
            await context.resource.conversion.entries(context.collection.select(selection.prefix))
        chunks = live = _Watch(context, options, selection, writer, start, interval)
        forward = None if interval.seconds else live.forward
    except Timeout as error:
        chunks = _refused(writer, error)
    except Compacted as error:
        chunks = _refused(writer, Expired.of(f"too old resource version: {start} ({error.oldest})"))
    content_type = form.content_type if form.media == "json" else f"{form.content_type};stream=watch"
    return Stream(200, chunks, content_type, forward=forward)


def _start(text: str) -> int:
    try:
        return parse_version(text) if text else 0
    except ValueError as error:
        raise Unknown.of(str(error)) from error


class _Interval(NamedTuple):
    """How events are sent together.

    - `seconds`: of the events of one piece; 0: each is sent at once.
    - `merge`: the number of waiting events above which those of an object are merged; None: they never are.
    - `identifies_deleted`: the client needs no more of a deleted object than its identity.
    """

    seconds: float = 0.0
    merge: int | None = None
    identifies_deleted: bool = False


def _interval(text: str) -> _Interval:
    if not text:
        return _Interval()
    found = _INTERVAL.fullmatch(text.strip())
    if found is None or float(found[1]) > _LONGEST_INTERVAL:
        raise BadRequest.of(
            f"Ostinato-Watch-Interval: {text!r} is not a number of seconds from 0 to 1, with or without `; merge=N` "
            "and `; deleted=identity`"
        )
    return _Interval(float(found[1]), None if found[2] is None else int(found[2]), bool(found[3]))


async def _refused(writer: WatchWriter, error: APIError) -> AsyncIterator[bytes]:
    yield writer.error(error)


class _Watch(AsyncIterator[bytes]):
    """One watch. It subscribes on construction; a caller that does not read it must close it."""

    def __init__(
        self,
        context: Context,
        options: ListOptions,
        selection: Selection,
        writer: WatchWriter,
        start: int,
        interval: _Interval,
    ) -> None:
        self._index = context.index
        self._turns = context.lane.turns
        self._clock = context.world.clock
        self._collection = context.collection
        self._options = options
        self._selection = selection
        self._writer = writer
        self._interval = interval
        self._conversion = context.resource.conversion
        self._kind_of: Callable[[Event], str] = _kind_of if selection.everything else self._selected_kind_of
        self._merge = interval.merge if selection.everything and self._conversion is None else None
        lasts = options.timeout_seconds or SHORTEST * (1.0 + context.world.rng.random())
        self._ends = self._clock.monotonic() + lasts
        self._seen = 0  # resourceVersion up to which all events have been sent or skipped
        # No await between reading and subscribing: no event is lost or sent twice.
        first = self._first(start)
        accepts = None if selection.everything or self._conversion is not None else self._accepts
        self._subscription = self._collection.hub.subscribe(selection.scope, accepts)
        self._chunks = self._run(first)

    async def __anext__(self) -> bytes:
        return await anext(self._chunks)

    async def aclose(self) -> None:
        self._subscription.close()
        await self._chunks.aclose()

    def forward(self, write: Callable[[bytes], bool]) -> None:
        """Write a lone event with a function as soon as it is durable; see `Subscription.forward`."""

        def send(event: Event) -> bool:
            if event.version <= self._seen:
                return True
            kind = self._kind_of(event)
            try:
                return not kind or write(self._writer.event(kind, event))
            except NotAList:
                return False

        if self._conversion is None:
            self._subscription.forward(send)

    async def _run(self, first: _First) -> AsyncGenerator[bytes, None]:
        try:
            if self._ends < self._clock.monotonic():
                return
            for chunk in await self._first_chunks(first):
                yield chunk
                await self._turns.pause()
            async with aclosing(self._live(self._subscription)) as live:
                async for chunk in live:
                    yield chunk
        except NotAList:
            return
        except APIError as error:  # the conversion webhook failed
            yield self._writer.error(error)
        finally:
            self._subscription.close()

    def _first(self, start: int) -> _First:
        """The initial events: existing objects, or events since the resourceVersion."""
        initial = self._options.send_initial_events
        if initial or (initial is None and not start):
            self._seen = self._index.version
            return _First(self._collection.select(self._selection.prefix), self._seen, [])
        self._seen = start or self._index.version
        if self._seen >= self._index.version:
            return _First(None, self._seen, [])
        missed = self._index.since(self._collection, self._seen)
        if self._selection.prefix:
            missed = [event for event in missed if event.key.startswith(self._selection.prefix)]
        self._seen = self._index.version
        return _First(None, self._seen, missed)

    async def _first_chunks(self, first: _First) -> Iterator[bytes]:
        if first.present is None:
            return iter([b"".join(lines)] if (lines := self._lines(await self._shown(first.missed))) else ())
        present = first.present if self._conversion is None else await self._conversion.entries(first.present)
        selects = self._selection.selects
        selected = await in_slices(self._turns, selects, present, 128)
        return self._present(list(compress(present, selected)), first.version)

    async def _shown(self, events: list[Event]) -> list[Event]:
        """Convert events of objects that are stored in another version."""
        return events if self._conversion is None else await self._conversion.events(events)

    def _present(self, entries: list[Entry], version: int) -> Iterator[bytes]:
        lines: list[bytes] = []
        size = 0
        for entry in entries:
            lines.append(self._writer.added(entry.data))
            size += len(lines[-1])
            if size > _CHUNK:
                yield b"".join(lines)
                lines, size = [], 0
        if self._options.bookmarks and self._options.send_initial_events:
            lines.append(self._writer.bookmark(version, initial=True))
        if lines:
            yield b"".join(lines)

    async def _live(self, subscription: Subscription) -> AsyncGenerator[bytes, None]:
        """The live events, until the watch ends."""
        clock, begun = self._clock, self._seen
        now = clock.monotonic()
        due = self._next_bookmark(now)
        timer = clock.timer(due - now, subscription.interrupt)
        try:
            while True:
                interrupted = await subscription.wait()
                if self._interval.seconds and not subscription.closed:
                    await self._collect(subscription)
                events = [event for event in subscription.take() if event.version > begun]
                lines = self._lines(events if self._conversion is None else await self._conversion.events(events))
                ended = subscription.closed or (interrupted and due >= self._ends)
                if interrupted and not ended:
                    if self._index.version >= begun:
                        lines.append(self._writer.bookmark(self._index.version))
                    now = max(clock.monotonic(), due)  # timers may fire early
                    due = self._next_bookmark(now)
                    timer = clock.timer(due - now, subscription.interrupt)
                for piece in _pieces(lines):
                    yield piece
                if ended:
                    return
        finally:
            timer.cancel()

    async def _collect(self, subscription: Subscription) -> None:
        """Let the events of the interval come in; of a longer one, if they are so many that they are merged."""
        seconds, merge = self._interval.seconds, self._merge
        await self._clock.sleep(seconds)
        if merge is not None and subscription.waiting > merge and seconds < _MERGED_INTERVAL:
            await self._clock.sleep(_MERGED_INTERVAL - seconds)

    def _next_bookmark(self, now: float) -> float:
        """The time of the next bookmark, or of the end."""
        if not self._options.bookmarks:
            return self._ends
        last = self._ends - BOOKMARK_BEFORE_END
        return min(now + BOOKMARK_EVERY, last) if now < last else self._ends

    def _lines(self, events: list[Event]) -> list[bytes | memoryview]:
        """The lines of events, perhaps in several parts."""
        write, kind_of = self._writer.event, self._kind_of
        if not self._interval.seconds:
            return [write(kind, event) for event in events if (kind := kind_of(event))]
        parts = self._writer.parts
        if self._merge is not None and len(events) > self._merge:
            merged = _merged(events)
            return [part for before, event in merged for part in parts(_kind_between(before, event.entry), event)]
        return [part for event in events if (kind := kind_of(event)) for part in parts(kind, event)]

    def _selected_kind_of(self, event: Event) -> str:
        selects = self._selection.selects
        is_in = event.entry is not None and selects(event.entry)
        was_in = event.previous is not None and selects(event.previous)
        if is_in:
            return "MODIFIED" if was_in else "ADDED"
        return "DELETED" if was_in else ""

    def _accepts(self, event: Event) -> bool:
        selects = self._selection.selects
        return (event.entry is not None and selects(event.entry)) or (
            event.previous is not None and selects(event.previous)
        )


def _pieces(lines: list[bytes | memoryview]) -> Iterator[bytes]:
    """Join lines, or parts of them, to pieces that are not much longer than `_PIECE`."""
    first, size = 0, 0
    for number, line in enumerate(lines, 1):
        size += len(line)
        if size >= _PIECE or number == len(lines):
            yield b"".join(lines[first:number])
            first, size = number, 0


class _First(NamedTuple):
    """The start of a watch."""

    present: list[Entry] | None  # existing objects, if they are sent
    version: int  # resourceVersion of that state
    missed: list[Event]


def _kind_of(event: Event) -> str:
    """The event type for a watch without selectors."""
    return _kind_between(event.previous, event.entry)


def _kind_between(before: Entry | None, after: Entry | None) -> str:
    if after is None:
        return "DELETED"
    return "ADDED" if before is None else "MODIFIED"


def _merged(events: list[Event]) -> list[tuple[Entry | None, Event]]:
    """Of each object the last event, with the entry before the first; in the order of the last events."""
    found: dict[str, tuple[Entry | None, Event]] = {}
    for event in events:
        entry = event.entry or event.previous
        assert entry is not None
        before, _ = found.pop(entry.uid, (event.previous, event))
        found[entry.uid] = before, event
    return [*found.values()]
