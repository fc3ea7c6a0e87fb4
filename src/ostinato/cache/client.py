"""Cached client: reads from caches, writes to the server, and reads its own writes.

    client = CachedClient(Client.connect(), informers)
    pod = await client.get(Pod, request, missing=None)     # from the cache, if Pods are watched
    pods = await client.list(Pod, namespace="default", fields={"spec.nodeName": "node-1"})
    await client.update(pod)                               # to the server
    pod = await client.get(Pod, request)                   # waits until the cache has observed the update
    pod = await client.live.get(Pod, request)              # always from the server

- Every read returns a new object; changing it does not change the cache.
- After a write through this client, reads of that object, and lists that may include it, wait until the cache has
  observed the write; they raise `StaleCache` on timeout. `fresh=False` does not wait.
- After a write without a response, `own_writes` waits for a second: it may have been performed.
- After a conflict, a read of the object waits until the cache has observed the newer state.
- Reads of a kind that is not watched go to the server, or raise `NotWatched`, depending on `unwatched`. No read starts
  a watch.
"""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable
from typing import Any, Final, Literal, Self, TypeVar, Unpack

from ostinato.api import accessors as access
from ostinato.api.accessors import AnyObject
from ostinato.api.errors import Conflict
from ostinato.api.gvk import GroupVersionKind
from ostinato.api.object import Object
from ostinato.cache.informers import Informers
from ostinato.cache.own_writes.recorder import OwnDeletion, current_own_writes
from ostinato.cache.own_writes.tracker import WriteTracker
from ostinato.cache.reader import READ_TIMEOUT, CachedReader
from ostinato.client.client import Client
from ostinato.client.discovery.paths import Key
from ostinato.client.options import CreateOptions, DeletionOptions, FieldSelection, LabelSelection, WriteOptions
from ostinato.client.patching import Patch
from ostinato.client.requests import view_like
from ostinato.client.transport.backoff import CONFLICTS, Backoff
from ostinato.client.views import Kind, MetadataOf, View, view_of
from ostinato.client.writer import Writer

T = TypeVar("T")
A = TypeVar("A", bound=AnyObject)

_MODIFIED: Final = "the object has been modified"  # the server's message for a conflict of resourceVersions


