"""Reconciler that maintains one object in every namespace."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from ostinato.api.errors import NAMESPACE_TERMINATING, AlreadyExists, Forbidden, NotFound
from ostinato.api.gvk import NamespacedName
from ostinato.api.object import Object
from ostinato.cache import Added, Event, InformerSettings
from ostinato.controllers import Context, ForEvent, Request
from ostinato.kinds.core_v1 import Namespace
from ostinato.manager import Manager

O = TypeVar("O", bound=Object)  # noqa: E741


class PerNamespaceObject(Generic[O]):
    """Creates the object where it is missing, corrects changes, and recreates it after deletion.

    - `wanted`: returns the object without namespace.
    - `correct`: corrects an existing object; returns whether it changed it.
    """

    def __init__(self, wanted: Callable[[], O], correct: Callable[[O], bool]) -> None:
        self._wanted = wanted
        self._correct = correct
        self._kind: type[O] = type(wanted())
        self._name = wanted().metadata.name

    def add_to(self, manager: Manager, name: str) -> None:
        """Add the controller; the informer is restricted to objects of this name."""
        by_name = InformerSettings(fields={"metadata.name": self._name})
        (
            manager.build(name)
            .watch_for(Namespace, predicates=[_is_active])
            .watches(self._kind, handler=ForEvent(_namespace_of), predicates=[_is_update_or_delete], settings=by_name)
            .complete(self)
        )

    async def reconcile(self, request: Request, ctx: Context) -> None:
        namespace = await ctx.client.get(Namespace, request, missing=None)
        if namespace is None or namespace.metadata.deletion_timestamp is not None:
            return
        found = await ctx.client.get(self._kind, NamespacedName(request.name, self._name), missing=None)
        if found is not None:
            if self._correct(found):
                await ctx.client.update(found)
            return
        wanted = self._wanted()
        wanted.metadata.namespace = request.name
        try:
            await ctx.client.create(wanted)
        except (AlreadyExists, NotFound):
            return  # created concurrently, or the namespace was deleted
        except Forbidden as error:
            if not error.has_cause(NAMESPACE_TERMINATING):
                raise


def _is_active(event: Event) -> bool:
    return not event.object.is_being_deleted


def _is_update_or_delete(event: Event) -> bool:
    """Skip additions: the object was created here, or is found when its namespace is reconciled."""
    return not isinstance(event, Added)


def _namespace_of(event: Event) -> Iterable[NamespacedName]:
    return (NamespacedName("", event.key.namespace),)
