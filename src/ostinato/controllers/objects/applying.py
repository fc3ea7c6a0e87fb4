"""Server-side apply of owned objects, without requests for objects that are up to date.

- An object is applied with the controller's field manager, by default with force.
- With an owner, the object gets a controller reference to it. An existing object without a controller reference is
  rejected (`ForeignObject`) unless it is to be adopted. An object of a deleted owner of the same name is about to be
  garbage-collected; the apply is retried until it is (`StillOwned`).
- An object that was applied before and has not changed since is not sent again. This requires that the kind is watched:
  the cached object has the resourceVersion or generation of the last apply, or all applied fields have their values.
- `prune` deletes the objects of an owner that are no longer wanted.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Iterable
from contextlib import suppress
from hashlib import blake2b
from typing import Any, Final, TypeVar

import msgspec

from ostinato.api import accessors as access
from ostinato.api.accessors import AnyObject
from ostinato.api.codec import to_dict, to_json
from ostinato.api.gvk import GroupVersionKind, NamespacedName
from ostinato.api.meta import OwnerReference
from ostinato.api.object import Object, kind_of
from ostinato.api.owners import AlreadyOwned, OwnerError, controller_of, set_controller_reference
from ostinato.cache.client import CachedClient
from ostinato.cache.reader import NotWatched
from ostinato.cache.store.entry import Entry
from ostinato.cache.store.indexes import OWNER
from ostinato.cache.store.store import NoSuchIndex
from ostinato.client.arguments import check_object, summarize
from ostinato.client.requests import view_like
from ostinato.client.views import MetadataOf, PartialObjectMetadata, View

A = TypeVar("A", bound=AnyObject)

_MAX_REMEMBERED: Final = 200_000
_MIN_SWEEP: Final = 1_000  # below this size entries of deleted objects are not looked for
_METADATA: Final = ("labels", "annotations", "ownerReferences", "finalizers")


class ForeignObject(OwnerError):  # noqa: N818
    """The object exists without a controller reference to the owner that applies it."""

    def __init__(self, instance: AnyObject, owner: AnyObject) -> None:
        super().__init__(
            f"{access.describe(instance)} exists and is not controlled by {access.describe(owner)}; "
            "apply it with adopt=True, delete it, or use another name"
        )


class StillOwned(AlreadyOwned):
    """The object is controlled by a deleted owner that had the same name as the current one."""

    def __init__(self, instance: AnyObject, owner: OwnerReference) -> None:
        OwnerError.__init__(
            self,
            f"{access.describe(instance)} is controlled by a deleted {owner.kind} {owner.name} (uid {owner.uid}); "
            "waiting for its garbage collection",
        )
        self.owner = owner


class _Applied(msgspec.Struct, frozen=True, gc=False):
    """The digest of an applied object, and the server's answer."""

    document: bytes
    uid: str
    resource_version: str
    generation: int


