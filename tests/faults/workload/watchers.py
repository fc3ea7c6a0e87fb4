"""Watchers of all sorts. Each resumes where it was, or starts anew after 410, and records all that it gets."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from tests.faults.history.records import Frame, Stream
from tests.faults.workload.api import ENDS_INITIAL, Api, Lost, decode_event, path_of, query
from tests.faults.workload.clients import Shared


@dataclass
class Sort:
    """How a watcher asks, and how it reads."""

    name: str
    prefix: str = ""
    first_key: bool = False  # watches the first key alone, instead of a prefix
    group: int | None = None
    start: str = "0"  # "", "0", "newest", "future", "old"
    initial: bool | None = None
    bookmarks: bool = True
    seconds: int = 3  # timeoutSeconds
    pause: float = 0.0  # seconds between reads
    ends: bool = False  # does not resume
    cuts: bool = False  # leaves within an event, at any byte


SORTS = (
    Sort("all"),
    Sort("selected", group=1),
    Sort("namespaced", prefix="other/", group=2, start=""),
    Sort("one", first_key=True, start="newest", seconds=2),
    Sort("listing", initial=True, seconds=2),
    Sort("future", start="future", seconds=2),
    Sort("old", start="old", bookmarks=False, seconds=1),
    Sort("slow", pause=0.4, seconds=5),
    Sort("cut", cuts=True, seconds=2),
)


class WatcherTask:
    def __init__(
        self,
        sort: Sort,
        api: Api,
        shared: Shared,
        sleep: Callable[[float], Awaitable[None]],
        random: Callable[[], float],
    ) -> None:
        self.sort = sort
        self._api = api
        self._shared = shared
        self._sleep = sleep
        self._random = random
        self._prefix = shared.keys[0] if sort.first_key else sort.prefix
        self.position = ""  # resourceVersion to resume from
        self._buffer = b""

    async def run(self) -> None:
        while True:
            await self._api.available()
            with suppress(Lost):
                await self._watch()
            await self._sleep(0.02)

    def _start(self) -> str:
        if self.position and not self.sort.ends:
            return self.position
        newest = self._shared.newest
        return {
            "newest": str(newest),
            "future": str(newest + int(self._random() * 60)),
            "old": str(max(1, newest - int(self._random() * 80))),
        }.get(self.sort.start, self.sort.start)

    async def _watch(self) -> None:
        sort, history = self.sort, self._shared.history
        start = self._start()
        stream = Stream(history.number(), sort.name, self._prefix, start, history.tick(), sort.group)
        stream.bookmarks = sort.bookmarks
        if sort.initial and not self.position:
            stream.initial, stream.asked = True, ""
        name = self._prefix.partition("/")[2]
        scope = self._prefix.partition("/")[0] + "/" if self._prefix else ""
        text = query(
            watch="true",
            resourceVersion=stream.asked,
            labelSelector=None if sort.group is None else f"group={sort.group}",
            fieldSelector=f"metadata.name={name}" if name else None,
            allowWatchBookmarks="true" if sort.bookmarks else None,
            sendInitialEvents="true" if stream.initial else None,
            resourceVersionMatch="NotOlderThan" if stream.initial else None,
            timeoutSeconds=sort.seconds,
        )
        stream.server = self._api.state()
        history.streams.append(stream)
        self._buffer = b""
        chunks = self._api.stream(path_of(scope), text, lambda status: self._answered(stream, status))
        try:
            async for chunk in chunks:
                if sort.cuts and self._random() < 0.1:
                    self._take(stream, chunk[: int(self._random() * len(chunk))])
                    return
                self._take(stream, chunk)
                if stream.refused:
                    return
                if sort.pause:
                    await self._sleep(sort.pause)
        finally:
            await chunks.aclose()  # type: ignore[attr-defined]

    def _answered(self, stream: Stream, status: int) -> None:
        stream.answered = self._api.state()
        if status >= 300:
            stream.refused = str(status)

    def _take(self, stream: Stream, chunk: bytes) -> None:
        lines = (self._buffer + chunk).split(b"\n")
        self._buffer = lines.pop()
        for line in lines:
            if not line:
                continue
            event = decode_event(line)
            found = event.object
            if event.type == "ERROR":
                stream.refused = found.reason
                if found.reason == "Expired":
                    self.position = ""
                continue
            version = found.version
            frame = Frame(event.type, version, tick=self._shared.history.tick())
            if event.type == "BOOKMARK":
                frame.ends_initial = found.metadata.annotations.get(ENDS_INITIAL) == "true"
            elif self._shared.owns(found):
                frame.key, frame.value, frame.uid = found.key, found.value, found.metadata.uid
            else:
                continue  # not ours
            stream.frames.append(frame)
            if event.type == "BOOKMARK" or not stream.starts_with_state or self._is_live(stream, frame):
                self.position = str(version)

    @staticmethod
    def _is_live(stream: Stream, frame: Frame) -> bool:
        """Whether all before an event has surely been delivered: initial events are in the order of their keys."""
        return frame.type != "ADDED"


async def caught_up(watchers: list[WatcherTask], version: int, sleep: Callable[[float], Awaitable[None]]) -> None:
    """Wait until watchers have seen a resourceVersion."""
    while any(int(watcher.position or "0") < version for watcher in watchers):
        await sleep(0.1)


async def ended(tasks: list[asyncio.Task[None]]) -> None:
    """Cancel tasks, and raise what went wrong in them."""
    for task in tasks:
        task.cancel()
    for result in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(result, BaseException) and not isinstance(result, asyncio.CancelledError):
            raise result
