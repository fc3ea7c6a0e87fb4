"""Blocking context: the second argument of a reconciler that is a plain function."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from contextlib import AbstractContextManager
from functools import cached_property
from logging import Logger
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from ostinato.api.accessors import AnyObject
from ostinato.api.gvk import NamespacedName
from ostinato.api.meta import Condition
from ostinato.api.time import Time
from ostinato.cache.informers import AnyKind
from ostinato.controllers.blocking.calls import BlockingCalls, ThreadCall, unknown_attribute
from ostinato.controllers.blocking.client import BlockingClient
from ostinato.controllers.context import Context
from ostinato.controllers.current import Reconcile
from ostinato.world import World

if TYPE_CHECKING:
    from ostinato.controllers.objects.changes import Change
    from ostinato.controllers.runnable import EventOptions, Subject

A = TypeVar("A", bound=AnyObject)
T = TypeVar("T")


class BlockingContext:
    """The context of one reconcile; its methods are those of `Context`, and block the thread."""

    def __init__(self, context: Context, call: ThreadCall) -> None:
        """`call`: the call of the function that has this context."""
        self._context = context
        self._call = call
        self._calls = BlockingCalls(context.world.executor, call.check)

    if not TYPE_CHECKING:  # type checkers report it themselves

        def __getattr__(self, name: str) -> Any:
            advice = [f"use ctx.asynchronous.{name};"] if hasattr(self.__dict__.get("_context"), name) else []
            unknown_attribute(self, "the context of a plain def", name, advice)

    def __repr__(self) -> str:
        return f"<blocking context of {self.name} for {self.request}>"

    @property
    def asynchronous(self) -> Context:
        """The context of `async def` reconcilers; call its methods with `wait`."""
        return self._context

    @cached_property
    def client(self) -> BlockingClient:
        """Reads watched kinds from the cache, including its own writes; writes go to the server."""
        return BlockingClient(self._context.client, self._calls)

    @property
    def reconcile(self) -> Reconcile:
        """Id, reasons and attempt of this run."""
        return self._context.reconcile

    @property
    def request(self) -> NamespacedName:
        """The key that is reconciled: namespace and name, or whatever a source enqueued."""
        return self._context.request

    @property
    def name(self) -> str:
        """Name of the controller, which is its field manager."""
        return self._context.name

    @property
    def object(self) -> AnyObject | None:
        """The reconciled object; None if the reconciler takes requests."""
        return self._context.object

    @property
    def logger(self) -> Logger:
        """Logger whose records have the fields of the reconcile."""
        return self._context.logger

    @property
    def world(self) -> World:
        """Clock, randomness, ids and threads. Its coroutines are called with `wait`."""
        return self._context.world

    def explain(self, text: str) -> None:
        """As `Context.explain`: record why this run acts, where no change of an object says so."""
        self._context.explain(text)

    def now(self) -> Time:
        """The time of the world's clock."""
        return self._context.now()

    @property
    def stopped(self) -> bool:
        """Whether the function must return: its timeout has passed, or its daemon is stopped."""
        return self._call.over

    def sleep(self, seconds: float) -> None:
        """Sleep on the world's clock. Ends when the function must return, and raises then."""
        self._calls.wait(self._call.sleep(self.world.clock, seconds))

    def wait(self, awaitable: Awaitable[T]) -> T:
        """Await on the event loop, and return the result: `ctx.wait(ctx.world.clock.sleep(3))`."""
        return self._calls.wait(awaitable)

    @overload
    def changed(self, path: str, /, *, of: AnyObject | None = None) -> Change[Any]: ...
    @overload
    def changed(self, path: str, as_type: type[T], /, *, of: AnyObject | None = None) -> Change[T]: ...
    def changed(self, path: str, as_type: Any = None, /, *, of: AnyObject | None = None) -> Change[Any]:
        """Compare a field with the last successful reconcile; see `Context.changed`."""
        self._calls.check()
        return self._context.changed(path, as_type, of=of)

    def apply(self, instance: A, *, owner: AnyObject | None = None, force: bool = True, adopt: bool = False) -> A:
        """Apply an object (server-side apply) and return it as the server has it; see `Context.apply`."""
        return self._calls.wait(self._context.apply(instance, owner=owner, force=force, adopt=adopt))

    def apply_set(
        self, instances: Iterable[A], *, owner: AnyObject, kinds: Iterable[AnyKind] = (), force: bool = True
    ) -> list[A]:
        """Apply these objects in order, and delete the other objects of the owner; see `Context.apply_set`."""
        return self._calls.wait(self._context.apply_set(instances, owner=owner, kinds=kinds, force=force))

    def prune(self, owner: AnyObject, *, keep: Iterable[AnyObject] = (), kinds: Iterable[AnyKind] = ()) -> None:
        """Delete the objects of the owner that are not in `keep`, of the owned kinds and of `kinds`."""
        self._calls.wait(self._context.prune(owner, keep=keep, kinds=kinds))

    def status(
        self, of: AnyObject | None = None, /, *, conditions: Iterable[Condition] = (), **fields: Any
    ) -> AnyObject:
        """Set fields and conditions of the status, and return the object as the server has it; see `Context.status`."""
        return self._calls.wait(self._context.status(of, conditions=conditions, **fields))

    def finalizer(self, instance: AnyObject, name: str) -> AbstractContextManager[bool]:
        """`with ctx.finalizer(widget, "example.dev/cleanup") as deleting:`; see `finalizing`."""
        return self._calls.entering(self._context.finalizer(instance, name))

    def adopt(self, instance: A, owner: AnyObject) -> A:
        """Set the controller owner of an object; `AlreadyOwned` if it has another one."""
        return self._calls.wait(self._context.adopt(instance, owner))

    def release(self, instance: A, owner: AnyObject) -> A:
        """Remove the owner reference from an object."""
        return self._calls.wait(self._context.release(instance, owner))

    def event(self, regarding: Subject, reason: str, note: str, /, **options: Unpack[EventOptions]) -> None:
        """Record an Event about an object. Never blocks."""
        self._calls.check()
        self._context.event(regarding, reason, note, **options)