class Applier:
    """Applies and prunes the objects of one controller."""

    def __init__(self, client: CachedClient, field_manager: str) -> None:
        self._client = client
        self._manager = field_manager
        self._applied: OrderedDict[tuple[GroupVersionKind, NamespacedName], _Applied] = OrderedDict()
        self._sweep_at = _MIN_SWEEP  # size at which entries of deleted objects are removed

    async def apply(
        self, instance: A, *, owner: AnyObject | None, force: bool, adopt: bool, client: CachedClient | None = None
    ) -> A:
        """`client`: its namespace is that of objects without one. Defaults to the client of the controller."""
        client = client or self._client
        wanted = self._owned(instance, owner, client.live.namespace)
        view = view_like(wanted)
        key = access.key(wanted)
        known, entry = await self._cached(view, key)
        place = (view.gvk, key)
        document = _digest(wanted)
        applied = self._applied.get(place)
        if entry is not None and _is_untouched(applied, document, entry):
            untouched: A = entry.read(view)
            return untouched
        if owner is not None and not adopt:
            await self._check_owner(wanted, owner, view, known=known, entry=entry)
        if entry is not None and self._is_applied(applied, document, entry, wanted):
            unchanged: A = entry.read(view)
            return unchanged
        answer = await client.apply(wanted, force=force, field_manager=self._manager)
        self._remember(place, document, answer)
        return answer

    async def is_up_to_date(self, instance: AnyObject, *, owner: AnyObject | None) -> bool:
        """Return whether `apply` would send no request."""
        wanted = self._owned(instance, owner, self._client.live.namespace)
        view, key = view_like(wanted), access.key(wanted)
        _, entry = await self._cached(view, key)
        if entry is None:
            return False
        applied, document = self._applied.get((view.gvk, key)), _digest(wanted)
        return _is_untouched(applied, document, entry) or self._is_applied(applied, document, entry, wanted)

    def complete(self, instance: A, *, owner: AnyObject | None) -> A:
        """Return the object as `apply` sends it: a copy with its namespace and its controller reference."""
        return self._owned(instance, owner, self._client.live.namespace)

    async def prune(self, owner: AnyObject, keep: Iterable[AnyObject], kinds: Iterable[View[Any]]) -> None:
        """Delete the objects of these kinds that the owner controls, except those in `keep`."""
        # An object without a namespace is in its owner's; the objects of a cluster-scoped owner may be in any.
        home, uid = access.namespace(owner), access.uid(owner)
        kept = {(view_like(each).gvk.group_kind, access.namespace(each) or home, access.name(each)) for each in keep}
        for view in kinds:
            for found in await self._managed(view, owner):
                controller = controller_of(found)
                if controller is None or controller.uid != uid or access.is_being_deleted(found):
                    continue
                kind, name = view.gvk.group_kind, access.name(found)
                if kept.isdisjoint(((kind, access.namespace(found), name), (kind, "", name))):
                    await self._client.delete(found, propagation="Background", missing_ok=True)
                    self._applied.pop((view.gvk, access.key(found)), None)

    async def _managed(self, view: View[Any], owner: AnyObject) -> list[PartialObjectMetadata]:
        metadata, namespace = MetadataOf(view), access.namespace(owner)
        with suppress(NoSuchIndex, NotWatched):
            return list(await self._client.list(metadata, namespace=namespace, index=(OWNER, access.uid(owner))))
        return list(await self._client.list(metadata, namespace=namespace))

    def _owned(self, instance: A, owner: AnyObject | None, default: str) -> A:
        """Return a copy with a namespace, the owner's or the default, and with a controller reference.

        Shallow: only fields of the metadata are set.
        """
        check_object(instance, "apply")
        wanted = copy.copy(instance)
        if isinstance(wanted, Object):
            wanted.metadata = copy.copy(wanted.metadata)
        elif isinstance(wanted.get("metadata"), dict):
            wanted["metadata"] = wanted["metadata"].copy()
        if owner is not None and not isinstance(owner, Object | dict):
            raise TypeError(
                f"apply() owner: {summarize(owner)} is not an object; pass the owner of {access.describe(instance)}"
            )
        if not access.namespace(wanted):
            self._place(wanted, "" if owner is None else access.namespace(owner), default)
        if owner is not None:
            set_controller_reference(owner, wanted)
        return wanted

    def _place(self, wanted: AnyObject, home: str, default: str) -> None:
        """Set the namespace, which is part of the object's key in the cache."""
        if isinstance(wanted, Object):
            if kind_of(wanted).namespaced:
                wanted.metadata.namespace = home or default
        elif home or self._is_namespaced(view_like(wanted)):
            access.writable_metadata(wanted)["namespace"] = home or default

    def _is_namespaced(self, view: View[Any]) -> bool:
        """Return whether an informer knows the kind as namespaced."""
        return any(each.info is not None and each.info.namespaced for each in self._client.informers.all(view.gvk))

    async def _cached(self, view: View[Any], key: NamespacedName) -> tuple[bool, Entry | None]:
        """Return whether the cache is authoritative for the object, and its entry."""
        await self._client.fresh(view, key)
        for informer in self._client.informers.all(view.gvk):
            if informer.has_synced and not informer.has_stopped and not informer.metadata_only:
                entry = informer.store.get(key)
                complete = (
                    informer.complete and informer.selector is None and informer.feed_of(key.namespace) is not None
                )
                if entry is not None or complete:
                    return True, entry
        return False, None

    async def _check_owner(
        self, wanted: AnyObject, owner: AnyObject, view: View[Any], *, known: bool, entry: Entry | None
    ) -> None:
        if known:
            if entry is None:
                return
            controller = entry.controller
        else:
            found = await self._client.live.get(MetadataOf(view), access.key(wanted), missing=None)
            if found is None:
                return
            controller = controller_of(found)
        if controller is None:
            raise ForeignObject(wanted, owner)
        if controller.uid != access.uid(owner):
            raise (StillOwned if is_earlier(controller, owner) else AlreadyOwned)(wanted, controller)

    def _is_applied(self, applied: _Applied | None, document: bytes, entry: Entry, wanted: AnyObject) -> bool:
        """Return whether the same object was applied before and all applied fields still have their values."""
        if applied is None or applied.document != document or applied.uid != entry.uid:
            return False
        fields = to_dict(wanted) if isinstance(wanted, Object) else wanted
        if applied.generation and applied.generation == entry.generation:
            metadata = fields.get("metadata") or {}
            fields = {"metadata": {name: metadata[name] for name in _METADATA if name in metadata}}
        return contains(entry.dict(), fields)

    def _remember(self, place: tuple[GroupVersionKind, NamespacedName], document: bytes, answer: AnyObject) -> None:
        self._applied[place] = _Applied(
            document, access.uid(answer), access.resource_version(answer), access.generation(answer)
        )
        self._applied.move_to_end(place)
        if len(self._applied) > _MAX_REMEMBERED:
            self._applied.popitem(last=False)
        elif len(self._applied) > self._sweep_at:
            self._forget_gone()

    def _forget_gone(self) -> None:
        """Remove the entries of objects that are not in a cache."""
        informers = self._client.informers
        for place in [*self._applied]:
            gvk, key = place
            if not any(key in informer.store for informer in informers.all(gvk)):
                del self._applied[place]
        self._sweep_at = max(_MIN_SWEEP, 2 * len(self._applied))