class CachedClient(CachedReader, Writer):
    def __init__(
        self,
        live: Client,
        informers: Informers,
        *,
        unwatched: Literal["server", "refuse"] = "server",
        read_timeout: float = READ_TIMEOUT,
    ) -> None:
        """
        - `live`: the client for the server.
        - `informers`: the caches.
        - `unwatched`: where to read what no cache has: from the "server", or "refuse". Defaults to "server".
        - `read_timeout`: seconds that a read waits for a cache to sync, or to observe a write. Defaults to 10.
        """
        super().__init__(live, informers, unwatched=unwatched, read_timeout=read_timeout)
        self._tracker = WriteTracker(informers, live.world.clock)

    def in_namespace(self, namespace: str) -> Self:
        """As `Client.in_namespace`; it shares the caches too, and observes the same own writes."""
        scoped = copy.copy(self)
        scoped.live = self.live.in_namespace(namespace)
        return scoped

    async def create(self, instance: A, **options: Unpack[CreateOptions]) -> A:
        """As `Client.create`."""
        return await self._written(_kind_of(instance), self.live.create(instance, **options), options)

    async def update(self, instance: A, **options: Unpack[WriteOptions]) -> A:
        """As `Client.update`."""
        try:
            return await self._written(_kind_of(instance), self.live.update(instance, **options), options)
        except Conflict as error:
            self._conflicted(instance, error)
            raise

    async def apply(self, instance: A, *, force: bool = False, **options: Unpack[WriteOptions]) -> A:
        """As `Client.apply`."""
        return await self._written(_kind_of(instance), self.live.apply(instance, force=force, **options), options)

    async def _patch_changes(self, target: A, original: A | None, options: WriteOptions, *, optimistic_lock: bool) -> A:
        patching = self.live.patch(target, original=original, optimistic_lock=optimistic_lock, **options)
        try:
            return await self._written(_kind_of(target), patching, options, unless=target)
        except Conflict as error:
            self._conflicted(target, error)
            raise

    async def _patch_key(
        self, kind: Kind[T], name: Key, namespace: str | None, patch: Patch, options: WriteOptions
    ) -> T:
        view = view_of(kind)
        patching: Awaitable[Any] = self.live.patch(kind, name, patch, namespace=namespace, **options)
        try:
            patched: T = await self._written(view.gvk, patching, options)
        except Conflict as error:
            self._patch_conflicted(view, name, namespace, patch, error)
            raise
        return patched

    async def _delete_object(self, target: AnyObject, options: DeletionOptions, *, missing_ok: bool) -> None:
        deleting = self.live._delete_object(target, options, missing_ok=missing_ok)
        answer = await self._answered(deleting, options)
        if not options.get("dry_run"):
            key = access.key(target)
            self._deleted(view_like(target), key.name, key.namespace or None, access.uid(target), answer)

    async def _delete_key(
        self, kind: Kind[Any], name: Key, namespace: str | None, options: DeletionOptions, *, missing_ok: bool
    ) -> None:
        deleting = self.live._delete_key(kind, name, namespace, options, missing_ok=missing_ok)
        answer = await self._answered(deleting, options)
        if not options.get("dry_run"):
            self._deleted(view_of(kind), name, namespace, options.get("uid", ""), answer)

    def _deleted(self, view: View[Any], name: Key, namespace: str | None, uid: str, answer: bytes) -> None:
        """Record a deletion with the caches of the kind."""
        writes = current_own_writes()
        if writes is not None and writes.on_delete is not None and answer:
            writes.on_delete(OwnDeletion.of(view.gvk, self._key(view, name, namespace), uid, answer))
        for informer in self._lookup.watching(MetadataOf(view)):
            self._tracker.deleted(informer, self._key(view, name, namespace, informer), uid)

    async def delete_all_of(
        self,
        kind: Kind[Any],
        *,
        namespace: str = "",
        labels: LabelSelection = None,
        fields: FieldSelection = None,
        **options: Unpack[DeletionOptions],
    ) -> None:
        """As `Client.delete_all_of`."""
        deleting = self.live.delete_all_of(kind, namespace=namespace, labels=labels, fields=fields, **options)
        await self._answered(deleting, options)
        if fields is None and not options.get("dry_run"):
            self._tracker.deleted_all(view_of(kind).gvk, namespace, labels)

    async def retry_on_conflict(self, function: Callable[[], Awaitable[T]], backoff: Backoff = CONFLICTS) -> T:
        """As `Client.retry_on_conflict`. Reads through this client in `function` return the newer state."""
        return await self.live.retry_on_conflict(function, backoff)

    async def _answered(self, write: Awaitable[T], options: Any) -> T:
        """Await a write; record a failure. Any: the options are one of the typed dicts above."""
        try:
            return await write
        except BaseException as error:
            if not options.get("dry_run"):
                self._tracker.failed(error)
            raise

    async def _written(
        self, kind: GroupVersionKind | None, write: Awaitable[A], options: Any, *, unless: object = None
    ) -> A:
        """Await and record a write; `unless` the response is this very object: then nothing was sent."""
        cached = "" if kind is None else self._tracker.cached_version(kind)
        answer = await self._answered(write, options)
        if answer is not unless and not options.get("dry_run"):
            self._tracker.written(answer, cached)
        return answer

    def _patch_conflicted(
        self, view: View[Any], name: Key, namespace: str | None, patch: Patch, error: Conflict
    ) -> None:
        """Record a conflict of a patch that has a resourceVersion."""
        metadata = patch.content.get("metadata") if isinstance(patch.content, dict) else None
        version = metadata.get("resourceVersion") if isinstance(metadata, dict) else None
        if version:
            for informer in self._lookup.watching(MetadataOf(view)):
                key = self._key(view, name, namespace, informer)
                if _is_about_version(error, key.name):
                    self._tracker.conflicted_at(informer, key, version)

    def _conflicted(self, instance: AnyObject, error: Conflict) -> None:
        if _is_about_version(error, access.name(instance)):
            self._tracker.conflicted(instance)


def _kind_of(instance: Any) -> GroupVersionKind | None:
    """Return None for anything but an object: the live client raises the error."""
    return access.gvk(instance) if isinstance(instance, Object | dict) else None


def _is_about_version(error: Conflict, name: str) -> bool:
    """Whether the conflict is about this object; it may be about another, such as a ResourceQuota."""
    return _MODIFIED in error.message and error.details.name in ("", name)
