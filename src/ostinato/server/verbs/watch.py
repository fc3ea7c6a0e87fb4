"""watch: every change of a selection, as it happens, from a version on.

Events come in the order of the store, each once. An object that comes to match is ADDED, one that ceases to is DELETED.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec

from ostinato.api.errors import APIError, Expired, Unknown
from ostinato.api.quoting import quote
from ostinato.server.negotiate import Form, form_of
from ostinato.server.options import ListOptions, check_list_options, list_options
from ostinato.server.present import event_line, new_table, partial, row
from ostinato.server.request import Stream
from ostinato.server.resources.resource import Resource
from ostinato.server.store.hub import Subscription
from ostinato.server.store.index import Compacted, Entry, Event
from ostinato.server.verbs.context import Context
from ostinato.server.verbs.get import not_older_than
from ostinato.server.verbs.selection import Selection

SHORTEST = 1800.0  # seconds for which a watch lasts that names no timeout: up to twice as long
BOOKMARK_EVERY = 60.0


async def watch(context: Context) -> Stream:
    resource, request = context.resource, context.request
    form = form_of(request, resource, watchable=True)
    options = list_options(request)
    check_list_options(options, watch=True)
    selection = Selection(context, options)
    start = _start(options.resource_version)
    if options.send_initial_events and start:
        await not_older_than(context.index, context.world.clock, start)
    writer = _Writer(resource, form)
    chunks = _Watch(context, options, selection, writer).run(start)
    content_type = form.content_type if form.media == "json" else f"{form.content_type};stream=watch"
    return Stream(200, chunks, content_type)


def _start(text: str) -> int:
    if not text:
        return 0
    if not (text.isascii() and text.isdigit()):
        raise Unknown.of(
            f"resourceVersion: Invalid value: {quote(text)}: strconv.ParseUint: parsing {quote(text)}: invalid syntax"
        )
    return int(text)


class _Writer:
    """Encodes events in the form that one watcher asked for. What others asked for, too, is encoded once."""

    def __init__(self, resource: Resource, form: Form) -> None:
        self._resource = resource
        self._form = form
        self._columns_sent = False
        self._shared = form.convert != "Table"
        self._key = (resource.gvk, form)

    def event(self, kind: str, data: bytes) -> bytes:
        return event_line(kind, self._body(data))

    def shared(self, event: Event, kind: str, data: Callable[[], bytes]) -> bytes:
        if not self._shared:
            return self.event(kind, data())
        key = (self._key, kind)
        found = event.encoded.get(key)
        if found is None:
            found = event.encoded[key] = self.event(kind, data())
        return found

    def _body(self, data: bytes) -> bytes:
        convert = self._form.convert
        if not convert:
            return self._resource.wrap(data)
        if convert == "Table":
            table = new_table(self._resource, self._form, columns=not self._columns_sent)
            self._columns_sent = True
            table["metadata"] = {"resourceVersion": msgspec.json.decode(data)["metadata"]["resourceVersion"]}
            table["rows"] = [row(self._resource, data, self._form)]
            return msgspec.json.encode(table)
        return msgspec.json.encode(partial(data, self._form.version))

    def bookmark(self, version: int, *, initial: bool = False) -> bytes:
        metadata: dict[str, Any] = {"resourceVersion": str(version)}
        if initial:
            metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
        convert = self._form.convert
        if convert == "Table":
            table = new_table(self._resource, self._form, columns=not self._columns_sent)
            self._columns_sent = True
            table["metadata"] = {"resourceVersion": str(version)}
            shown = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
            table["rows"] = [{"cells": [""] * len(self._resource.columns), "object": shown}]
            body = table
        elif convert:
            body = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
        else:
            body = self._resource.object(msgspec.json.encode({"metadata": metadata}))
        return event_line("BOOKMARK", msgspec.json.encode(body))

    def error(self, error: APIError) -> bytes:
        return event_line("ERROR", msgspec.json.encode(error.to_dict()))


class _Watch:
    def __init__(self, context: Context, options: ListOptions, selection: Selection, writer: _Writer) -> None:
        self._context = context
        self._options = options
        self._selection = selection
        self._writer = writer

    async def run(self, start: int) -> AsyncIterator[bytes]:
        context, options = self._context, self._options
        index, clock = context.index, context.world.clock
        collection = context.resource.collection
        assert collection is not None
        subscription = collection.hub.subscribe()  # before anything is read: nothing falls between
        try:
            if options.timeout_seconds:
                lasts = float(options.timeout_seconds)
            else:
                lasts = SHORTEST * (1.0 + context.world.rng.random())
            ends = clock.monotonic() + lasts
            seen = start
            if (not start and options.send_initial_events is not False) or options.send_initial_events:
                seen = index.version
                initial = [e for e in collection.select(self._selection.prefix) if self._selection.selects(e)]
                chunk = b"".join([self._writer.event("ADDED", entry.data) for entry in initial])
                if options.send_initial_events and options.bookmarks:
                    chunk += self._writer.bookmark(seen, initial=True)
                if chunk:
                    yield chunk
            elif start:
                try:
                    missed = index.since(collection, start)
                except Compacted:
                    yield self._writer.error(Expired.of(f"too old resource version: {start} ({index.compacted + 1})"))
                    return
                chunk = b"".join(self._lines(missed, seen))
                seen = max(seen, index.version)
                if chunk:
                    yield chunk
            else:
                seen = index.version
            async for chunk in self._live(subscription, seen, ends):
                yield chunk
        finally:
            subscription.close()

    async def _live(self, subscription: Subscription, seen: int, ends: float) -> AsyncIterator[bytes]:
        index, clock = self._context.index, self._context.world.clock
        next_bookmark = clock.monotonic() + BOOKMARK_EVERY if self._options.bookmarks else ends
        while True:
            try:
                async with clock.deadline(min(ends, next_bookmark)):
                    await subscription.wait()
            except TimeoutError:
                pass
            events = subscription.take()
            if events:
                chunk = b"".join(self._lines(events, seen))
                seen = max(seen, events[-1].version)
                if chunk:
                    yield chunk
            if subscription.closed:
                return
            now = clock.monotonic()
            if now >= ends:
                if self._options.bookmarks:
                    yield self._writer.bookmark(max(seen, index.version))
                return
            if now >= next_bookmark:
                next_bookmark = now + BOOKMARK_EVERY
                seen = max(seen, index.version)
                yield self._writer.bookmark(seen)

    def _lines(self, events: list[Event], after: int) -> list[bytes]:
        lines = []
        matches = self._selection.matches
        for event in events:
            if event.version <= after:
                continue
            new, old = event.entry, event.previous
            is_in = new is not None and matches(new)
            was_in = old is not None and matches(old)
            if is_in:
                assert new is not None
                data = new.data
                lines.append(self._writer.shared(event, "MODIFIED" if was_in else "ADDED", lambda data=data: data))  # type: ignore[misc]
            elif was_in:
                assert old is not None
                lines.append(self._writer.shared(event, "DELETED", lambda e=event, o=old: _last_state(e, o)))  # type: ignore[misc]
        return lines


def _last_state(event: Event, old: Entry) -> bytes:
    """The object as it was before an event that takes it out of a watch, with the version of the event."""
    found = event.encoded.get("last")
    if found is None:
        obj = msgspec.json.decode(old.data)
        obj["metadata"]["resourceVersion"] = str(event.version)
        found = event.encoded["last"] = msgspec.json.encode(obj)
    return found
