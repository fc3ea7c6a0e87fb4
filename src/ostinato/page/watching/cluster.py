"""Cluster: informers of the watched kinds, and a record of each of their changes.

- managedFields are kept: they say who owns which field. Values of Secrets are masked before they are stored.
- Kinds are looked up again when a CustomResourceDefinition changes, and every minute.
- A kind that the page may not list or watch is in `denied`, and tried again with the next lookup.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

import msgspec

from ostinato.api.errors import APIError
from ostinato.api.gvk import GroupKind, GroupVersionKind
from ostinato.api.object import KindInfo
from ostinato.cache.events import Added, Deleted, Event, Updated
from ostinato.cache.informer import Informer, Registration
from ostinato.cache.informers import Informers, InformerSettings
from ostinato.cache.reflector.feed import FeedOptions
from ostinato.cache.store.entry import Entry
from ostinato.client.client import Client
from ostinato.client.transport.protocol import TransportError
from ostinato.client.views import Unstructured
from ostinato.page.facts import Denied, Ref
from ostinato.page.history.changes import Changes
from ostinato.page.masking import masking
from ostinato.page.watching.kinds import LEASE, NODE_LEASES, SECRET, missing, watched_kinds, with_kinds_below
from ostinato.world import World

_REFRESH: Final = 60.0  # seconds between two lookups of kinds
_SETTLE: Final = 1.0  # seconds after a change of a definition
_FIRST_RETRY: Final = 1.0
_DEFINITION: Final = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")
_MOST_UNPACKED: Final = 20_000  # objects of a kind; recent changes refer to the same bytes
_IDLE_AFTER: Final = 5.0  # seconds; merged events arrive once a second
_ELECTION_FIELDS: Final = ("holderIdentity", "leaseTransitions")
_logger = logging.getLogger("ostinato.page")

Kinds = Callable[[], Iterable[GroupVersionKind]]
"""Returns the kinds of an operator."""


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """What is watched.

    - `kinds`: those of an operator. Defaults to None: all.
    - `namespaces`: defaults to all.
    """

    kinds: Kinds | None = None
    namespaces: tuple[str, ...] = ("",)


class Cluster:
    def __init__(self, client: Client, world: World, changes: Changes, scope: Scope) -> None:
        self.client = client
        self.denied: list[Denied] = []
        self._clock = world.clock
        self._changes = changes
        self._scope = scope
        self._masking = masking(world.ids.token(32))
        self._informers = Informers(client)
        self._watched: dict[GroupVersionKind, tuple[Informer, Registration]] = {}
        self._redefined = asyncio.Event()
        self.on_lease: Callable[[Entry, Entry], object] = lambda _old, _new: None
        self.on_pod: Callable[[Entry], object] = lambda _pod: None

    async def run(self) -> None:
        """Watch until cancelled."""
        wait = _FIRST_RETRY
        try:
            while True:
                try:
                    await self._update()
                    wait = _REFRESH
                except (APIError, TransportError) as error:
                    _logger.warning("unable to look up kinds error=%s", error)
                    wait = min(2 * wait, _REFRESH)
                self._redefined.clear()
                await self._pause(wait)
        finally:
            await self._informers.abort()

    async def _pause(self, seconds: float) -> None:
        """Wait so long, or until a definition or the kinds of the operator change."""
        kinds, until = self._kinds(), self._clock.monotonic() + seconds
        while not self._redefined.is_set() and self._kinds() == kinds and self._clock.monotonic() < until:
            with suppress(TimeoutError):
                async with self._clock.timeout(_SETTLE):
                    await self._redefined.wait()
        if self._redefined.is_set():
            await self._clock.sleep(_SETTLE)

    def _kinds(self) -> frozenset[GroupVersionKind]:
        return frozenset() if self._scope.kinds is None else frozenset(self._scope.kinds())

    async def synced(self) -> None:
        """Wait until all kinds that are watched now have synced."""
        for informer, registration in [*self._watched.values()]:
            if informer.is_running:
                await registration.synced(_REFRESH)

    async def _update(self) -> None:
        """Begin to watch new kinds, and end to watch those that do not exist any more."""
        await self.client.mapper.refresh()
        served = watched_kinds(await self.client.mapper.catalogue())
        wanted = served
        if self._scope.kinds is not None:
            known = {each.group_kind: each for each in served}
            wanted = [
                known[each.group_kind] for each in with_kinds_below(self._scope.kinds()) if each.group_kind in known
            ]
        denied: list[Denied] = []
        for gvk in missing(self._watched, wanted):
            info = await self.client.mapper.kind(gvk)
            why = "" if self._scope.kinds is None else await self._refusal(info)
            if why:
                denied.append(Denied(f"{gvk.kind} ({gvk.api_version})", why))
            else:
                self._watch(info)
        self.denied = denied
        for gvk in [each for each in self._watched if each not in wanted]:
            informer, registration = self._watched.pop(gvk)
            registration.remove()
            await self._informers.release(informer)

    def _watch(self, info: KindInfo) -> None:
        gvk = info.gvk
        feed = FeedOptions(
            keep_managed_fields=True,
            transform=self._masking if gvk.group_kind == SECRET else None,
            last_stored=True,
            most_unpacked=_MOST_UNPACKED,
            idle_after=_IDLE_AFTER,
            name="page",
        )
        fields = f"metadata.namespace!={NODE_LEASES}" if gvk.group_kind == LEASE else None
        namespaces = self._scope.namespaces if info.namespaced else ("",)
        settings = InformerSettings(feed=feed, fields=fields, namespaces=namespaces)
        informer = self._informers.of(Unstructured(gvk, info), settings)
        registration = informer.add_handler(self._saw, name="page")
        informer.start()
        self._watched[gvk] = informer, registration

    async def _refusal(self, info: KindInfo) -> str:
        """Return why a kind may not be watched; "" if it may."""
        for namespace in self._scope.namespaces if info.namespaced else ("",):
            for verb in ("list", "watch"):
                review = {
                    "apiVersion": "authorization.k8s.io/v1",
                    "kind": "SelfSubjectAccessReview",
                    "spec": {
                        "resourceAttributes": {
                            "group": info.gvk.group,
                            "resource": info.plural,
                            "verb": verb,
                            "namespace": namespace,
                        }
                    },
                }
                answer: dict[str, Any] = await self.client.create(review)
                status = answer.get("status") or {}
                if not status.get("allowed"):
                    where = f"in namespace {namespace}" if namespace else "in the cluster"
                    return str(status.get("reason") or f"the operator's role does not allow {verb} {where}")
        return ""

    # Events

    def _saw(self, event: Event) -> None:
        match event:
            case Added(object=entry, initial=False):
                before, after = None, entry
            case Updated(old=old, new=new) if old.resource_version != new.resource_version:
                before, after = old, new
            case Deleted(last_known=entry):
                before, after = None, entry
            case _:
                return
        kind = after.collection.info.gvk
        if kind.kind == "Pod" and not kind.group:
            self.on_pod(after)
        elif kind.group_kind == _DEFINITION:
            self._redefined.set()
        elif kind.group_kind == LEASE and before is not None:
            if not _changes_holder(before, after):
                return  # a renewal, every two seconds
            self.on_lease(before, after)
        at = self._clock.wall()
        if isinstance(event, Deleted):
            self._changes.add(at, "delete", None, after)
        else:
            self._changes.add(at, "create" if before is None else "update", before, after)

    # Reading

    @property
    def kinds(self) -> Sequence[GroupVersionKind]:
        """The watched kinds that have objects in the cache."""
        return [gvk for gvk, (informer, _) in self._watched.items() if informer.has_synced]

    def entries(self, gvk: GroupVersionKind | None = None) -> Iterator[Entry]:
        """Iterate over the cached objects of a kind, or of all."""
        for kind, (informer, _) in self._watched.items():
            if gvk is None or kind.group_kind == gvk.group_kind:
                yield from informer.store.entries()

    def find(self, ref: Ref) -> Entry | None:
        """Return a cached object; of that uid, if the reference has one."""
        for kind, (informer, _) in self._watched.items():
            if kind.group_kind == ref.gvk.group_kind:
                entry = informer.store.get(ref.key)
                if entry is not None and ref.uid in ("", entry.uid):
                    return entry
        return None


def _changes_holder(before: Entry, after: Entry) -> bool:
    old, new = (each.dict().get("spec") or {} for each in (before, after))
    return any(old.get(field) != new.get(field) for field in _ELECTION_FIELDS)
