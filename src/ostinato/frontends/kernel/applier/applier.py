"""Set applier: makes the objects of an owner those of a list.

    applier = SetApplier(client, "charts")
    kinds = AnnotatedKinds(client, "charts")
    outcome = await applier.apply(release, rendered, kinds=kinds)
    outcome.raise_errors()

- Objects are applied by server-side apply, in install order; without a request if they are up to date.
- Objects that belong to others are not touched (`ForeignObject`, `AlreadyOwned`).
- Objects of the owner that are not in the list are deleted, in the reverse order, unless an object failed.
- The process may die between any two requests: kinds are recorded and the finalizer is added before the first object is
  created, and an object is created with the marks that say whose it is. The next call finds and completes everything.
- Existing objects are updated as their strategy says; see `strategies`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from ostinato.api import accessors as access
from ostinato.api.accessors import AnyObject
from ostinato.api.errors import APIError
from ostinato.api.gvk import GroupKind, GroupVersionKind
from ostinato.api.owners import OwnerError
from ostinato.cache.client import CachedClient
from ostinato.controllers.objects.applying import Applier
from ostinato.controllers.objects.readiness import Readiness
from ostinato.frontends.kernel.applier.comparison import Comparison
from ostinato.frontends.kernel.applier.desired import DesiredObjects, Item, Strategies
from ostinato.frontends.kernel.applier.diff import diff_text, same
from ostinato.frontends.kernel.applier.kinds import Kinds
from ostinato.frontends.kernel.applier.members import Members
from ostinato.frontends.kernel.applier.order import rank_of, uninstall_order
from ostinato.frontends.kernel.applier.outcome import Action, ApplyError, Change, Held, Outcome
from ostinato.frontends.kernel.applier.refs import ObjectRef
from ostinato.frontends.kernel.applier.strategies import IN_PLACE, Strategy, next_in_roll
from ostinato.frontends.kernel.applier.tracking import is_reachable
from ostinato.frontends.kernel.parents import write_metadata
from ostinato.frontends.kernel.sync import Json, Objects

_MISSING: Final = Readiness("InProgress", "it does not exist yet")


class SetApplier:
    def __init__(
        self,
        client: CachedClient,
        field_manager: str,
        *,
        finalizer: str = "",
        shared_owner: bool = False,
        force: bool = True,
    ) -> None:
        """
        - `finalizer`: added to an owner before it gets objects that the garbage collector would not delete with it; its
          controller then calls `finalize`. Defaults to "": such objects are an error.
        - `shared_owner`: other controllers may apply sets for the same owners. Defaults to False.
        - `force`: take over fields of other field managers. Defaults to True.
        """
        self._client = client
        self._manager = field_manager
        self._finalizer = finalizer
        controller = field_manager if shared_owner else ""
        self._force = force
        self._applier = Applier(client, field_manager)
        self._comparison = Comparison(client, self._applier, field_manager, force=force)
        self._members = Members(client, controller)
        self._desired = DesiredObjects(client, self._applier, controller=controller, has_finalizer=bool(finalizer))

    async def apply(
        self,
        owner: AnyObject,
        desired: Sequence[AnyObject],
        *,
        kinds: Kinds,
        strategies: Mapping[GroupKind, Strategy] | None = None,
        default: Strategy = IN_PLACE,
        prune: bool = True,
        adopt: bool = False,
        dry_run: bool = False,
        order: bool = True,
    ) -> Outcome:
        """Apply the desired objects, and delete the other objects of the owner.

        - `kinds`: the record of the kinds of the set.
        - `strategies`: how existing objects are updated, by kind. Default to `default`.
        - `prune`: delete the other objects. Defaults to True.
        - `adopt`: take over existing objects without a controller. Defaults to False: `ForeignObject`.
        - `dry_run`: change nothing; the outcome has what would be done, with diffs. Defaults to False.
        - `order`: sort by kind, as Helm does. Defaults to True; else in the given order.
        - Errors of single objects are in the outcome. Others, such as a lost connection, are raised.
        """
        outcome = Outcome()
        chosen = Strategies(strategies or {}, default)
        items = await self._desired.items(owner, desired, chosen, outcome, adopt=adopt)
        if order:
            items.sort(key=lambda each: rank_of(each.wanted))
        known = kinds.known(owner)
        used = frozenset(each.ref.gvk for each in items)
        if not dry_run:
            await self._prepare(owner, items, kinds, known | used)
        held_back = await self._rolling(owner, items, outcome)
        for item in items:
            try:
                await self._sync(owner, item, outcome, dry_run=dry_run, message=held_back.get(item.ref))
            except (APIError, OwnerError, ValueError) as error:
                outcome.errors.append(ApplyError(item.ref, error))
        if prune and not outcome.errors:
            left = await self._prune(owner, items, known | used, outcome, dry_run=dry_run)
            if not dry_run:
                await kinds.record(owner, used | left)
        return outcome

    async def diff(self, owner: AnyObject, desired: Sequence[AnyObject], *, kinds: Kinds, **options: Any) -> str:
        """Return what `apply` would change, as a unified diff. `options`: as for `apply`."""
        outcome = await self.apply(owner, desired, kinds=kinds, dry_run=True, **options)
        outcome.raise_errors()
        return outcome.diff

    async def members(self, owner: AnyObject, kinds: Iterable[GroupVersionKind]) -> Objects:
        """Return the objects of the owner, of each of these kinds."""
        return await self._members.objects(owner, kinds)

    async def prune(
        self, owner: AnyObject, *, kinds: Kinds, keep: Iterable[AnyObject] = (), wait: bool = False
    ) -> list[ObjectRef]:
        """Delete the objects of the owner except those in `keep`, and return those that still exist.

        - `wait`: delete objects of one kind only when those before are gone. Call it again until the list is empty.
          Defaults to False: delete all.
        """
        kept = {ObjectRef.of(each) for each in keep}
        found = [each for each in await self._members.all(owner, kinds.known(owner)) if ObjectRef.of(each) not in kept]
        ordered = uninstall_order(found)
        left: list[ObjectRef] = []
        for each in ordered:
            if wait and left and rank_of(each) != rank_of(ordered[0]):
                left.append(ObjectRef.of(each))
                continue
            if not access.is_being_deleted(each):
                await self._client.delete(each, propagation="Background", missing_ok=True)
            left.append(ObjectRef.of(each))
        return left

    async def finalize(
        self, owner: AnyObject, *, kinds: Kinds, wait: bool = False, reachable: bool = True
    ) -> list[ObjectRef]:
        """Delete all objects of the owner, then remove the finalizer; return the objects that still exist.

        - `wait`: as for `prune`.
        - `reachable`: delete the objects that have an owner reference too. Defaults to True; else they are left to the
          garbage collector.
        - The deleted objects cause events; call it again then, until the list is empty.
        """
        members = await self._members.all(owner, kinds.known(owner))
        keep = [] if reachable else [each for each in members if is_reachable(owner, each)]
        left = await self.prune(owner, kinds=kinds, keep=keep, wait=wait)
        if left:
            kept = {ObjectRef.of(each) for each in keep}
            found = map(ObjectRef.of, await self._members.all(owner, kinds.known(owner)))
            left = [each for each in found if each not in kept]
        if not left and self._finalizer and access.has_finalizer(owner, self._finalizer):
            others = [each for each in access.finalizers(owner) if each != self._finalizer]
            await write_metadata(self._client, owner, {"finalizers": others or None}, self._manager)
        return left

    # Before the first write

    async def _prepare(
        self, owner: AnyObject, items: Sequence[Item], kinds: Kinds, used: frozenset[GroupVersionKind]
    ) -> None:
        """Record on the owner what the next process needs to find the objects. Before the first of them exists."""
        unreachable = any(not is_reachable(owner, each.wanted) for each in items)
        if unreachable and not access.has_finalizer(owner, self._finalizer):
            if access.is_being_deleted(owner):
                raise OwnerError(f"{access.describe(owner)} is being deleted; nothing is created for it")
            finalizers = [*access.finalizers(owner), self._finalizer]
            await write_metadata(self._client, owner, {"finalizers": finalizers}, self._manager)
        await kinds.record(owner, used)

    async def _rolling(self, owner: AnyObject, items: Sequence[Item], outcome: Outcome) -> dict[ObjectRef, str]:
        """Return the objects whose rolling update has to wait, and for what."""
        rolling = {each.ref: each for each in items if each.strategy.is_rolling}
        existing = {ref: item.live for ref, item in rolling.items() if item.live is not None}
        outdated = {ref for ref in existing if await self._comparison.differs(owner, rolling[ref])}
        if not outdated:
            return {}
        step = next_in_roll(
            rolling,
            lambda ref: ref not in outdated,
            lambda ref: rolling[ref].strategy.ready(existing[ref]) if ref in existing else _MISSING,
        )
        if step.waiting in existing:
            outcome.held.append(Held(step.waiting, step.message))
        cause = f"{step.next}" if step.waiting is None else f"{step.waiting}: {step.message}"
        message = f"its update waits for {cause}"
        return {ref: message for ref in outdated if ref != step.next}

    # One object

    async def _sync(
        self, owner: AnyObject, item: Item, outcome: Outcome, *, dry_run: bool, message: str | None
    ) -> None:
        ref, live, strategy = item.ref, item.live, item.strategy
        if live is not None and access.is_being_deleted(live):
            outcome.held.append(Held(ref, "being deleted; created again when it is gone"))
        elif message is not None:
            outcome.held.append(Held(ref, message))
        elif live is not None and strategy.method == "OnDelete":
            outcome.applied.append(live)
            outcome.changes.append(Change(ref, "none"))
            return
        elif dry_run:
            outcome.changes.append(await self._comparison.planned(item))
            return
        elif live is not None and strategy.recreates and await self._comparison.differs(owner, item):
            await self._client.delete(live, propagation="Background", missing_ok=True)
            outcome.held.append(Held(ref, "deleted; created again when it is gone"))
            outcome.changes.append(Change(ref, "recreate"))
            return
        else:
            answer = await self._apply(owner, item)
            outcome.applied.append(answer)
            outcome.changes.append(Change(ref, _action(live, answer)))
            return
        if live is not None:
            outcome.applied.append(live)
            outcome.changes.append(Change(ref, "none"))

    async def _apply(self, owner: AnyObject, item: Item) -> Json:
        reachable = is_reachable(owner, item.wanted)
        return await self._applier.apply(item.wanted, owner=owner if reachable else None, force=self._force, adopt=True)

    # Deletion

    async def _prune(
        self,
        owner: AnyObject,
        items: Sequence[Item],
        kinds: frozenset[GroupVersionKind],
        outcome: Outcome,
        *,
        dry_run: bool,
    ) -> frozenset[GroupVersionKind]:
        """Delete what is not desired, and return the kinds of which objects are being deleted."""
        desired = {(each.ref.gvk.group_kind, each.ref.key) for each in items}
        found = await self._members.all(owner, kinds)
        unwanted = [each for each in found if (access.gvk(each).group_kind, access.key(each)) not in desired]
        for each in uninstall_order(unwanted):
            ref = ObjectRef.of(each)
            if not access.is_being_deleted(each):
                outcome.changes.append(Change(ref, "delete", diff_text(ref, each, None) if dry_run else ""))
                if not dry_run:
                    await self._client.delete(each, propagation="Background", missing_ok=True)
            if not dry_run:
                outcome.held.append(Held(ref, "being deleted"))
        return frozenset(access.gvk(each) for each in unwanted)


def _action(live: Json | None, answer: Json) -> Action:
    if live is None:
        return "create"
    return (
        "none" if access.resource_version(live) == access.resource_version(answer) or same(live, answer) else "update"
    )
