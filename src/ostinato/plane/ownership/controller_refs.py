"""Controller references: claims objects by selector, like the ControllerRefManager of Kubernetes.

- An object that the owner controls and selects is claimed. If it no longer matches, it is released.
- A matching orphan is adopted, unless it or the owner is being deleted.
- Objects of other controllers are ignored.

Before the first adoption the owner is read from the server: a deleted or recreated owner adopts nothing. All patches
have the uid as precondition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Generic, TypeVar

from ostinato.api.codec import to_dict
from ostinato.api.errors import Invalid, NotFound
from ostinato.api.object import Object
from ostinato.api.owners import controller_of, controller_reference_to
from ostinato.api.selectors.labels import Selector
from ostinato.cache import CachedClient, Entry, by
from ostinato.cache.informers import AnyKind
from ostinato.cache.lookup import ListQuery
from ostinato.client.patching import StrategicMergePatch
from ostinato.client.views import Kind, MetadataOf, view_of
from ostinato.manager import Manager

O = TypeVar("O", bound=Object)  # noqa: E741


def _controller_uid(entry: Entry) -> str:
    reference = entry.controller if entry.owner_uids else None
    return orphans_in(entry.key.namespace) if reference is None else reference.uid


BY_CONTROLLER = by("controller", _controller_uid)
"""Index: by uid of the controller, or `orphans_in(namespace)` for orphans."""


def orphans_in(namespace: str) -> str:
    """Return the index value of objects without a controller."""
    return f"orphans in {namespace}"


class ControllerRefManager(Generic[O]):
    """Claims objects of one kind for one owner. The informer of the kind needs the index `BY_CONTROLLER`."""

    def __init__(
        self,
        client: CachedClient,
        owner: Object,
        selector: Selector,
        kind: type[O],
        only: Callable[[O], bool] | None = None,
        finalizers: Sequence[str] = (),
    ) -> None:
        """
        - `only`: additional predicate on objects. Defaults to None: labels only.
        - `finalizers`: added on adoption and removed on release. Defaults to none.
        """
        self._client = client
        self._owner = owner
        self._selector = selector
        self._kind = kind
        self._only = only
        self._finalizers = finalizers
        self._adoption_allowed: bool | None = None  # None before the live read

    async def claim(self) -> list[O]:
        """Adopt and release; return the claimed objects. The first error is raised after all objects were processed."""
        own = await self._client.list(self._kind, index=(BY_CONTROLLER.name, self._owner.metadata.uid))
        orphans = await self._client.list(
            self._kind, index=(BY_CONTROLLER.name, orphans_in(self._owner.metadata.namespace))
        )
        return await self.claim_from([*own, *orphans])

    async def claim_from(self, candidates: Sequence[O]) -> list[O]:
        """Claim from given objects; see `claim`."""
        claimed: list[O] = []
        errors: list[Exception] = []
        for each in candidates:
            try:
                if await self._claim_one(each):
                    claimed.append(each)
            except Exception as error:  # noqa: BLE001 - the others first
                errors.append(error)
        if errors:
            raise errors[0]
        return claimed

    async def _claim_one(self, candidate: O) -> bool:
        reference = controller_of(candidate)
        selected = self._selector.matches(candidate.metadata.labels) and (self._only is None or self._only(candidate))
        if reference is not None:
            if reference.uid != self._owner.metadata.uid:
                return False
            if selected:
                return True
            if self._owner.metadata.deletion_timestamp is None:
                await self._release(candidate)
            return False
        if not selected or self._is_terminating(candidate):
            return False
        return await self._adopt(candidate)

    def _is_terminating(self, candidate: O) -> bool:
        return self._owner.metadata.deletion_timestamp is not None or candidate.metadata.deletion_timestamp is not None

    async def _adopt(self, candidate: O) -> bool:
        if not await self._can_adopt():
            return False
        reference = to_dict(controller_reference_to(self._owner))
        change: dict[str, Any] = {"ownerReferences": [reference], "uid": candidate.metadata.uid}
        if self._finalizers:
            change["finalizers"] = list(self._finalizers)
        try:
            await self._client.patch(self._kind, candidate.metadata, StrategicMergePatch({"metadata": change}))
        except NotFound:
            return False
        candidate.metadata.finalizers = list(dict.fromkeys([*candidate.metadata.finalizers, *self._finalizers]))
        candidate.metadata.owner_references = [
            *candidate.metadata.owner_references,
            controller_reference_to(self._owner),
        ]
        return True

    async def _release(self, candidate: O) -> None:
        gone = {"$patch": "delete", "uid": self._owner.metadata.uid}
        change: dict[str, Any] = {"ownerReferences": [gone], "uid": candidate.metadata.uid}
        if self._finalizers:
            change["$deleteFromPrimitiveList/finalizers"] = list(self._finalizers)
        try:
            await self._client.patch(self._kind, candidate.metadata, StrategicMergePatch({"metadata": change}))
        except (NotFound, Invalid):
            return  # deleted or recreated

    async def _can_adopt(self) -> bool:
        if self._adoption_allowed is None:
            found = await self._client.live.get(MetadataOf(type(self._owner)), self._owner.metadata, missing=None)
            self._adoption_allowed = (
                found is not None
                and found.metadata.uid == self._owner.metadata.uid
                and found.metadata.deletion_timestamp is None
            )
        return self._adoption_allowed


async def controlled_by(client: CachedClient, kind: Kind[Any], manager: str) -> list[Entry]:
    """Return the undecoded objects of a controller's uid, or of `orphans_in(namespace)`.

    Reads the cache without waiting for freshness: a reconcile starts after its own writes are cached.
    """
    found = await client.found(view_of(kind), ListQuery(index=(BY_CONTROLLER.name, manager), fresh=False))
    assert found is not None, "a kind with an index has an informer"
    return found.entries


async def claim_entries(
    client: CachedClient, owner: Object, selector: Selector, kind: type[O], only: Callable[[Entry], bool] | None = None
) -> list[Entry]:
    """Claim like `ControllerRefManager.claim`, and return undecoded entries; only adopted and released objects are
    decoded.
    """
    own: list[Entry] = []
    others: list[Entry] = []

    def selects(entry: Entry) -> bool:
        return selector.matches(entry.labels) and (only is None or only(entry))

    for entry in await controlled_by(client, kind, owner.metadata.uid):
        (own if selects(entry) else others).append(entry)
    orphans = await controlled_by(client, kind, orphans_in(owner.metadata.namespace))
    others += [entry for entry in orphans if not entry.is_being_deleted and selects(entry)]
    if not others:
        return own
    keys = {entry.uid: entry for entry in others}
    claims = ControllerRefManager(
        client, owner, selector, kind, lambda each: only is None or only(keys[each.metadata.uid])
    )
    return [
        *own,
        *(keys[each.metadata.uid] for each in await claims.claim_from([entry.read(kind) for entry in others])),
    ]


def add_controller_index(manager: Manager, kind: AnyKind) -> None:
    """Add the index `BY_CONTROLLER` to the informer of a kind."""
    with suppress(ValueError):  # already added
        manager.informers.of(kind).add_index(BY_CONTROLLER)
