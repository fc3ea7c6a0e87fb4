"""Write tracker: tells the caches of a kind what is now the case on the server.

A cache that could not see a write is not told of it, or its readers would wait in vain: one that has other namespaces,
and one that has objects with other labels or fields, unless the object is in it and so will leave it.

An answer may also tell that the server was restored from a copy. Versions only grow: what is written gets one that no
cache has seen yet, and what a write leaves as it is has the one that the cache has. Where neither is the case, what was
cached is of a history that did not take place, and all caches are told to list anew.
"""

from __future__ import annotations

from asyncio import CancelledError

from ostinato.api import access
from ostinato.api.access import AnyObject
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
        """Up to which version all that happened to objects of a kind is cached; "" if not all of them are.

        A cache that is to list anew has seen nothing: what is written meanwhile is no reason to do so again. Nor has
        one that had to leave an object out: it does not have what was written, whatever the server did.
        """
        for informer in self._informers.all(gvk):
            if informer.is_running and informer.complete and informer.selector is None:
                feed = informer.feed_of("")
                if feed is not None and feed.is_sure:
                    return feed.store.resource_version
        return ""

    def written(self, instance: AnyObject, seen: str) -> None:
        """The server answered a write with this object; `seen` is what was seen before that was sent."""
        write = OwnWrite.of(instance)
        writes = current_own_writes()
        if writes is not None and writes.on_write is not None:
            writes.on_write(write)
        key = write.key
        if _is_removed(instance):
            self._expect(write.gvk, Gone(key, access.uid(instance)))
        elif write.resource_version:
            if self._shows_restore(write, seen):
                for informer in self._informers.all():
                    informer.suspect_restore(f"it gave {write.gvk.kind} {key} version {write.resource_version}")
            for informer in self._informers.all(write.gvk):
                if informer.is_running and _will_observe(informer, key, instance):
                    self._register(informer, Written(key, write.resource_version), writes)

    def deleted(self, informer: Informer, key: NamespacedName, uid: str) -> None:
        """The server agreed to delete the object with this uid, or (""), whichever there was."""
        known = informer.store.get(key)
        self._register(informer, BeingDeleted(key, uid or (known.uid if known else "")), current_own_writes())

    def deleted_all(self, gvk: GroupVersionKind, namespace: str, labels: LabelSelection) -> None:
        """The server agreed to delete all objects of a namespace that have these labels."""
        for informer in self._watching(gvk):
            for entry in selected(informer.store, namespace, selector_of(labels)):
                self._register(informer, BeingDeleted(entry.key, entry.uid), current_own_writes())

    def failed(self, error: BaseException) -> None:
        """A write failed; perhaps it was done all the same."""
        writes = current_own_writes()
        if writes is not None and _may_have_succeeded(error):
            writes.unanswered(self._clock)

    def conflicted(self, instance: AnyObject) -> None:
        """The server refused a write of this object: it is no longer what it was."""
        version = access.resource_version(instance)
        if version:
            self._expect(access.gvk(instance), Superseded(access.key(instance), version))

    def conflicted_at(self, informer: Informer, key: NamespacedName, version: str) -> None:
        """The server refused a write of an object by its name: it no longer has this version."""
        self._register(informer, Superseded(key, version), current_own_writes())

    def _shows_restore(self, write: OwnWrite, seen: str) -> bool:
        """Whether what was written has a version that was seen before, and with which the cache does not have it.

        What a write leaves as it is keeps its version. If the cache has heard anything since, it may have been that the
        object changed once more, or has gone.
        """
        if not seen or not reached(seen, write.resource_version) or self.cached_version(write.gvk) != seen:
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
    """Whether the request was sent, and no answer says what became of it."""
    if isinstance(error, APIError):
        return error.code >= 500
    return isinstance(error, TransportError | CancelledError) and not isinstance(error, DeadlinePassed | Unreachable)


def _is_removed(instance: AnyObject) -> bool:
    """Whether the write took away the last thing that the deletion of the object waited for.

    Kinds that end in phases of their own, as namespaces do, have no grace period: when they go is for others to know.
    """
    if not access.is_being_deleted(instance) or access.finalizers(instance):
        return False
    if isinstance(instance, Object):
        return instance.metadata.deletion_grace_period_seconds == 0
    return bool(instance["metadata"].get("deletionGracePeriodSeconds") == 0)
