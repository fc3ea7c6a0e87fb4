"""Write tracker: registers an expectation for each write with the caches that will observe it.

- Caches that cannot observe a write get no expectation, or reads would wait for nothing: those of other namespaces, and
  those with a selector that does not match, unless the object is in the cache and will leave it.
- The expectation is also recorded in the `OwnWrites` of the running block, if there is one.
- The response may reveal that the server was restored from a backup. A write that changes an object gets a
  resourceVersion that no cache has observed yet; one that changes nothing keeps the one that the cache has. If neither
  holds, the cached state is of a discarded history, and all caches relist.
"""

from __future__ import annotations

from asyncio import CancelledError

from ostinato.api import accessors as access
from ostinato.api.accessors import AnyObject
from ostinato.api.errors import APIError
from ostinato.api.gvk import GroupVersionKind, NamespacedName
from ostinato.api.object import Object
from ostinato.cache.informer import Informer
from ostinato.cache.informers import Informers
from ostinato.cache.lister import selected, selector_of
from ostinato.cache.own_writes.expectations import BeingDeleted, ExpectedState, Gone, Superseded, Written
from ostinato.cache.own_writes.recorder import OwnWrite, OwnWrites, current_own_writes
from ostinato.cache.store.resource_versions import reached
from ostinato.client.options import LabelSelection
from ostinato.client.transport.protocol import DeadlinePassed, TransportError, Unreachable
from ostinato.world import Clock


class WriteTracker:
    def __init__(self, informers: Informers, clock: Clock) -> None:
        self._informers = informers
        self._clock = clock

    def cached_version(self, gvk: GroupVersionKind) -> str:
        """Return the resourceVersion of the cache of all objects of a kind; "" if there is none, or it is unreliable.

        A cache about to relist is unreliable: a write meanwhile is no reason for another relist. So is one that skipped
        an object that it could not decode: the write may be of that object.
        """
        for informer in self._informers.all(gvk):
            if informer.is_running and informer.complete and informer.selector is None:
                feed = informer.feed_of("")
                if feed is not None and feed.is_reliable:
                    return feed.store.resource_version
        return ""

    def written(self, instance: AnyObject, cached: str) -> None:
        """Record a write, given the response and the `cached_version` before the request was sent."""
        write = OwnWrite.of(instance)
        writes = current_own_writes()
        if writes is not None and writes.on_write is not None:
            writes.on_write(write)
        key = write.key
        if _is_removed(instance):
            self._expect(write.gvk, Gone(key, access.uid(instance)))
        elif write.resource_version:
            if self._shows_restore(write, cached):
                for informer in self._informers.all():
                    informer.suspect_restore(f"{write.gvk.kind} {key} was written at {write.resource_version}")
            for informer in self._informers.all(write.gvk):
                if informer.is_running and _will_observe(informer, key, instance):
                    self._register(informer, Written(key, write.resource_version), writes)

    def deleted(self, informer: Informer, key: NamespacedName, uid: str) -> None:
        """Record that the server accepted the deletion of the object with this uid (any, if empty)."""
        known = informer.store.get(key)
        self._register(informer, BeingDeleted(key, uid or (known.uid if known else "")), current_own_writes())

    def deleted_all(self, gvk: GroupVersionKind, namespace: str, labels: LabelSelection) -> None:
        """Record that the server accepted the deletion of all objects of a namespace that match the labels."""
        for informer in self._watching(gvk):
            for entry in selected(informer.store, namespace, selector_of(labels)):
                self._register(informer, BeingDeleted(entry.key, entry.uid), current_own_writes())

    def failed(self, error: BaseException) -> None:
        """Record a failed write if the server may have performed it nevertheless."""
        writes = current_own_writes()
        if writes is not None and _may_have_succeeded(error):
            writes.unanswered(self._clock)

    def conflicted(self, instance: AnyObject) -> None:
        """Record that the server rejected a write of this object with a conflict."""
        version = access.resource_version(instance)
        if version:
            self._expect(access.gvk(instance), Superseded(access.key(instance), version))

    def conflicted_at(self, informer: Informer, key: NamespacedName, version: str) -> None:
        """Record that the server rejected a patch that required this resourceVersion."""
        self._register(informer, Superseded(key, version), current_own_writes())

    def _shows_restore(self, write: OwnWrite, cached: str) -> bool:
        """Whether the write got a resourceVersion that the cache had passed, without the cache having it.

        A write that changes nothing keeps its resourceVersion. If the cache has changed since, the object may have been
        changed once more, or removed.
        """
        if not cached or not reached(cached, write.resource_version) or self.cached_version(write.gvk) != cached:
            return False
        entries = (informer.store.get(write.key) for informer in self._watching(write.gvk))
        versions = [entry.resource_version for entry in entries if entry is not None]
        return write.resource_version not in versions and not access.is_being_deleted(write.instance)

    def _expect(self, gvk: GroupVersionKind, state: ExpectedState) -> None:
        for informer in self._watching(gvk):
            self._register(informer, state, current_own_writes())

    def _watching(self, gvk: GroupVersionKind) -> list[Informer]:
        return [each for each in self._informers.all(gvk) if each.is_running]

    def _register(self, informer: Informer, state: ExpectedState, writes: OwnWrites | None) -> None:
        feed = informer.feed_of(state.key.namespace)
        if feed is not None:
            expectation = feed.expectations.expect(state)
            if writes is not None:
                writes.add(expectation, self._clock)


def _will_observe(informer: Informer, key: NamespacedName, instance: AnyObject) -> bool:
    if key in informer.store:
        return True
    return informer.complete and (informer.selector is None or informer.selector.matches(access.labels(instance)))


def _may_have_succeeded(error: BaseException) -> bool:
    """Whether the request may have reached the server, and its outcome is unknown."""
    if isinstance(error, APIError):
        return error.code >= 500
    return isinstance(error, TransportError | CancelledError) and not isinstance(error, DeadlinePassed | Unreachable)


def _is_removed(instance: AnyObject) -> bool:
    """Whether the write removed the last finalizer of an object being deleted, and so the object.

    Kinds that are finalized otherwise, such as namespaces, have no deletionGracePeriodSeconds.
    """
    if not access.is_being_deleted(instance) or access.finalizers(instance):
        return False
    if isinstance(instance, Object):
        return instance.metadata.deletion_grace_period_seconds == 0
    return bool(instance["metadata"].get("deletionGracePeriodSeconds") == 0)
