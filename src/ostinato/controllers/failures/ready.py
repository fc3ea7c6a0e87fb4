"""The Ready condition of an object whose reconcile fails: Ready=False with the error, removed after a success.

- Only for custom resources whose status has conditions. The conditions of built-in kinds have owners of their own.
- A Ready condition is replaced if this controller set it here, or if its field managers own the conditions and it is
  not False already. One that the reconcile itself has set is never replaced.
- Only a condition that was set here is removed. Its message begins with the name of the controller.
- The object is read from the server, and the write is conditional on its resourceVersion. A failure is not retried.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

import msgspec

from ostinato.api import accessors as access
from ostinato.api.conditions import conditions_of, find_condition, set_condition
from ostinato.api.errors import Conflict
from ostinato.api.gvk import NamespacedName
from ostinato.api.meta import Condition
from ostinato.api.object import Object, origin
from ostinato.cache.informers import Informers
from ostinato.cache.store.entry import Entry
from ostinato.client.patching import MergePatch
from ostinato.client.views import MetadataOf, Typed, Unstructured, View
from ostinato.controllers.context import Context
from ostinato.controllers.objects.status import has_conditions
from ostinato.kinds.builtin import builtin_scheme

Json = dict[str, Any]

REASON: Final = "ReconcileError"
_READY: Final = "Ready"
_MARK: Final = f'"{REASON}"'.encode()
_TIMEOUT: Final = 5.0  # seconds
_ATTEMPTS: Final = 2  # the second after a conflict


class ReadyCondition:
    """Sets and removes the condition for the objects of one controller."""

    def __init__(self, controller: str, view: View[Any], informers: Informers) -> None:
        self._controller = controller
        self._informers = informers
        self._view = Unstructured(view.gvk, view.info)
        declared = has_conditions(view.cls) if isinstance(view, Typed) else None
        self._is_declared = declared is True
        self.is_supported = (
            declared is not False and not isinstance(view, MetadataOf) and not builtin_scheme().recognizes(view.gvk)
        )
        self._marked: set[Hashable] = set()  # keys for which this process has set it

    async def mark(self, context: Context, message: str) -> None:
        """Set Ready=False, unless the reconcile has set Ready itself."""
        if self._is_managed(context):
            return
        condition = Condition(type=_READY, status="False", reason=REASON, message=f"{self._controller}: {message}")
        await self._change(context, condition)

    async def clear(self, context: Context) -> None:
        """Remove the condition, if it was set here."""
        self._marked.discard(context.request)
        if _READY not in context.conditions_set:
            await self._change(context, None)

    def may_be_set(self, context: Context) -> bool:
        """Return whether the object may have the condition; cheap, for each successful reconcile."""
        if context.request in self._marked:
            return True
        instance = context.object
        if instance is None:
            entry = cached_entry(self._informers, context)
            return entry is not None and _MARK in entry.data
        if isinstance(instance, Object):
            return _MARK in (origin(instance) or b"")
        return any(isinstance(each, dict) and each.get("reason") == REASON for each in conditions_of(instance))

    async def _change(self, context: Context, wanted: Condition | None) -> None:
        async with context.world.clock.timeout(_TIMEOUT):
            for attempt in range(1, _ATTEMPTS + 1):
                try:
                    await self._try(context, wanted)
                except Conflict:
                    if attempt == _ATTEMPTS:
                        raise
                else:
                    return

    async def _try(self, context: Context, wanted: Condition | None) -> None:
        key = _key(context)
        if key is None:
            return
        current = await context.client.live.get(self._view, key, missing=None)
        if current is None or (context.object is not None and access.uid(context.object) != access.uid(current)):
            return
        conditions = list(conditions_of(current))
        holder: Json = {"status": {"conditions": conditions}}
        ready = find_condition(holder, _READY)
        if wanted is None:
            if not self._is_ours(ready):
                return
            conditions = [each for each in conditions if each.get("type") != _READY]
        else:
            if not (conditions or self._is_declared) or not self._may_replace(ready, current, context):
                return
            observed = msgspec.structs.replace(wanted, observed_generation=access.generation(current) or None)
            if not set_condition(holder, observed, context.now()):
                self._marked.add(context.request)
                return
        change: Json = {
            "metadata": {"resourceVersion": access.resource_version(current)},
            "status": {"conditions": conditions or None},
        }
        await context.client.patch(
            self._view, access.key(current), MergePatch(change), subresource="status", field_manager=self._controller
        )
        if wanted is not None:
            self._marked.add(context.request)

    def _is_ours(self, ready: Condition | None) -> bool:
        return (
            ready is not None and ready.reason == REASON and (ready.message or "").startswith(f"{self._controller}: ")
        )

    def _may_replace(self, ready: Condition | None, current: Json, context: Context) -> bool:
        if ready is None or self._is_ours(ready):
            return True
        managers = {self._controller, context.client.live.field_manager}
        return ready.status != "False" and not managers.isdisjoint(_condition_managers(current))

    def _is_managed(self, context: Context) -> bool:
        """Return whether the reconcile has set Ready: by `ctx.status`, or by another write of the object."""
        if _READY in context.conditions_set:
            return True
        if not context.object_writes:
            return False
        data = origin(context.object) if isinstance(context.object, Object) else None
        before = None if data is None else find_condition(msgspec.json.decode(data), _READY)
        written = (find_condition(each, _READY) for each in context.object_writes)
        return any(each is not None and each != before and not self._is_ours(each) for each in written)


def _key(context: Context) -> NamespacedName | None:
    """Return the key of the object; None for a key of another form, which may name an object of another cluster."""
    if context.object is not None:
        return access.key(context.object)
    return context.request if type(context.request) is NamespacedName else None


def cached_entry(informers: Informers, context: Context) -> Entry | None:
    """Return the reconciled object in the cache."""
    gvk, key = context.reconcile.gvk, context.reconcile.request
    if gvk is None or type(key) is not NamespacedName:
        return None
    for informer in informers.all(gvk):
        entry = informer.store.get(key)
        if entry is not None:
            return entry
    return None


def _condition_managers(current: Json) -> set[str]:
    """Return the field managers that own conditions of an object."""
    entries = (current.get("metadata") or {}).get("managedFields") or ()
    return {
        str(each.get("manager"))
        for each in entries
        if "f:conditions" in ((each.get("fieldsV1") or {}).get("f:status") or {})
    }
