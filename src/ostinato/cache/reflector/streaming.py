"""Streaming lists: what is there, as the first events of a watch that then goes on.

It takes one request, the server reads nothing from its disk, and neither side holds the whole answer in memory. The end
of what is there is marked by a bookmark that says so. A bookmark that does not say so, before the end, is from a server
too old to know streaming lists: it has begun an ordinary watch, and the end would never come.
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

_SLOW: Final = 10.0  # seconds between two remarks that the end has not come yet
_logger = logging.getLogger("ostinato.cache")


class NotStreamed(Exception):  # noqa: N818 - what happened
    """The server does not know streaming lists."""


class StreamEnded(TransportError):  # noqa: N818
    """The stream ended before all that is there had come."""


class _BookmarkMetadata(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    annotations: dict[str, str] | None = None


class _BookmarkObject(msgspec.Struct):
    metadata: _BookmarkMetadata


_decoder = msgspec.json.Decoder(_BookmarkObject)


def read_bookmark(event: RawEvent) -> tuple[str, bool]:
    """Its version, and whether it ends the initial events; an `ObjectError` if it is none."""
    try:
        metadata = _decoder.decode(event.object).metadata
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ObjectError(f"bookmark: {error}") from None
    return metadata.resource_version, (metadata.annotations or {}).get(INITIAL_EVENTS_END) == "true"


async def read_initial(
    events: EventStream, replacement: Replacement, decoder: EntryDecoder, source: ListWatch, clock: Clock
) -> str:
    """Fill in what is there, and return the version of that state. The stream stays open for what follows."""
    remarks = _Remarks(replacement, source, clock)
    try:
        async for event in events:
            kind = event.type
            if kind == ERROR:
                raise error_of(event)
            if kind == BOOKMARK:
                version, end = read_bookmark(event)
                if end:
                    return version
                raise NotStreamed("a bookmark came that does not end what is there")
            _take(event, replacement, decoder, source)
    finally:
        remarks.end()
    raise StreamEnded(f"{source}: the stream ended before all that is there had come")


def _take(event: RawEvent, replacement: Replacement, decoder: EntryDecoder, source: ListWatch) -> None:
    try:
        entry = decoder.decode(event.object)
    except ObjectError as error:
        _logger.error("%s: an object is left out: %s", source, error)
        return
    if event.type == DELETED:
        replacement.remove(entry.key)
    elif event.type in (ADDED, MODIFIED):
        replacement.put(entry)
    else:
        _logger.error("unknown event type, skipped collection=%s type=%r", source, event.type)


class _Remarks:
    """Says now and then that the end has not come yet."""

    def __init__(self, replacement: Replacement, source: ListWatch, clock: Clock) -> None:
        self._replacement = replacement
        self._source = source
        self._clock = clock
        self._timer = clock.timer(_SLOW, self._say)

    def _say(self) -> None:
        _logger.warning("%s: %d objects so far, and more to come", self._source, len(self._replacement))
        self._timer = self._clock.timer(_SLOW, self._say)

    def end(self) -> None:
        self._timer.cancel()
