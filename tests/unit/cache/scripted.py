"""A collection on a server that does as it is told: keeps history, drops events, ends watches, expires, pauses."""

from __future__ import annotations

import asyncio
from collections import deque
from types import TracebackType
from typing import Any, Self

import msgspec

from ostinato.api.codec import RawList, raw_list_from_json
from ostinato.api.errors import BadRequest, Expired, Timeout
from ostinato.api.gvk import GroupVersionKind, NamespacedName
from ostinato.api.object import KindInfo, kind_of
from ostinato.client.list_watch import (
    ADDED,
    BOOKMARK,
    DELETED,
    INITIAL_EVENTS_END,
    MODIFIED,
    ListOptions,
    RawEvent,
    WatchOptions,
    WatchStalled,
)
from ostinato.client.transport.protocol import ConnectionLost
from ostinato.kinds.core_v1 import Pod
from ostinato.world import World

Json = dict[str, Any]
ANY = ListOptions()
ALL = WatchOptions()


class Stream:
    """One watch."""

    def __init__(self, server: ScriptedServer, quiet: float | None) -> None:
        self._server = server
        self._quiet = quiet
        self._waiting: deque[RawEvent | Exception | None] = deque()  # None is the end
        self._waiter: asyncio.Future[None] | None = None
        self.closed = False

    def send(self, what: RawEvent | Exception | None) -> None:
        self._waiting.append(what)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> RawEvent:
        while not self._waiting:
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                async with self._server.world.clock.timeout(self._quiet):
                    await self._waiter
            except TimeoutError:
                raise WatchStalled("nothing came") from None
        what = self._waiting.popleft()
        if what is None:
            raise StopAsyncIteration
        if isinstance(what, Exception):
            raise what
        return what

    def close(self) -> None:
        self.closed = True
        if self in self._server.streams:
            self._server.streams.remove(self)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class ScriptedServer:
    """A `Source`. `asked` has every request, in order; errors in `list_errors` and `watch_errors` answer the next."""

    def __init__(self, world: World, *, kind: type[Any] = Pod, namespace: str = "", version: int = 100) -> None:
        self.world = world
        self.kind = kind_of(kind)
        self.namespace = namespace
        self.version = version
        self.oldest = 0  # events up to here are forgotten
        self.objects: dict[NamespacedName, Json] = {}
        self.history: list[tuple[int, RawEvent]] = []
        self.asked: list[ListOptions | WatchOptions] = []
        self.streams: list[Stream] = []
        self.list_errors: deque[Exception] = deque()
        self.watch_errors: deque[Exception] = deque()
        self.info_errors: deque[Exception] = deque()
        self.streaming: bool | str = True  # False: refused; "ignored": an old server, which does not know the option
        self.pages_always = False  # a server that reads every list from its disk
        self.dropping = False
        self.tokens_expire = False
        self._going = asyncio.Event()
        self._going.set()

    # The protocol

    @property
    def gvk(self) -> GroupVersionKind:
        return self.kind.gvk

    def __str__(self) -> str:
        return self.kind.plural + (f" in namespace {self.namespace}" if self.namespace else "")

    async def info(self) -> KindInfo:
        if self.info_errors:
            raise self.info_errors.popleft()
        return self.kind

    async def list(self, options: ListOptions = ANY) -> RawList:
        self.asked.append(options)
        await self._going.wait()
        await self.world.clock.sleep(0)
        if self.list_errors:
            raise self.list_errors.popleft()
        version = options.resource_version
        if version not in ("", "0") and int(version) > self.version:
            raise Timeout.resource_version_too_large(int(version), self.version)
        start, at = 0, self.version
        if options.continue_token:
            if self.tokens_expire:
                raise Expired.of("The provided continue parameter is too old")
            start, at = map(int, options.continue_token.split(":"))
        limit = options.limit if self.pages_always or version != "0" else 0
        items = [value for key, value in sorted(self.objects.items())]
        end = start + limit if limit else len(items)
        metadata: Json = {"resourceVersion": str(at)}
        if end < len(items):
            metadata["continue"] = f"{end}:{at}"
        return raw_list_from_json(_encode({"kind": "List", "metadata": metadata, "items": items[start:end]}))

    async def watch(self, options: WatchOptions = ALL) -> Stream:
        self.asked.append(options)
        await self._going.wait()
        await self.world.clock.sleep(0)
        if self.watch_errors:
            raise self.watch_errors.popleft()
        version = options.resource_version
        if options.send_initial_events and not self.streaming:
            raise BadRequest.of("sendInitialEvents is forbidden for watch")
        if version not in ("", "0") and not options.send_initial_events and int(version) < self.oldest:
            raise Expired.of(f"too old resource version: {version} ({self.oldest})")
        if options.send_initial_events and version not in ("", "0") and int(version) > self.version:
            raise Timeout.resource_version_too_large(int(version), self.version)
        stream = Stream(self, options.stall_timeout)
        if version in ("", "0") or options.send_initial_events:
            for _, value in sorted(self.objects.items(), reverse=True):
                stream.send(RawEvent(ADDED, _encode(value)))
        else:
            for at, event in self.history:
                if at > int(version):
                    stream.send(event)
        if options.send_initial_events and self.streaming is True:
            stream.send(self.bookmark_event(end=True))
        self.streams.append(stream)
        return stream

    # What happens on the server

    def put(self, name: str, namespace: str = "default", **fields: Any) -> Json:
        """Make an object, or change it."""
        self.version += 1
        key = NamespacedName(self.namespace or namespace, name)
        known = self.objects.get(key)
        metadata = {
            "name": name,
            "namespace": key.namespace,
            "uid": known["metadata"]["uid"] if known else f"uid-{self.version}",
            "resourceVersion": str(self.version),
            **fields.pop("metadata", {}),
        }
        self.objects[key] = {"apiVersion": self.gvk.api_version, "kind": self.gvk.kind, "metadata": metadata, **fields}
        self._happened(MODIFIED if known else ADDED, self.objects[key])
        return self.objects[key]

    def delete(self, name: str, namespace: str = "default") -> None:
        self.version += 1
        value = self.objects.pop(NamespacedName(self.namespace or namespace, name))
        value = {**value, "metadata": {**value["metadata"], "resourceVersion": str(self.version)}}
        self._happened(DELETED, value)

    def bookmark(self, *, end: bool = False, version: int | None = None) -> None:
        for stream in self.streams:
            stream.send(self.bookmark_event(end=end, version=version))

    def bookmark_event(self, *, end: bool = False, version: int | None = None) -> RawEvent:
        metadata: Json = {"resourceVersion": str(self.version if version is None else version)}
        if end:
            metadata["annotations"] = {INITIAL_EVENTS_END: "true"}
        return RawEvent(BOOKMARK, _encode({"kind": self.gvk.kind, "metadata": metadata}))

    def _happened(self, kind: str, value: Json) -> None:
        if self.dropping:
            return
        event = RawEvent(kind, _encode(value))
        self.history.append((self.version, event))
        for stream in self.streams:
            stream.send(event)

    # What goes wrong

    def send(self, what: RawEvent | Exception) -> None:
        """Say this in every watch."""
        for stream in self.streams:
            stream.send(what)

    def end_watches(self) -> None:
        """As a server does after the time that was asked for."""
        for stream in list(self.streams):
            stream.send(None)
            self.streams.remove(stream)

    def cut(self) -> None:
        """As when a cable is pulled."""
        for stream in list(self.streams):
            stream.send(ConnectionLost("the connection broke"))
            self.streams.remove(stream)

    def expire(self) -> None:
        """Forget what has happened so far."""
        self.oldest = self.version
        self.history.clear()

    def pause(self) -> None:
        """Say nothing more, and answer nothing, as a server whose process was stopped."""
        self._going.clear()
        self.streams.clear()

    def resume(self) -> None:
        self._going.set()

    # What was asked for

    @property
    def lists(self) -> list[ListOptions]:
        return [each for each in self.asked if isinstance(each, ListOptions)]

    @property
    def watches(self) -> list[WatchOptions]:
        return [each for each in self.asked if isinstance(each, WatchOptions)]


def _encode(value: Any) -> bytes:
    return msgspec.json.encode(value)