def is_earlier(reference: OwnerReference, owner: AnyObject) -> bool:
    """Return whether the reference is to another object of the same kind and name."""
    gvk, group = access.gvk(owner), reference.api_version.rpartition("/")[0]
    return (group, reference.kind, reference.name) == (gvk.group, gvk.kind, access.name(owner))


def _is_untouched(applied: _Applied | None, document: bytes, entry: Entry) -> bool:
    """Return whether the same object was applied before and the resourceVersion is unchanged."""
    return (
        applied is not None
        and applied.resource_version == entry.resource_version
        and applied.document == document
        and applied.uid == entry.uid
    )


def contains(actual: Any, wanted: Any) -> bool:
    """Return whether all wanted fields have their values. Lists are compared item by item and in length."""
    if isinstance(wanted, dict):
        if not isinstance(actual, dict):
            return False
        return all(name in actual and contains(actual[name], value) for name, value in wanted.items())
    if isinstance(wanted, list):
        if not isinstance(actual, list) or len(actual) != len(wanted):
            return False
        return all(contains(one, other) for one, other in zip(actual, wanted, strict=True))
    return bool(actual == wanted) and isinstance(actual, bool) == isinstance(wanted, bool)


def _digest(wanted: AnyObject) -> bytes:
    document = to_json(wanted) if isinstance(wanted, Object) else msgspec.json.encode(wanted)
    return blake2b(document, digest_size=16).digest()
