"""List and watch of one collection, as client-go's `ListerWatcher`: the source of a reflector.

A `ListWatch` is bound to a kind, a namespace and selectors. Objects are not decoded: they are the server's bytes.

- `list` is one request for one page; `continue_token` of the next is `metadata.continue_`.
- `watch` is one request, which the server ends after some minutes. It does not resume; the caller continues from the
  resourceVersion of the last event. A truncated event is dropped.
- Errors: `APIError` for an error response, `TransportError` without a response, `ObjectError` for a body that is not
  a list. An error during a watch is an `ERROR` event, which `error_of` decodes. An expired resourceVersion is `Expired`
  or `Gone` in both cases.
- `WatchStalled` if nothing was received for `stall_timeout` seconds, not even a bookmark: the connection is dead.
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
"""Annotation, with value "true", of the bookmark that ends the initial events of a streaming list."""

STALL_TIMEOUT: Final = 70.0
"""Seconds without any data after which a watch is considered dead.

Servers send a bookmark every minute, a few seconds late at worst, and keep the events of at least the last 75 seconds:
a watch resumed after 70 seconds needs no relist.
"""


class ListOptions(msgspec.Struct, frozen=True, kw_only=True):
    """
    - `limit`: maximum number of items of a page. Defaults to 0: all.
    - `continue_token`: of the previous page. Defaults to "": the first page.
    - `resource_version`: "" for the latest state, "0" for any, another for a state that is not older. Defaults to "".
    - `resource_version_match`: "NotOlderThan" or "Exact". Defaults to "".
    - `timeout`: seconds for the whole request. Defaults to the transport's.
    """

    limit: int = 0
    continue_token: str = ""
    resource_version: str = ""
    resource_version_match: str = ""
    timeout: float | None = None


class WatchOptions(msgspec.Struct, frozen=True, kw_only=True):
    """
    - `resource_version`: events after it. Defaults to "": as "0", begin with an ADDED event for each object.
    - `bookmarks`: request bookmarks. Defaults to True. Without them set `stall_timeout` to None: a watch may then have
      no events for hours.
    - `send_initial_events`: begin with the existing objects and a bookmark after them (`INITIAL_EVENTS_END`): a
      streaming list. Requires `resource_version_match="NotOlderThan"`. Defaults to None.
    - `timeout_seconds`: after which the server ends the watch. Defaults to the server's choice.
    - `stall_timeout`: seconds without data after which `WatchStalled` is raised. Defaults to 70; None is no limit.
    """

    resource_version: str = ""
    resource_version_match: str = ""
    bookmarks: bool = True
    send_initial_events: bool | None = None
    timeout_seconds: int | None = None
    stall_timeout: float | None = STALL_TIMEOUT


class RawEvent(msgspec.Struct, frozen=True, gc=False):
    """Event of a watch. A deleted object is in its last state, with the resourceVersion of the deletion."""

    type: str  # ADDED, MODIFIED, DELETED, BOOKMARK, ERROR, or an unknown one
    object: bytes


class EventStream(Protocol):
    """Events of one watch. Must be closed: `async with await list_watch.watch(…) as events:`."""

    def __aiter__(self) -> Self: ...

    async def __anext__(self) -> RawEvent:
        """Wait for the next event. Raises `ConnectionLost` if the connection is lost."""

    def close(self) -> None:
        """End the watch. Idempotent."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...


class ListWatch(Protocol):
    """Lists and watches the objects of one kind, in one namespace or all, that match selectors."""

    @property
    def gvk(self) -> GroupVersionKind:
        """The kind of the objects, also if only their metadata is requested."""

    @property
    def namespace(self) -> str:
        """The namespace; "" for all, and for cluster-scoped kinds."""

    def __str__(self) -> str:
        """The collection, for messages: `pods in namespace default`."""

    async def info(self) -> KindInfo:
        """Return the REST mapping of the kind, from discovery if necessary. Raises `NoSuchKind`."""

    async def list(self, options: ListOptions = ...) -> RawList:
        """Request one page. Items of built-in kinds have no `apiVersion` and `kind`; those of custom resources do."""

    async def watch(self, options: WatchOptions = ...) -> EventStream:
        """Open a watch. An error response is raised here, not when the first event is read."""


class WatchStalled(TransportError):  # noqa: N818
    """Nothing was received for `stall_timeout` seconds. Watch again from the last resourceVersion."""


def error_of(event: RawEvent) -> APIError:
    """Return the error of an ERROR event."""
    return from_response(500, event.object)
