"""Streaming lists (sendInitialEvents): the initial state as the first events of a watch.

- One request; the server answers from its watch cache, and neither side holds the whole list in memory.
- A bookmark with the annotation `k8s.io/initial-events-end` ends the initial state.
- Any other bookmark before it is from a server that ignored sendInitialEvents and began an ordinary watch:
  `NotStreamed`, as the initial state would never end.
"""

from __future__ import annotations

import logging
from typing import Final

import msgspec

from ostinato.api.codec import ObjectError
from ostinato.cache.store.entry_decoder import EntryDecoder
from ostinato.cache.store.store import Replacement
from ostinato.client.list_watch import (
    ADDED,
    BOOKMARK,
    DELETED,
    ERROR,
    INITIAL_EVENTS_END,
    MODIFIED,
    EventStream,
    ListWatch,
    RawEvent,
    error_of,
)
from ostinato.client.transport.protocol import TransportError
from ostinato.world import Clock

_REPORT_EVERY: Final = 10.0  # seconds
_logger = logging.getLogger("ostinato.cache")


class NotStreamed(Exception):  # noqa: N818 - named after the condition
    """The server does not support streaming lists."""


class StreamEnded(TransportError):  # noqa: N818
    """The watch ended before the end of the initial state."""


class _BookmarkMetadata(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    annotations: dict[str, str] | None = None


class _BookmarkObject(msgspec.Struct):
    metadata: _BookmarkMetadata


_decoder = msgspec.json.Decoder(_BookmarkObject)


def read_bookmark(event: RawEvent) -> tuple[str, bool]:
    """Return its resourceVersion, and whether it ends the initial events; raise `ObjectError` if it is malformed."""
    try:
        metadata = _decoder.decode(event.object).metadata
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ObjectError(f"bookmark: {error}") from None
    return metadata.resource_version, (metadata.annotations or {}).get(INITIAL_EVENTS_END) == "true"


async def read_initial(
    events: EventStream, replacement: Replacement, decoder: EntryDecoder, source: ListWatch, clock: Clock
) -> str:
    """Fill the replacement with the initial state and return its resourceVersion. The watch stays open."""
    progress = _Progress(replacement, source, clock)
    try:
        async for event in events:
            kind = event.type
            if kind == ERROR:
                raise error_of(event)
            if kind == BOOKMARK:
                version, end = read_bookmark(event)
                if end:
                    return version
                raise NotStreamed("bookmark without initial-events-end during the initial state")
            _put(event, replacement, decoder, source)
    finally:
        progress.end()
    raise StreamEnded(f"{source}: the watch ended before the end of the initial state")


def _put(event: RawEvent, replacement: Replacement, decoder: EntryDecoder, source: ListWatch) -> None:
    try:
        entry = decoder.decode(event.object)
    except ObjectError as error:
        _logger.error("cannot decode object, skipped collection=%s error=%s", source, error)
        return
    if event.type == DELETED:
        replacement.remove(entry.key)
    elif event.type in (ADDED, MODIFIED):
        replacement.put(entry)
    else:
        _logger.error("unknown event type, skipped collection=%s type=%r", source, event.type)


class _Progress:
    """Logs a warning every ten seconds until the initial state is complete."""

    def __init__(self, replacement: Replacement, source: ListWatch, clock: Clock) -> None:
        self._replacement = replacement
        self._source = source
        self._clock = clock
        self._timer = clock.timer(_REPORT_EVERY, self._report)

    def _report(self) -> None:
        objects = len(self._replacement)
        _logger.warning("initial state incomplete, still streaming collection=%s objects=%d", self._source, objects)
        self._timer = self._clock.timer(_REPORT_EVERY, self._report)

    def end(self) -> None:
        self._timer.cancel()
