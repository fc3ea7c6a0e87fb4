"""Sources of a controller of parents: which events of parents and children enqueue which parents."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from ostinato.api.gvk import NamespacedName
from ostinato.api.meta import OwnerReference
from ostinato.api.selectors.labels import Selector
from ostinato.cache.events import Added, Deleted, Event, Updated
from ostinato.cache.informers import Informers
from ostinato.cache.store.entry import Entry
from ostinato.cache.store.indexes import by_owner
from ostinato.client.views import View
from ostinato.controllers.runnable import Dependencies
from ostinato.controllers.sources.handlers import Handler, Keys
from ostinato.frontends.composite.meta.claims import by_orphans, selector_of
from ostinato.frontends.composite.meta.reconciler import Policy
from ostinato.frontends.kernel.sync import DeciderError

_MIN_KEPT: Final = 1_000


def concerned(policy: Policy) -> Callable[[Event], bool]:
    """Return a predicate for parents that are selected, or have the finalizer."""
    if policy.labels.empty and policy.annotations.empty:
        return lambda _event: True

    def is_concerned(event: Event) -> bool:
        entry = event.object
        if policy.labels.matches(entry.labels) and (
            policy.annotations.empty or policy.annotations.matches(entry.metadata().metadata.annotations)
        ):
            return True
        return policy.finalizer in entry.metadata().metadata.finalizers

    return is_concerned


def more_than_status(event: Event) -> bool:
    """Predicate of `ignoreStatusChanges`: a change of generation, labels or annotations, a deletion, a resync."""
    if not isinstance(event, Updated):
        return True
    old, new = event.old, event.new
    if old.resource_version == new.resource_version or new.is_being_deleted:
        return True
    if old.generation != new.generation or old.labels != new.labels:
        return True
    return old.metadata().metadata.annotations != new.metadata().metadata.annotations


class ForParentOf(Handler):
    """Enqueues the controller of a child; for an object without one, the parents whose selector matches it."""

    index = by_owner()

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._informers: Informers | None = None
        self._selectors: dict[str, tuple[int, Selector | None]] = {}  # by uid: generation, selector
        assert policy.view.info is not None
        self._namespaced = policy.view.info.namespaced

    async def prepare(self, watched: View[Any], dependencies: Dependencies) -> None:
        self._informers = dependencies.informers
        if self._policy.form == "composite":
            with suppress(ValueError):  # the index exists
                dependencies.informers.of(watched).add_index(by_orphans())

    def keys(self, event: Event) -> Keys:
        if isinstance(event, Updated) and event.old.resource_version == event.new.resource_version:
            return ()
        is_initial = isinstance(event, Added) and event.initial
        found = self._of(event.object, is_initial=is_initial, is_gone=isinstance(event, Deleted))
        if isinstance(event, Updated):
            found += self._of(event.old, is_initial=False, is_gone=True)
        return found

    def _of(self, entry: Entry, *, is_initial: bool, is_gone: bool) -> list[NamespacedName]:
        reference = entry.controller
        if reference is not None:
            if not self._is_kind(reference):
                return []
            return [NamespacedName(entry.key.namespace if self._namespaced else "", reference.name)]
        if is_initial or is_gone or entry.is_being_deleted or self._policy.form == "decorator":
            return []  # all parents are synced at the start
        return self._selecting(entry)

    def _is_kind(self, reference: OwnerReference) -> bool:
        gvk = self._policy.view.gvk
        return reference.kind == gvk.kind and reference.api_version.rpartition("/")[0] == gvk.group

    def _selecting(self, entry: Entry) -> list[NamespacedName]:
        assert self._informers is not None, "prepare() is called before the first event"
        store = self._informers.of(self._policy.view).store
        parents = store.entries(entry.key.namespace) if self._namespaced else store.entries()
        labels = entry.labels
        found = []
        for parent in parents:
            selector = self._selector(parent)
            if selector is not None and selector.matches(labels):
                found.append(parent.key)
        if len(self._selectors) > max(_MIN_KEPT, 2 * len(store)):
            self._selectors.clear()
        return found

    def _selector(self, parent: Entry) -> Selector | None:
        known = self._selectors.get(parent.uid)
        if known is None or known[0] != parent.generation:
            try:
                selector = selector_of(parent.dict(), generated=self._policy.generated)
            except DeciderError:
                selector = None
            known = self._selectors[parent.uid] = (parent.generation, selector)
        return known[1]
