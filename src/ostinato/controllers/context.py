"""Context: what a reconciler is given besides the object, for one run.

    @controller(Widget, owns=[Deployment])
    async def widgets(widget: Widget, ctx: Context) -> None:
        deployment = await ctx.apply(deployment_for(widget), owner=widget)
        await ctx.status(available_replicas=deployment.status.available_replicas or 0)

Everything in it can be done with `ctx.client` as well. What it adds: writes in the name of the controller, only where
something changes; references to owners; times from the world's clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from logging import Logger
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, cast

from ostinato.api.access import AnyObject
from ostinato.api.gvk import NamespacedName
from ostinato.api.meta import Condition
from ostinato.api.object import Object
from ostinato.api.time import Time
from ostinato.cache.client import CachedClient
from ostinato.cache.informers import AnyKind
from ostinato.cache.own_writes.latest_writes import LatestWrites
from ostinato.client.arguments import summarize
from ostinato.client.views import View, view_of
from ostinato.controllers.current import Reconcile
from ostinato.controllers.objects import adopting
from ostinato.controllers.objects.finalizing import finalizer
from ostinato.controllers.objects.status import StatusWriter
from ostinato.world import World

if TYPE_CHECKING:
    from ostinato.controllers.objects.applying import Applier
    from ostinato.controllers.runnable import EventOptions, Subject, Surroundings

A = TypeVar("A", bound=AnyObject)


class Context:
    def __init__(
        self, reconcile: Reconcile, surroundings: Surroundings, applier: Applier, owned: Sequence[View[Any]]
    ) -> None:
        self.reconcile = reconcile  # its id, why it runs, how often it was tried
        self.client: CachedClient = surroundings.client
        self.world: World = surroundings.world
        self.logger: Logger = surroundings.logger
        self.object: AnyObject | None = None  # that the reconcile is about; None if the reconciler takes requests
        self._surroundings = surroundings
        self._applier = applier
        self._owned = owned  # kinds whose objects the controller manages
        self._latest = LatestWrites()
        self._statuses: StatusWriter | None = None

    @property
    def request(self) -> NamespacedName:
        """Which object the reconcile is about; whatever was put in, in a controller that has no kind."""
        return cast("NamespacedName", self.reconcile.request)

    @property
    def name(self) -> str:
        """Of the controller, in whose name it writes."""
        return self.reconcile.controller

    def now(self) -> Time:
        return Time.of(self.world.clock.now())

    async def apply(self, instance: A, *, owner: AnyObject | None = None, force: bool = True, adopt: bool = False) -> A:
        """Have an object as it is given: made if there is none, changed where it differs. The object as it is then.

        - `owner`: manages the object, which goes when it goes, and is in its namespace. Defaults to none.
        - `force`: take fields that others have set. Defaults to True: a controller knows what it wants.
        - `adopt`: take an object that exists and that the owner does not manage. Defaults to `ForeignObject`.

        Nothing is sent if the same was applied before and nothing of it has changed since.
        """
        return await self._applier.apply(instance, owner=owner, force=force, adopt=adopt)

    async def apply_set(
        self, instances: Iterable[A], *, owner: AnyObject, kinds: Iterable[AnyKind] = (), force: bool = True
    ) -> list[A]:
        """Have just these objects: apply them, in order, and delete the others that the owner manages.

        `kinds` are those of which others are looked for, besides those that the controller owns.
        """
        if isinstance(instances, Object | dict):
            raise TypeError(
                f"apply_set: {summarize(instances)} is no list of objects; put it into one, or apply it alone"
            )
        applied = [await self.apply(each, owner=owner, force=force) for each in instances]
        await self.prune(owner, keep=applied, kinds=kinds)
        return applied

    async def prune(self, owner: AnyObject, *, keep: Iterable[AnyObject] = (), kinds: Iterable[AnyKind] = ()) -> None:
        """Delete what the owner manages, of the kinds that the controller owns and of these, but for what to keep."""
        views = {view.gvk: view for view in (*self._owned, *(view_of(kind) for kind in kinds))}
        await self._applier.prune(owner, keep, views.values())

    async def status(
        self,
        of: AnyObject | None = None,
        /,
        *,
        conditions: Iterable[Condition] = (),
        **fields: Any,
    ) -> AnyObject:
        """Say something of the object in its status, if that is something else than before. The object as it is then.

        `of` is the object. Defaults to the one that the reconciler was given.
        """
        instance = self.object if of is None else of
        if instance is None:
            raise TypeError("this reconciler takes requests: say whose status it is, ctx.status(widget, …)")
        if of is not None and not isinstance(of, Object) and not (isinstance(of, dict) and "kind" in of):
            raise TypeError(f"{of!r} is no object: fields of the status are given by name, ctx.status(ready=3)")
        if self._statuses is None:
            self._statuses = StatusWriter(self.client, self.name, self._latest)
        return await self._statuses.write(instance, fields, conditions)

    def finalizer(self, instance: AnyObject, name: str) -> AbstractAsyncContextManager[bool]:
        """`async with ctx.finalizer(widget, "example.dev/cleanup") as deleting:`; see `finalizing`."""
        return finalizer(self.client, instance, name, self.name, self._latest)

    async def adopt(self, instance: A, owner: AnyObject) -> A:
        """Make the owner the one that manages the object; `AlreadyOwned` if another one does."""
        return await adopting.adopt(self.client, instance, owner, self.name)

    async def release(self, instance: A, owner: AnyObject) -> A:
        """The owner no longer manages the object."""
        return await adopting.release(self.client, instance, owner, self.name)

    def event(self, regarding: Subject, reason: str, note: str, /, **options: Unpack[EventOptions]) -> None:
        """Tell people what happened to an object. Never waits, never fails."""
        self._surroundings.recorder.event(regarding, reason, note, **options)
