"""Blocking clients: the methods of `CachedClient` and `Client`, which block the thread where the others are awaited."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeVar, Unpack, overload

from ostinato.api.accessors import AnyObject
from ostinato.api.errors import Conflict
from ostinato.cache.client import CachedClient
from ostinato.client.client import Client
from ostinato.client.discovery.paths import Key
from ostinato.client.listing import PAGE_SIZE, Items
from ostinato.client.options import (
    CreateOptions,
    DeletionOptions,
    FieldSelection,
    LabelSelection,
    ReadOptions,
    WriteOptions,
)
from ostinato.client.patching import Patch
from ostinato.client.transport.backoff import CONFLICTS, Backoff
from ostinato.client.views import Kind
from ostinato.client.waiting import Condition
from ostinato.client.watch import WatchEvent
from ostinato.controllers.blocking.calls import BlockingCalls, unknown_attribute

A = TypeVar("A", bound=AnyObject)
C = TypeVar("C", CachedClient, Client)
D = TypeVar("D")
T = TypeVar("T")

_RAISE: Final[Any] = object()  # the default of `missing`


class _Writes(Generic[C]):
    """The writes, which are the same of both clients."""

    _title = "a blocking client"
    _path = ""  # of the asynchronous client, for messages

    def __init__(self, client: C, calls: BlockingCalls) -> None:
        self._client: C = client
        self._calls = calls

    if not TYPE_CHECKING:  # type checkers report it themselves

        def __getattr__(self, name: str) -> Any:
            live = getattr(self.__dict__.get("_client"), "live", None)
            path = self._path if live is None or not hasattr(live, name) else f"{self._path}.live"
            known = hasattr(live or self.__dict__.get("_client"), name)
            advice = [f"use ctx.wait({path}.{name}…);"] if known else []
            unknown_attribute(self, self._title, name, advice)

    def in_namespace(self, namespace: str) -> Self:
        """Return a client for objects without a namespace in this one; with "", such objects raise ValueError."""
        return type(self)(self._client.in_namespace(namespace), self._calls)

    def create(self, instance: A, **options: Unpack[CreateOptions]) -> A:
        """Create an object. `metadata.generate_name` has the server generate a name. Raises AlreadyExists."""
        return self._calls.wait(self._client.create(instance, **options))

    def update(self, instance: A, **options: Unpack[WriteOptions]) -> A:
        """Replace an object.

        Raises Conflict if it changed since it was read; without a resourceVersion the update is unconditional.
        """
        return self._calls.wait(self._client.update(instance, **options))

    def apply(self, instance: A, *, force: bool = False, **options: Unpack[WriteOptions]) -> A:
        """Server-side apply: set and own the fields of the object, and remove owned fields that it no longer sets.

        - Creates the object if it does not exist.
        - Raises Conflict if another field manager owns a field with another value; `force` takes ownership.
        """
        return self._calls.wait(self._client.apply(instance, force=force, **options))

    @overload
    def patch(
        self, target: A, /, *, original: A | None = None, optimistic_lock: bool = False, **options: Unpack[WriteOptions]
    ) -> A: ...
    @overload
    def patch(
        self,
        target: Kind[T],
        name: Key,
        patch: Patch,
        /,
        *,
        namespace: str | None = None,
        **options: Unpack[WriteOptions],
    ) -> T: ...
    def patch(self, target: Any, *given: Any, **options: Any) -> Any:  # Any: the overloads have the types
        """Patch an object: with a patch, or, given the object itself, with its changes since it was read.

        - `original`: the object as it was read. Required for dicts only.
        - `optimistic_lock`: raise Conflict if the object was written since. Defaults to False.
        - Without changes no request is sent, and the same object is returned.
        """
        return self._calls.wait(self._client.patch(target, *given, **options))

    @overload
    def delete(self, target: AnyObject, /, *, missing_ok: bool = False, **options: Unpack[DeletionOptions]) -> None: ...
    @overload
    def delete(
        self,
        target: Kind[Any],
        name: Key,
        /,
        *,
        namespace: str | None = None,
        missing_ok: bool = False,
        **options: Unpack[DeletionOptions],
    ) -> None: ...
    def delete(self, target: Any, *given: Any, **options: Any) -> None:  # Any: the overloads have the types
        """Delete an object; one with finalizers is marked for deletion.

        - `missing_ok`: do not raise NotFound if it does not exist. Defaults to False.
        - An object that was read is deleted only if its uid is the same, not if it was recreated meanwhile.
        """
        self._calls.wait(self._client.delete(target, *given, **options))

    def delete_all_of(
        self,
        kind: Kind[Any],
        *,
        namespace: str = "",
        labels: LabelSelection = None,
        fields: FieldSelection = None,
        **options: Unpack[DeletionOptions],
    ) -> None:
        """Delete the objects of a kind that match the selectors. `namespace`: required for namespaced kinds."""
        self._calls.wait(self._client.delete_all_of(kind, namespace=namespace, labels=labels, fields=fields, **options))

    def retry_on_conflict(self, function: Callable[[], T], backoff: Backoff = CONFLICTS) -> T:
        """Retry `function` on Conflict, with five attempts by default. It must read the object on each attempt."""
        world = self._client.world
        steps = backoff.start(world.rng)
        while True:
            try:
                return function()
            except Conflict:
                if steps.left <= 1:
                    raise
            self._calls.wait(world.clock.sleep(steps.next()))


class BlockingClient(_Writes[CachedClient]):
    """Reads from caches, writes to the server, and reads its own writes; see `CachedClient`."""

    _path = "ctx.asynchronous.client"

    @property
    def live(self) -> BlockingLiveClient:
        """A client that always reads from the server."""
        return BlockingLiveClient(self._client.live, self._calls)

    @overload
    def get(self, kind: Kind[T], name: Key, *, fresh: bool = True, **options: Unpack[ReadOptions]) -> T: ...
    @overload
    def get(
        self, kind: Kind[T], name: Key, *, missing: D, fresh: bool = True, **options: Unpack[ReadOptions]
    ) -> T | D: ...
    def get(
        self, kind: Kind[Any], name: Key, *, missing: Any = _RAISE, fresh: bool = True, **options: Unpack[ReadOptions]
    ) -> Any:
        """Return an object; if it does not exist, `missing`, or raise NotFound.

        - `fresh`: wait until the cache has observed own writes of the object. Defaults to True.
        """
        if missing is _RAISE:
            return self._calls.wait(self._client.get(kind, name, fresh=fresh, **options))
        return self._calls.wait(self._client.get(kind, name, missing=missing, fresh=fresh, **options))

    def list(
        self,
        kind: Kind[T],
        *,
        namespace: str = "",
        labels: LabelSelection = None,
        fields: FieldSelection = None,
        index: tuple[str, str] | None = None,
        fresh: bool = True,
        strict: bool = False,
    ) -> Items[T]:
        """Return the objects of a kind, a list.

        - `namespace`: Defaults to all, or to the namespaces of the default cache settings.
        - `fields`: equality of indexed fields, `metadata.name` and `metadata.namespace`.
        - `index`: the name of an index of the cache, and a value.
        - `fresh`: wait until the cache has observed own writes that may be in the list. Defaults to True.
        - `strict`: raise `ObjectError` for an object that cannot be decoded. Defaults to False: it is skipped, logged
          and counted.
        """
        listing = self._client.list(
            kind, namespace=namespace, labels=labels, fields=fields, index=index, fresh=fresh, strict=strict
        )
        return self._calls.wait(listing)

    def fresh(self, kind: Kind[Any], name: Key | None = None, *, namespace: str | None = None) -> None:
        """Wait until the caches have observed own writes of a kind, or of one object."""
        self._calls.wait(self._client.fresh(kind, name, namespace=namespace))


class BlockingLiveClient(_Writes[Client]):
    """Reads from the server and writes to it; see `Client`."""

    _title = "a blocking live client"
    _path = "ctx.asynchronous.client.live"

    @overload
    def get(self, kind: Kind[T], name: Key, **options: Unpack[ReadOptions]) -> T: ...
    @overload
    def get(self, kind: Kind[T], name: Key, *, missing: D, **options: Unpack[ReadOptions]) -> T | D: ...
    def get(self, kind: Kind[Any], name: Key, *, missing: Any = _RAISE, **options: Unpack[ReadOptions]) -> Any:
        """Read an object.

        `missing`: returned if the object does not exist. Defaults to raising NotFound. A kind that does not exist
        always raises `NoSuchKind`.
        """
        if missing is _RAISE:
            return self._calls.wait(self._client.get(kind, name, **options))
        return self._calls.wait(self._client.get(kind, name, missing=missing, **options))

    def list(
        self,
        kind: Kind[T],
        *,
        namespace: str = "",
        labels: LabelSelection = None,
        fields: FieldSelection = None,
        page_size: int = PAGE_SIZE,
        resource_version: str = "",
        resource_version_match: str = "",
        strict: bool = False,
    ) -> Items[T]:
        """Return the objects of a kind, a list.

        - `namespace`: Defaults to all namespaces.
        - `page_size`: objects per request, 0 for no paging. Defaults to 500.
        - `strict`: raise `ObjectError` for an object that cannot be decoded. Defaults to False: it is skipped, logged
          and counted.
        """
        listing = self._client.list(
            kind,
            namespace=namespace,
            labels=labels,
            fields=fields,
            page_size=page_size,
            resource_version=resource_version,
            resource_version_match=resource_version_match,
            strict=strict,
        )
        return self._calls.wait(listing)

    def watch(
        self,
        kind: Kind[T],
        *,
        namespace: str = "",
        labels: LabelSelection = None,
        fields: FieldSelection = None,
        since: str | None = None,
        strict: bool = False,
    ) -> Iterator[WatchEvent[T]]:
        """Watch the objects of a kind: `for event in ctx.client.live.watch(Pod, namespace="default")`.

        - `namespace`: Defaults to all namespaces.
        - `since`: the resourceVersion to begin after. Defaults to beginning with the existing objects.
        - `strict`: raise `ObjectError` for an object that cannot be decoded. Defaults to False, as in `list`.
        """
        events = self._client.watch(kind, namespace=namespace, labels=labels, fields=fields, since=since, strict=strict)
        try:
            yield from self._calls.iterate(events)
        finally:
            events.close()

    def wait_for(
        self,
        kind: Kind[T],
        name: Key,
        condition: Condition[T],
        *,
        namespace: str | None = None,
        timeout: float | None,
    ) -> T | None:
        """Wait until a condition of an object is met, and return the object.

        - `condition`: the type of a status condition that has to be "True" (`"Available"`), or a predicate, which is
          called with None while the object does not exist.
        - `timeout`: seconds after which `WaitTimedOut` is raised; None is no limit.
        """
        waiting = self._client.wait_for(kind, name, condition, namespace=namespace, timeout=timeout)
        return self._calls.wait(waiting)
