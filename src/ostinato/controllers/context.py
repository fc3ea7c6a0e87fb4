"""Context: the second argument of a reconciler, valid for one reconcile.

    @controller(Widget, owns=[Deployment])
    async def widgets(widget: Widget, ctx: Context) -> None:
        deployment = await ctx.apply(deployment_for(widget), owner=widget)
        await ctx.status(available_replicas=deployment.status.available_replicas or 0)

Its methods are shortcuts over `ctx.client`: they write with the controller's field manager, send nothing if nothing
changes, set owner references, and take times from the world's clock.

An object or name without a namespace is in the namespace of the reconciled object, also with `ctx.client` and
`ctx.client.live`. In the reconcile of a cluster-scoped object, namespaced kinds need a namespace: ValueError without.
`list` and `watch` default to all namespaces.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from logging import Logger
from typing import TYPE_CHECKING, Any, Final, TypeVar, Unpack, cast, overload

from ostinato.api import accessors as access
from ostinato.api.accessors import AnyObject
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
    from ostinato.controllers.objects.changes import Change, Changes
    from ostinato.controllers.runnable import Dependencies, EventOptions, Subject

A = TypeVar("A", bound=AnyObject)
T = TypeVar("T")
_MAX_EXPLANATIONS: Final = 5
_MAX_EXPLANATION: Final = 500  # characters


class Context:
    def __init__(
        self,
        reconcile: Reconcile,
        dependencies: Dependencies,
        applier: Applier,
        owned: Sequence[View[Any]],
        client: CachedClient | None = None,
        changes: Changes | None = None,
    ) -> None:
        """
        - `client`: the client of this reconcile. Defaults to that of the dependencies.
        - `changes`: those since the last successful reconcile. Defaults to None: not recorded.
        """
        self.reconcile = reconcile  # id, reasons and attempt of this run
        self.client: CachedClient = client or dependencies.client
        self.world: World = dependencies.world
        self.logger: Logger = dependencies.logger
        self.object: AnyObject | None = None  # the reconciled object; None if the reconciler takes requests
        self._dependencies = dependencies
        self._applier = applier
        self._changes = changes
        self._owned = owned  # kinds that the controller owns
        self.conditions_set: set[str] = set()  # types of conditions that the reconcile has set on its object
        self.object_writes: list[AnyObject] = []  # its object as the reconcile has written it
        self._latest = LatestWrites()
        self._statuses: StatusWriter | None = None

    def _detached(self) -> Context:
        """Return a context for work that continues after this reconcile."""
        return Context(self.reconcile, self._dependencies, self._applier, self._owned, self.client)

    @property
    def request(self) -> NamespacedName:
        """The key that is reconciled: namespace and name, or whatever a source enqueued."""
        return cast("NamespacedName", self.reconcile.request)

    @property
    def name(self) -> str:
        """Name of the controller, which is its field manager."""
        return self.reconcile.controller

    def explain(self, text: str) -> None:
        """Record why this run acts, where no change of an object says so: a timeout, a measurement, another system.

        For the live page, whose chain of causes then begins here. Call it only if the run acts for this reason.
        """
        if len(self.reconcile.explanations) < _MAX_EXPLANATIONS:
            self.reconcile.explanations.append(text[:_MAX_EXPLANATION])

    def now(self) -> Time:
        return Time.of(self.world.clock.now())

    async def sleep(self, seconds: float) -> None:
        """Sleep on the world's clock, which tests can advance."""
        await self.world.clock.sleep(seconds)

    @overload
    def changed(self, path: str, /, *, of: AnyObject | None = None) -> Change[Any]: ...
    @overload
    def changed(self, path: str, as_type: type[T], /, *, of: AnyObject | None = None) -> Change[T]: ...
    def changed(self, path: str, as_type: Any = None, /, *, of: AnyObject | None = None) -> Change[Any]:
        """Compare a field with the last successful reconcile: `if size := ctx.changed("spec.size", int):`.

        - `as_type`: the type of `old` and `new`. Defaults to values as in JSON.
        - `of`: the object, in a reconciler that takes requests. Defaults to the reconciled one.
        - Without a record of an earlier reconcile, everything has changed; see `changes`.
        """
        instance = self.object if of is None else of
        if self._changes is None:
            raise TypeError("ctx.changed() is for reconciles; a daemon has none to compare with")
        if instance is None:
            raise TypeError("ctx.changed() needs the object in a reconciler that takes requests; pass of=widget")
        if of is not None and access.key(of) != self.request:
            raise ValueError(f"ctx.changed() of {access.describe(of)}, but {self.request} is reconciled")
        return self._changes.of(path, as_type, instance)

    async def apply(self, instance: A, *, owner: AnyObject | None = None, force: bool = True, adopt: bool = False) -> A:
        """Apply an object (server-side apply) and return it as the server has it.

        - `owner`: controller owner of the object; the object is in its namespace and is deleted with it. Defaults to
          None: without a namespace of its own, the object is in that of the reconciled one.
        - `force`: take over fields of other field managers. Defaults to True.
        - `adopt`: take over an existing object that has no controller owner. Defaults to False: `ForeignObject`.
        - No request is sent if the same object was applied before and its applied fields have not changed since.
        """
        return await self._applier.apply(instance, owner=owner, force=force, adopt=adopt, client=self.client)

    async def apply_set(
        self, instances: Iterable[A], *, owner: AnyObject, kinds: Iterable[AnyKind] = (), force: bool = True
    ) -> list[A]:
        """Apply these objects in order, and delete the other objects of the owner.

        `kinds`: kinds to delete from, in addition to those that the controller owns.
        """
        if isinstance(instances, Object | dict):
            raise TypeError(
                f"apply_set() {summarize(instances)} is not a list of objects; use [object], or ctx.apply()"
            )
        applied = [await self.apply(each, owner=owner, force=force) for each in instances]
        await self.prune(owner, keep=applied, kinds=kinds)
        return applied

    async def prune(self, owner: AnyObject, *, keep: Iterable[AnyObject] = (), kinds: Iterable[AnyKind] = ()) -> None:
        """Delete the objects of the owner that are not in `keep`, of the owned kinds and of `kinds`."""
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
        """Set fields and conditions of the status, and return the object as the server has it.

        - `of`: the object. Defaults to the reconciled one.
        - No request is sent if nothing changes.
        """
        instance = self.object if of is None else of
        if instance is None:
            raise TypeError(
                "ctx.status() needs the object in a reconciler that takes requests; use ctx.status(widget, …)"
            )
        if of is not None and not isinstance(of, Object) and not (isinstance(of, dict) and "kind" in of):
            raise TypeError(f"ctx.status() {of!r} is not an object; pass status fields by name, ctx.status(ready=3)")
        conditions = tuple(conditions)
        about = (access.gvk(instance), access.key(instance))
        if instance is self.object or about == (self.reconcile.gvk, self.request):
            self.conditions_set.update(each.type for each in conditions if isinstance(each, Condition))
        if self._statuses is None:
            self._statuses = StatusWriter(self.client, self.name, self._latest)
        return await self._statuses.write(instance, fields, conditions)

    def finalizer(self, instance: AnyObject, name: str) -> AbstractAsyncContextManager[bool]:
        """`async with ctx.finalizer(widget, "example.dev/cleanup") as deleting:`; see `finalizing`."""
        return finalizer(self.client, instance, name, self.name, self._latest)

    async def adopt(self, instance: A, owner: AnyObject) -> A:
        """Set the controller owner of an object; `AlreadyOwned` if it has another one."""
        return await adopting.adopt(self.client, instance, owner, self.name)

    async def release(self, instance: A, owner: AnyObject) -> A:
        """Remove the owner reference from an object."""
        return await adopting.release(self.client, instance, owner, self.name)

    def event(self, regarding: Subject, reason: str, note: str, /, **options: Unpack[EventOptions]) -> None:
        """Record an Event about an object. Never blocks, never raises."""
        self._dependencies.recorder.event(regarding, reason, note, **options)
