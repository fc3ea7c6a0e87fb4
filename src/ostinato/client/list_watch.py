"""List and watch, as bytes: the door through which caches see one collection of objects.

A `ListWatch` is bound to a kind, and to a namespace and selectors if there are any. What it gives is not decoded: an
object is the bytes that the server sent.

- `list` is one request and one page; `continue_token` of the next one comes from `metadata.continue_`.
- `watch` is one request, which ends when the server ends it. It does not resume: whoever calls it knows up to where it
  has got, by the resource versions of the events. An event that was cut short is not given.
- A server that refuses raises an `APIError`, no answer a `TransportError`, a body that is no list an `ObjectError`.
- Inside a watch, a refusal comes as an event of type `ERROR`; `error_of` reads it. Both forms of "too old" (410 to the
  request, ERROR event) are thus `Expired` or `Gone`.
- A watch on which nothing came for `stall_timeout` seconds, no bookmark either, raises `WatchStalled`: the other side is dead
  without having said so.
"""

from __future__ import annotations

from types import TracebackType
from typing import Final, Protocol, Self

import msgspec

from ostinato.api.codec import RawList
from ostinato.api.errors import APIError, from_response
from ostinato.api.gvk import GroupVersionKind
from ostinato.api.object import KindInfo
from ostinato.client.transport.protocol import TransportError

__all__ = [
    "ADDED",
    "BOOKMARK",
    "DELETED",
    "ERROR",
    "INITIAL_EVENTS_END",
    "MODIFIED",
    "STALL_TIMEOUT",
    "EventStream",
    "ListOptions",
    "ListWatch",
    "RawEvent",
    "WatchOptions",
    "WatchStalled",
    "error_of",
]

ADDED: Final = "ADDED"
MODIFIED: Final = "MODIFIED"
DELETED: Final = "DELETED"
BOOKMARK: Final = "BOOKMARK"
ERROR: Final = "ERROR"

INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"
"""The annotation, "true", of the bookmark after which a streaming list is complete."""

STALL_TIMEOUT: Final = 70.0
"""Seconds without a byte after which a watch counts as dead.

A server sends a bookmark every minute, a few seconds late at worst; and it keeps the events of the last 75 seconds at
hand, so that who comes back after 70 has missed nothing and need not list again.
"""


class ListOptions(msgspec.Struct, frozen=True, kw_only=True):
    """
    - `limit`: at most so many items a page; 0 is all.
    - `resource_version`: "" the most recent state; "0" any; a number one that is not older, or as `match` says.
    - `resource_version_match`: "", "NotOlderThan" or "Exact".
    - `timeout`: seconds for the whole request; None is the transport's own.
    """

    limit: int = 0
    continue_token: str = ""
    resource_version: str = ""
    resource_version_match: str = ""
    timeout: float | None = None


class WatchOptions(msgspec.Struct, frozen=True, kw_only=True):
    """
    - `resource_version`: events after this one; "" and "0" begin with an ADDED for each object that is there.
    - `bookmarks`: ask for bookmarks. Without them `stall_timeout` should be None, for nothing need come for hours.
    - `send_initial_events`: begin with what is there, and mark its end (`INITIAL_EVENTS_END`): a streaming list. It
      needs `resource_version_match="NotOlderThan"`.
    - `timeout_seconds`: after which the server ends the watch; None is the server's choice.
    - `stall_timeout`: seconds of silence after which `WatchStalled` is raised; None waits for ever.
    """

    resource_version: str = ""
    resource_version_match: str = ""
    bookmarks: bool = True
    send_initial_events: bool | None = None
    timeout_seconds: int | None = None
    stall_timeout: float | None = STALL_TIMEOUT


class RawEvent(msgspec.Struct, frozen=True, gc=False):
    """What happened, and the object as it is then; of a deleted one, as it was, with the version of the deletion."""

    type: str  # ADDED, MODIFIED, DELETED, BOOKMARK, ERROR, or one that is yet to be invented
    object: bytes


class EventStream(Protocol):
    """The events of one watch. Close it, or `async with await list_watch.watch(…) as events:`."""

    def __aiter__(self) -> Self: ...

    async def __anext__(self) -> RawEvent:
        """The next event; ends when the server ends the watch, `ConnectionLost` if it broke."""

    def close(self) -> None:
        """Hear no more. Harmless when it is closed."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...


class ListWatch(Protocol):
    """Objects of one kind, in one namespace or all, that match a selector."""

    @property
    def gvk(self) -> GroupVersionKind:
        """The kind of the objects, also where only their metadata is asked for."""

    @property
    def namespace(self) -> str:
        """ "" is all namespaces, or a kind that has none."""

    def __str__(self) -> str:
        """What is listed, for messages: `pods in namespace default`."""

    async def info(self) -> KindInfo:
        """What the server calls the kind; it is asked if nothing here knows, and may refuse: `NoSuchKind`."""

    async def list(self, options: ListOptions = ...) -> RawList:
        """One page. Its items lack `apiVersion` and `kind` if the kind is built in, and have them if it is not."""

    async def watch(self, options: WatchOptions = ...) -> EventStream:
        """Open a watch. A refusal is raised here, and not when the first event is read."""


class WatchStalled(TransportError):  # noqa: N818 - what happened, in the past tense
    """Nothing came for so long that the other side must be dead. Watch again from where this one got."""


def error_of(event: RawEvent) -> APIError:
    """The error that an ERROR event tells of."""
    return from_response(500, event.object)
